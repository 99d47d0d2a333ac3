#include "cli/job_flags.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "cli/when.h"
#include "model/document/job_document.h"
#include "model/document/job_keys.h"
#include "model/name.h"

namespace berth::cli {
namespace {

using document::Node;

// How a flag is given follows from what stands at its key.
FlagKind kind_of(const document::JobKey& key) {
  using document::KeyKind;
  switch (key.form.kind) {
    case KeyKind::kTime:
      return FlagKind::kWhen;
    case KeyKind::kText:
    case KeyKind::kWord:
    case KeyKind::kSignal:
      return FlagKind::kText;
    case KeyKind::kInteger:
    case KeyKind::kAmount:
    case KeyKind::kBytes:
    case KeyKind::kDuration:
      return FlagKind::kPlain;
    case KeyKind::kBool:
      return FlagKind::kSwitch;
    case KeyKind::kTexts:
    case KeyKind::kIntegers:
    case KeyKind::kJobIds:
    case KeyKind::kTolerations:
    case KeyKind::kNodeRules:
    case KeyKind::kMounts:
    case KeyKind::kSecrets:
      return FlagKind::kList;
    case KeyKind::kPairs:
    case KeyKind::kCounts:
      return FlagKind::kPairs;
    case KeyKind::kTerms:
      return FlagKind::kTerms;
    case KeyKind::kMap:
    case KeyKind::kGroups:
      break;
  }
  BERTH_CHECK(false);  // a key that has keys of its own has no flag
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : "|") + std::string(word);
  return text;
}

JobFlag flag_of(const document::JobKey& key, const document::KeyFlag& flag) {
  const bool of_group = key.path.starts_with(document::kGroupKeys);
  return {.flag = flag.name,
          .key = key.path.substr(of_group ? document::kGroupKeys.size() : 0),
          .kind = kind_of(key),
          .value_name = flag.value_name.empty() ? joined(key.form.words) : std::string(flag.value_name),
          .says = flag.says.empty() ? document::plain_text(document::meaning_of(key)) : std::string(flag.says)};
}

std::vector<JobFlag> flags_of_keys() {
  std::vector<JobFlag> flags;
  for (const document::JobKey& key : document::job_keys()) {
    for (const document::KeyFlag& flag : {key.flag, key.wish_flag}) {
      if (!flag.name.empty()) flags.push_back(flag_of(key, flag));
    }
  }
  return flags;
}

Node& inner_map(Node& map, std::string_view key) {
  for (auto& entry : map.entries) {
    if (entry.key == key && entry.value.kind == document::NodeKind::kMap) return entry.value;
  }
  map.set(key, document::map_node());
  return inner_map(map, key);
}

// The map that holds the last part of a dotted key, and that part.
std::pair<Node*, std::string_view> locate(Node& document, std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {&document, key};
  return {&inner_map(document, key.substr(0, dot)), key.substr(dot + 1)};
}

Result<void> put_pairs(const JobFlag& flag, const std::vector<std::string>& values, const Surroundings& where,
                       Node& map) {
  std::set<std::string> names;
  for (const std::string& value : values) {
    const std::size_t equals = value.find('=');
    const std::string here = std::string(flag.flag) + " " + value;
    if (equals == 0 || (equals == std::string::npos && flag.key != "env")) {
      return invalid(here + ": give " + flag.value_name);
    }
    const std::string name = value.substr(0, equals);
    if (!names.insert(name).second) return invalid(here + ": " + name + " is given twice; leave one out");
    const std::string given = equals == std::string::npos ? where.variable(name) : value.substr(equals + 1);
    if (!is_utf8(given)) return invalid(here + ": your " + name + " is not UTF-8; give " + name + "=VALUE");
    map.set(name, document::string_node(given));
  }
  return {};
}

// Beside those that the file or another flag has.
Result<void> put_terms(const JobFlag& flag, const std::vector<std::string>& values, Node& map) {
  Node list = document::list_node();
  if (const Node* there = map.find(flag.key)) list = *there;
  for (const std::string& value : values) {
    const std::size_t at = value.find('@');
    Node labels = document::map_node();
    std::istringstream pairs(value.substr(0, at));
    for (std::string pair; std::getline(pairs, pair, ',');) {
      const std::size_t equals = pair.find('=');
      if (equals == 0 || equals == std::string::npos)
        return invalid(std::string(flag.flag) + " " + value + ": give " + flag.value_name);
      const std::string name = pair.substr(0, equals);
      if (labels.find(name) != nullptr)
        return invalid(std::string(flag.flag) + " " + value + ": " + name + " is given twice; leave one out");
      labels.set(name, document::string_node(pair.substr(equals + 1)));
    }
    Node& term = list.items.emplace_back(document::map_node());
    term.set("labels", std::move(labels));
    term.set("level", document::string_node(at == std::string::npos ? "node" : value.substr(at + 1)));
    if (flag.flag.starts_with("--prefer")) term.set("required", document::plain_node("false"));
  }
  map.set(flag.key, std::move(list));
  return {};
}

Result<void> put_flag(const JobFlag& flag, const std::vector<std::string>& values, const Surroundings& where,
                      Node& document) {
  const auto [map, key] = locate(document, flag.key);
  switch (flag.kind) {
    case FlagKind::kText:
      map->set(key, document::string_node(values.back()));
      return {};
    case FlagKind::kWhen: {
      const auto time = iso_when(values.back(), where.now);
      if (!time) return invalid(std::string(flag.flag) + ": " + time.error().message);
      map->set(key, document::string_node(*time));
      return {};
    }
    case FlagKind::kPlain:
      map->set(key, document::plain_node(values.back()));
      return {};
    case FlagKind::kSwitch:
      map->set(key, document::plain_node("true"));
      return {};
    case FlagKind::kList: {
      Node list = document::list_node();
      for (const std::string& value : values) list.items.push_back(document::plain_node(value));
      map->set(key, std::move(list));
      return {};
    }
    case FlagKind::kPairs:
      return put_pairs(flag, values, where, inner_map(*map, key));
    case FlagKind::kTerms:
      return put_terms(flag, values, *map);
  }
  return {};
}

bool is_interpreter(std::string_view program) {
  return program.starts_with("python") || program == "bash" || program == "sh";
}

// The program of a command is looked up where the job is submitted, as its working directory is: the PATH of the server
// leads elsewhere. In a container it is that of the image. What is not found here may be there.
std::string found_program(const std::string& name, const Surroundings& where, const Node& document) {
  if (where.program == nullptr || name.empty() || name.find('/') != std::string::npos) return name;
  if (document.find("image") != nullptr) return name;
  const std::string path = where.program(name);
  return path.empty() || !is_utf8(path) ? name : path;
}

// What the command runs, as far as that is a name: "python3 -u /home/ana/train.py" gives "train.py".
std::string name_of_program(const std::vector<std::string>& command) {
  const auto last_part = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  std::string name = last_part(command.front());
  if (is_interpreter(name)) {
    const auto script =
        std::find_if(command.begin() + 1, command.end(), [](const auto& word) { return !word.starts_with('-'); });
    if (script != command.end() && well_formed_name(last_part(*script))) name = last_part(*script);
  }
  return well_formed_name(name) ? name : "";
}

Result<void> put_command(const JobOptions& options, const Surroundings& where, Node& document) {
  Node list = document::list_node();
  for (const std::string& word : options.command) {
    const bool first = list.items.empty();
    list.items.push_back(document::string_node(first ? found_program(word, where, document) : word));
  }
  document.set("command", std::move(list));
  if (document.find("workdir") == nullptr) {
    if (!is_utf8(where.directory))
      return invalid("the working directory's name is not UTF-8; give another by --workdir");
    document.set("workdir", document::string_node(where.directory));
  }
  if (document.find("name") != nullptr) return {};
  const std::string name = name_of_program(options.command);
  if (!name.empty()) document.set("name", document::string_node(name));
  return {};
}

}  // namespace

namespace {

// berth sets these itself, or they are of the shell that is left.
bool is_of_the_shell(std::string_view name) {
  constexpr std::string_view kOwn[] = {"_", "SHLVL", "PWD", "OLDPWD"};
  return name.starts_with("BERTH_") || std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn);
}

// Sets the variable unless the file or --env has it.
Result<void> put_variable(const std::string& name, const std::string& value, Node& env) {
  if (env.find(name) != nullptr) return {};
  if (!is_utf8(value) || !is_utf8(name))
    return invalid("--export: your " + name + " is not UTF-8; leave it out, or give --env " + name + "=VALUE");
  env.set(name, document::string_node(value));
  return {};
}

// As sbatch has it, but with NONE for the default: what is exported is stored with the job.
Result<void> put_exported(const std::string& exported, const Surroundings& where, Node& document) {
  if (exported.empty() || exported == "NONE") return {};
  Node& env = inner_map(document, "env");
  std::istringstream parts(exported);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    if (part == "NONE" || part.empty() || equals == 0)
      return invalid("--export " + exported.substr(0, 80) +
                     ": give ALL, NONE, or names and NAME=VALUE joined by commas");
    if (part != "ALL") {
      const std::string name = part.substr(0, equals);
      const std::string value = equals == std::string::npos ? where.variable(name) : part.substr(equals + 1);
      if (auto put = put_variable(name, value, env); !put) return put;
      continue;
    }
    for (const std::string& one : where.variables()) {
      const std::size_t end = one.find('=');
      const std::string name = one.substr(0, end);
      if (end == std::string::npos || name.empty() || is_of_the_shell(name)) continue;
      if (auto put = put_variable(name, one.substr(end + 1), env); !put) return put;
    }
  }
  return {};
}

}  // namespace

std::span<const JobFlag> job_flags() {
  static const std::vector<JobFlag> flags = flags_of_keys();
  return flags;
}

Result<void> put_flags(const JobOptions& options, const Surroundings& where, Node& document) {
  for (std::size_t i = 0; i < options.values.size(); ++i) {
    if (options.values[i].empty()) continue;
    const JobFlag& flag = job_flags()[i];
    if (auto put = put_flag(flag, options.values[i], where, document); !put) return put;
    if (flag.key == "checkpoint.signal")
      inner_map(document, "checkpoint").set("on_signal", document::plain_node("true"));
  }
  if (auto put = put_exported(options.exported, where, document); !put) return put;
  if (!options.command.empty()) return put_command(options, where, document);
  return {};
}

namespace {

bool names_image(const JobOptions& options) {
  for (std::size_t i = 0; i < options.values.size(); ++i) {
    if (job_flags()[i].key == "image" && !options.values[i].empty()) return true;
  }
  return false;
}

}  // namespace

Result<Node> job_document(const JobOptions& options, std::string_view text, const Surroundings& where) {
  Node tree = document::map_node();
  const std::string file = options.file.empty() ? "command line" : options.file;
  if (options.file.empty() && options.command.empty() && !names_image(options)) {
    return invalid(
        "nothing to run; give a command after --, as in `berth submit --gpus 1 -- python3 train.py`, or -f FILE");
  }
  if (!options.file.empty()) {
    auto parsed = document::parse(text, options.file);
    if (!parsed) return parsed.error();
    tree = std::move(*parsed);
  }
  if (tree.kind == document::NodeKind::kMap) {
    if (auto put = put_flags(options, where, tree); !put) return put.error();
  }
  if (auto spec = document::read_job(tree, file); !spec) return spec.error();
  return tree;
}

}  // namespace berth::cli
