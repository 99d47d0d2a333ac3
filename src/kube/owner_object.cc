#include "kube/owner_object.h"

#include <algorithm>

#include "kube/json_reading.h"
#include "model/job.h"

namespace berth::kube {
namespace {

bool is_below(const std::string& queue, const std::string& pattern) {
  if (pattern.size() < 2 || !pattern.ends_with("/*")) return false;
  const std::string_view parent = std::string_view(pattern).substr(0, pattern.size() - 1);  // with its '/'
  return queue.size() > parent.size() && queue.starts_with(parent);
}

// Returns the words of a list that are separated by commas, spaces or newlines.
std::vector<std::string> words_of(std::string text) {
  std::vector<std::string> words;
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter == ' ' || letter == '\n' || letter == '\t'; }, ',');
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

std::int32_t gang_size_of_job(const boost::json::object& job) {
  const std::int64_t parallelism = integer_at(job, {"spec", "parallelism"}, 1);
  if (text_at(job, {"spec", "completionMode"}) != "Indexed") return 1;
  if (parallelism != integer_at(job, {"spec", "completions"}, 1)) return 1;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(parallelism, 1, kMaxTasksPerJob));
}

std::int32_t gang_size_of_pod_group(const boost::json::object& group) {
  const std::int64_t size =
      integer_at(group, {"spec", "schedulingPolicy", "gang", "minCount"}, integer_at(group, {"spec", "minMember"}, 0));
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(size, 0, kMaxTasksPerJob));
}

NamespaceTerms terms_of_namespace(const boost::json::object& name_space) {
  return {words_of(annotation_at(name_space, "berth.dev/queues")),
          words_of(annotation_at(name_space, "berth.dev/priority-classes")),
          annotation_at(name_space, "berth.dev/on-lost-contact") == "wait"};
}

bool may_use_class(const std::string& priority_class, const NamespaceTerms& terms) {
  return priority_class.empty() || names_class("*", terms) || names_class(priority_class, terms);
}

bool names_class(const std::string& priority_class, const NamespaceTerms& terms) {
  const auto& all = terms.priority_classes;
  return std::find(all.begin(), all.end(), priority_class) != all.end();
}

std::string queue_for(const std::string& asked, const std::vector<std::string>& allowed) {
  if (asked.empty()) return allowed.empty() || allowed.front().ends_with("/*") ? std::string() : allowed.front();
  std::string dotted = asked;
  std::replace(dotted.begin(), dotted.end(), '.', '/');
  for (const std::string& wanted : {asked, dotted}) {
    for (const std::string& one : allowed) {
      if (one == wanted || is_below(wanted, one)) return wanted;
    }
  }
  return {};
}

}  // namespace berth::kube
