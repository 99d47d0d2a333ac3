#include "model/admission.h"

#include <algorithm>
#include <set>

#include "model/admission_security.h"
#include "model/document/quantity.h"
#include "model/image.h"
#include "model/job_size.h"
#include "model/name.h"

namespace berth {
namespace {

constexpr std::string_view kDigest = "@sha256:";
constexpr std::size_t kDigestDigits = 64;
constexpr std::int64_t kMostSeconds = 366LL * 86'400;

template <class T>
bool contains(const std::vector<T>& list, const T& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

std::string listed(const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + items[i];
  return items.size() > kShown ? text + " and others" : text;
}

bool allows_image(const std::vector<std::string>& patterns, std::string_view image) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return image == pattern;
    return image.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

bool by_digest(std::string_view image) {
  const std::size_t at = image.find(kDigest);
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view digits = image.substr(at + kDigest.size());
  return digits.size() == kDigestDigits && digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Checks the images of all groups.
void check_images(const AdmissionRule& rule, const JobSpec& spec, std::vector<std::string>& broken) {
  for (const TaskGroup& group : spec.groups) {
    if (group.image.empty()) continue;
    if (!rule.images.empty() && !allows_image(rule.images, group.image))
      broken.push_back("image: '" + group.image + "' is not allowed; allowed are " + listed(rule.images));
    if (rule.digest && !by_digest(group.image))
      broken.push_back("image: '" + group.image + "' is not named by its digest; write it as NAME@sha256:DIGEST");
  }
}

void check_amounts(const AdmissionRule& rule, const JobSpec& spec, std::vector<std::string>& broken) {
  if (const std::int64_t asks = gpu_milli_of(spec); rule.max_gpu_milli && asks > *rule.max_gpu_milli)
    broken.push_back("gpus: the job asks for " + document::milli_text(asks) + " GPUs; at most " +
                     document::milli_text(*rule.max_gpu_milli) + " are allowed");
  if (rule.max_time_s > 0 && (spec.time_limit_s == 0 || spec.time_limit_s > rule.max_time_s))
    broken.push_back((spec.time_limit_s == 0 ? "time_limit: none is given; give one of at most "
                                             : "time_limit: it is longer than allowed; give at most ") +
                     document::duration_text(rule.max_time_s));
}

bool requires_topology(const JobSpec& spec) {
  return !spec.topology.required.empty() ||
         std::any_of(spec.groups.begin(), spec.groups.end(),
                     [](const TaskGroup& group) { return !group.topology.required.empty(); });
}

void check_options(const AdmissionRule& rule, const JobSpec& spec, std::vector<std::string>& broken) {
  for (const ForbiddenOption option : rule.forbid) {
    if (option == ForbiddenOption::kExclusive && spec.exclusive)
      broken.push_back("exclusive: whole nodes are not allowed; leave it out");
    if (option == ForbiddenOption::kRequiredTopology && requires_topology(spec))
      broken.push_back("topology.required is not allowed; use topology.preferred");
    const auto plain = [](const TaskGroup& group) { return group.image.empty(); };
    if (option == ForbiddenOption::kNoImage && std::any_of(spec.groups.begin(), spec.groups.end(), plain))
      broken.push_back("image: none is given; plain processes are not allowed");
  }
}

void check_labels(const AdmissionRule& rule, const JobSpec& spec, std::vector<std::string>& broken) {
  for (const std::string& label : rule.labels) {
    const auto has = [&](const auto& one) { return one.first == label && !one.second.empty(); };
    if (std::none_of(spec.labels.begin(), spec.labels.end(), has))
      broken.push_back("labels: '" + label + "' is missing; give it a value");
  }
}

bool asks_nothing(const AdmissionRule& rule) {
  return rule.images.empty() && !rule.digest && !rule.max_gpu_milli && rule.max_time_s == 0 && !rule.checkpoint &&
         rule.forbid.empty() && rule.labels.empty() && !rule.use && rule.host_paths.empty();
}

template <class T>
bool has_twice(const std::vector<T>& list) {
  return std::set<T>(list.begin(), list.end()).size() != list.size();
}

std::optional<std::string> mistake_in_image(std::string_view pattern) {
  const bool prefix = pattern.ends_with('*');
  const std::string_view name = prefix ? pattern.substr(0, pattern.size() - 1) : pattern;
  if (well_formed_image(name)) return std::nullopt;
  return "images: '" + std::string(pattern.substr(0, 80)) +
         "' is neither the name of an image nor the beginning of one with a * at its end";
}

std::optional<std::string> mistake_in(const AdmissionRule& rule) {
  if (!well_formed_name(rule.name)) return std::string(kNameRule);
  if (asks_nothing(rule))
    return "it asks for nothing; give images, digest, max_gpus, max_time, checkpoint, forbid, use, host_paths or "
           "labels";
  for (const std::size_t size : {rule.images.size(), rule.labels.size(), rule.host_paths.size()}) {
    if (size > kMostRuleItems) return "a list has more than " + std::to_string(kMostRuleItems) + " items";
  }
  if (has_twice(rule.images) || has_twice(rule.labels) || has_twice(rule.forbid) || has_twice(rule.classes) ||
      has_twice(rule.roles) || has_twice(rule.host_paths))
    return "something is listed twice; keep one";
  for (const std::string& pattern : rule.images) {
    if (auto mistake = mistake_in_image(pattern)) return mistake;
  }
  for (const std::string& label : rule.labels) {
    if (label.empty() || label.size() > kMaxNameLength) return "labels: a label has 1 to 63 characters";
  }
  for (const std::string& path : rule.host_paths) {
    if (auto mistake = mistake_in_host_path(path); !mistake.empty()) return mistake;
  }
  if (rule.above_gpu_milli < -1 || rule.max_gpu_milli.value_or(0) < 0) return "a number of GPUs is 0 or more";
  if (rule.max_time_s < 0 || rule.max_time_s > kMostSeconds) return "max_time must be above 0 and at most 366 days";
  return std::nullopt;
}

}  // namespace

std::vector<std::string> mistakes_in(const std::vector<AdmissionRule>& rules) {
  std::vector<std::string> mistakes;
  if (rules.size() > kMostAdmissionRules)
    mistakes.push_back("there are more than " + std::to_string(kMostAdmissionRules) + " admission rules");
  std::set<std::string_view> names;
  for (const AdmissionRule& rule : rules) {
    const std::string words = "rule '" + rule.name.substr(0, 80) + "'";
    if (!names.insert(rule.name).second) mistakes.push_back(words + " is listed twice; keep one");
    if (const auto mistake = mistake_in(rule)) mistakes.push_back(words + ": " + *mistake);
  }
  return mistakes;
}

bool applies(const AdmissionRule& rule, const JobSpec& spec, std::optional<Role> role) {
  if (!rule.classes.empty() && !contains(rule.classes, spec.job_class)) return false;
  if (!rule.roles.empty() && !contains(rule.roles, role.value_or(Role::kMember))) return false;
  return gpu_milli_of(spec) > rule.above_gpu_milli;
}

std::vector<ForbiddenOption> forbidden_by(const AdmissionRule& rule) {
  std::set<ForbiddenOption> all(rule.forbid.begin(), rule.forbid.end());
  if (rule.use) {
    const std::vector<ForbiddenOption> more = options_of(*rule.use);
    all.insert(more.begin(), more.end());
  }
  return {all.begin(), all.end()};
}

bool asks_for_risks(const AdmissionRule& rule) {
  const auto forbidden = forbidden_by(rule);
  return !rule.host_paths.empty() || std::any_of(forbidden.begin(), forbidden.end(), is_of_pods);
}

std::vector<std::string> broken_by(const AdmissionRule& rule, const JobSpec& spec, const PodRisks& risks) {
  std::vector<std::string> broken;
  check_images(rule, spec, broken);
  check_amounts(rule, spec, broken);
  if (rule.checkpoint && !spec.checkpoint.on_signal)
    broken.push_back("checkpoint.on_signal: it is not set; the job has to save its work when it is asked to stop");
  check_options(rule, spec, broken);
  check_labels(rule, spec, broken);
  check_security(rule, spec, risks, broken);
  if (broken.size() > kMostBroken) {
    const std::size_t more = broken.size() - kMostBroken + 1;
    broken.resize(kMostBroken - 1);
    broken.push_back("and " + std::to_string(more) + " more like these");
  }
  return broken;
}

}  // namespace berth
