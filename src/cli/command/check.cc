// Reads configurations, jobs, price books and lists of issuers as the server would, without one, and shows every
// mistake. Where a configuration is among the files, the names in the jobs are looked up in it.

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>

#include "cli/command/commands.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/printable.h"
#include "identity/issuer.h"
#include "model/document/config_document.h"
#include "model/document/job_document.h"
#include "model/document/price_document.h"
#include "model/job_check.h"
#include "model/nearest.h"
#include "model/queue_volumes.h"

namespace berth::cli {
namespace {

using document::Mistake;

struct CheckedFile {
  std::string name;
  std::string kind;  // one of kKinds; empty: none of them, because its syntax is wrong
  document::Node tree = {};
  std::optional<ClusterConfig> config = {};
  std::optional<JobSpec> job = {};
  std::string says = {};  // what it is, if it has no mistakes
  std::vector<Mistake> mistakes = {};
  std::optional<Error> unreadable = {};
};

std::string count_of(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Each reads the tree of the file, and adds what it says and its mistakes.
void check_config(CheckedFile& file) {
  auto read = document::check_config(file.tree);
  if (read.value) file.says = "a configuration with " + count_of(read.value->queues.size(), "queue");
  file.config = std::move(read.value);
  file.mistakes = std::move(read.mistakes);
}

// Returns the node at a path such as "groups[1].workdir"; null: the document has none.
const document::Node* node_at(const document::Node& tree, std::string_view path) {
  const document::Node* node = &tree;
  while (node != nullptr && !path.empty()) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    if (end > 0) node = node->find(path.substr(0, end));
    path.remove_prefix(end);
    if (node != nullptr && path.starts_with('[')) {
      const std::size_t close = std::min(path.find(']'), path.size() - 1);
      std::size_t index = 0;
      const auto read = std::from_chars(path.data() + 1, path.data() + close, index);
      node = read.ec == std::errc() && index < node->items.size() ? &node->items[index] : nullptr;
      path.remove_prefix(close + 1);
    }
    if (path.starts_with('.')) path.remove_prefix(1);
  }
  return node;
}

// A message of check_job_alone begins with the path of its key. Where the document does not have the key, the mistake
// is one of the whole document.
Mistake placed(const document::Node& tree, const std::string& message) {
  const std::size_t end = std::min(message.find_first_of(" :,"), message.size());
  const std::string path = message.substr(0, end);
  const document::Node* node = message.substr(end, 1) == "," ? nullptr : node_at(tree, path);
  if (node == nullptr) return {tree.at, "", message};
  return {node->at, path, message.substr(std::min(message.find_first_not_of(" :", end), message.size()))};
}

void check_job(CheckedFile& file) {
  auto read = document::check_job(file.tree);
  file.says = "a job";
  file.job = std::move(read.value);
  file.mistakes = std::move(read.mistakes);
  if (!file.job || !file.mistakes.empty()) return;
  JobSpec filled = *file.job;
  for (TaskGroup& group : filled.groups) {
    // The server takes the image of the queue, and counts the GPUs of a MIG profile, before it looks.
    if (group.image.empty() && group.command.empty()) group.image = "default";
    if (!group.request.mig_profile.empty() && group.request.gpus == 0) group.request.gpus = 1;
  }
  for (const Error& one : check_job_alone(filled)) file.mistakes.push_back(placed(file.tree, one.message));
}

// The server looks the time zones up.
void check_prices(CheckedFile& file) {
  auto read = document::check_prices(file.tree, nullptr);
  if (read.value) file.says = "a price book with " + count_of(read.value->periods.size(), "period");
  file.mistakes = std::move(read.mistakes);
}

void check_issuers(CheckedFile& file) {
  auto read = identity::check_issuers(file.tree);
  if (read.value) file.says = count_of(read.value->size(), "issuer");
  file.mistakes = std::move(read.mistakes);
}

struct FileKind {
  std::string_view name;
  void (*check)(CheckedFile&);
};
constexpr std::array kKinds{FileKind{"config", check_config}, FileKind{"job", check_job},
                            FileKind{"prices", check_prices}, FileKind{"issuers", check_issuers}};

// How many keys at the top of the document the reader did not know, or all of them if it is no map.
std::size_t unknown_keys(const document::Node& tree, const std::vector<Mistake>& mistakes) {
  std::size_t count = tree.kind == document::NodeKind::kMap ? 0 : 1;
  for (const document::Entry& entry : tree.entries) {
    for (const Mistake& one : mistakes)
      count += one.path.empty() && one.at.line == entry.at.line && one.at.column == entry.at.column ? 1U : 0U;
  }
  return count;
}

// Reads the document as what it is. If nothing is said, that is the first kind which knows most of its keys.
CheckedFile check_file(const std::string& name, const std::string& kind) {
  CheckedFile file{name, kind};
  const auto text = read_file(name, document::kMaxBytes);
  if (!text) {
    file.unreadable = text.error();
    return file;
  }
  auto syntax = document::check_syntax(*text);
  if (!syntax.value) {
    file.mistakes = std::move(syntax.mistakes);
    return file;
  }
  file.tree = std::move(*syntax.value);
  std::optional<CheckedFile> best;
  for (const FileKind& one : kKinds) {
    if (!kind.empty() && kind != one.name) continue;
    CheckedFile read = file;
    read.kind = one.name;
    one.check(read);
    if (!best || unknown_keys(read.tree, read.mistakes) < unknown_keys(best->tree, best->mistakes))
      best = std::move(read);
  }
  return best ? std::move(*best) : std::move(file);
}

// Looks up the names of one job in a configuration.
class Lookup {
 public:
  Lookup(const ClusterConfig& config, CheckedFile& file) : config_(config), file_(file) {
    for (const QueueConfig& one : config.queues) queues_.push_back(one.path);
    for (const GpuModelConfig& one : config.gpu_models) models_.push_back(one.name);
    for (const PoolConfig& one : config.pools) pools_.push_back(one.name);
    for (const PriorityClassConfig& one : config.priority_classes) classes_.push_back(one.name);
  }

  void run() {
    look_up_queue();
    expect(file_.tree, "priority", "", "priority class", classes_);
    look_up_mounts();
    look_up_group(file_.tree, "");
    const document::Node* groups = file_.tree.find("groups");
    for (std::size_t i = 0; groups != nullptr && i < groups->items.size(); ++i)
      look_up_group(groups->items[i], "groups[" + std::to_string(i) + "].");
  }

 private:
  using Names = std::vector<std::string_view>;

  void expect_value(const document::Node& value, std::string path, const std::string& what, const Names& names) {
    if (std::find(names.begin(), names.end(), value.text) != names.end()) return;
    const auto meant = nearest(value.text, names);
    file_.mistakes.push_back({value.at, std::move(path),
                              "no such " + what + " '" + value.text.substr(0, 80) + "' in the configuration" +
                                  (meant ? "; did you mean '" + std::string(*meant) + "'?" : "")});
  }
  void expect(const document::Node& map, std::string_view key, const std::string& where, const std::string& what,
              const Names& names) {
    const document::Node* value = map.find(key);
    if (value == nullptr) return;
    const std::string path = where + std::string(key);
    if (value->kind == document::NodeKind::kScalar) expect_value(*value, path, what, names);
    for (const document::Node& item : value->items) expect_value(item, path, what, names);
  }
  void look_up_group(const document::Node& group, const std::string& where) {
    expect(group, "pool", where, "pool", pools_);
    expect(group, "gpu_models", where, "GPU model", models_);
  }
  void look_up_queue() {
    expect(file_.tree, "queue", "", "queue", queues_);
    const document::Node* queue = file_.tree.find("queue");
    if (queue == nullptr) return;
    for (const std::string_view path : queues_) {
      if (!path.starts_with(queue->text + "/")) continue;
      return file_.mistakes.push_back(
          {queue->at, "queue",
           "'" + queue->text + "' has queues below it; give one of those, such as '" + std::string(path) + "'"});
    }
  }

  // The queue of the job: the one that it names, or the only leaf there is. Empty: it is not known.
  std::string_view queue_of_job() const {
    const document::Node* queue = file_.tree.find("queue");
    if (queue != nullptr)
      return std::find(queues_.begin(), queues_.end(), queue->text) == queues_.end() ? ""
                                                                                     : std::string_view(queue->text);
    return queues_.size() == 1 ? queues_.front() : std::string_view();
  }
  void expect_mount(const document::Node& at, const std::string& path, const std::string& what, std::string_view name,
                    const Names& names) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      file_.mistakes.push_back({at.at, path, no_such_mount(what, queue_of_job(), name, names)});
  }
  // An item is NAME:/PATH or a map with the name.
  void look_up_list(const std::string& key, const std::string& what, const Names& names) {
    const document::Node* list = file_.tree.find(key);
    if (list == nullptr) return;
    const bool is_one = list->kind == document::NodeKind::kScalar;
    for (std::size_t i = 0; i < (is_one ? 1 : list->items.size()); ++i) {
      const document::Node& item = is_one ? *list : list->items[i];
      const document::Node* name = item.find("name");
      const std::string_view text = name == nullptr ? std::string_view(item.text) : std::string_view(name->text);
      expect_mount(name == nullptr ? item : *name, is_one ? key : key + "[" + std::to_string(i) + "]", what,
                   text.substr(0, text.find(':')), names);
    }
  }
  void look_up_mounts() {
    const std::string_view queue = queue_of_job();
    if (queue.empty()) return;
    const Names volumes = volume_names_of(config_, queue);
    look_up_list("mounts", "volume", volumes);
    look_up_list("secrets", "secret", secret_names_of(config_, queue));
    for (const char* key : {"checkpoint", "outputs"}) {
      const document::Node* place = file_.tree.find(key);
      const document::Node* volume = place == nullptr ? nullptr : place->find("volume");
      if (volume != nullptr) expect_mount(*volume, std::string(key) + ".volume", "volume", volume->text, volumes);
    }
  }

  const ClusterConfig& config_;
  CheckedFile& file_;
  Names queues_, models_, pools_, classes_;
};

std::string check_table(const std::vector<CheckedFile>& files) {
  std::string text;
  for (const CheckedFile& file : files) {
    if (file.unreadable) continue;  // told as errors are
    for (const Mistake& one : file.mistakes) text += printable(document::mistake_line(file.name, one)) + "\n";
    if (!file.mistakes.empty()) continue;
    text += printable(file.name) + ": " + file.says + ", no mistakes\n";
  }
  return text;
}

Json check_json(const std::vector<CheckedFile>& files) {
  boost::json::array all;
  for (const CheckedFile& file : files) {
    boost::json::array mistakes;
    for (const Mistake& one : file.mistakes) {
      mistakes.push_back(boost::json::object{
          {"line", one.at.line}, {"column", one.at.column}, {"path", one.path}, {"message", one.message}});
    }
    all.push_back(boost::json::object{{"file", file.name},
                                      {"kind", file.kind.empty() ? Json() : Json(file.kind)},
                                      {"unreadable", file.unreadable ? Json(file.unreadable->message) : Json()},
                                      {"mistakes", std::move(mistakes)}});
  }
  return boost::json::object{{"items", std::move(all)}};
}

}  // namespace

Result<int> run(const CheckOptions& options, Session& session) {
  std::vector<CheckedFile> files;
  for (const std::string& name : options.files) files.push_back(check_file(name, options.kind));
  const auto config = std::find_if(files.begin(), files.end(), [](const CheckedFile& one) { return one.config; });
  std::size_t mistakes = 0;
  for (CheckedFile& file : files) {
    if (config != files.end() && file.job) Lookup(*config->config, file).run();
    mistakes += file.mistakes.size();
  }
  session.out << formatted(check_json(files), options.format, [&] { return check_table(files); });
  const auto unread = std::find_if(files.begin(), files.end(), [](const CheckedFile& one) { return one.unreadable; });
  if (unread != files.end()) return *unread->unreadable;
  if (mistakes == 0) return kOk;
  return invalid(count_of(mistakes, "mistake") + " in " + count_of(files.size(), "file"));
}

}  // namespace berth::cli
