#include "model/admission_security.h"

#include <algorithm>

#include "base/utf8.h"
#include "model/secret_name.h"

namespace berth {
namespace {

constexpr std::size_t kMostPatternBytes = 1024;

template <class T>
bool is_among(const std::vector<T>& list, const T& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

std::string first_of(const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + items[i];
  return items.size() > kShown ? text + " and others" : text;
}

// Returns the name as it may stand in a message: cut, and without control characters.
std::string safe_name(std::string_view name) {
  constexpr std::size_t kMostShown = 80;
  std::string safe(name.substr(0, kMostShown));
  std::replace_if(
      safe.begin(), safe.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  safe.resize(std::min(safe.size(), first_not_utf8(safe)));  // it was cut within a character
  return safe;
}

std::string of_root(const std::string& what) {
  if (what.empty()) return "securityContext.runAsNonRoot is not true; set it to true, here or for the whole pod";
  return "securityContext." + what + " is 0, which is root; give another user";
}

std::string of_capabilities(const std::string& what) {
  if (what.empty()) return "securityContext.capabilities.drop lacks ALL; add it";
  return "securityContext.capabilities.add has " + what + "; only NET_BIND_SERVICE is allowed";
}

std::string of_gpus(const std::string& what) {
  if (what == "cpu" || what == "memory") return "resources.limits." + what + " is missing beside its GPUs; give it";
  return "env " + what + " asks for GPUs beside resources.limits; take it away";
}

// Returns what is wrong and what would be right, without the container or volume.
std::string told_of(const PodRisk& risk, const AdmissionRule& rule) {
  const std::string& what = risk.what;
  switch (risk.option) {
    case ForbiddenOption::kPrivileged:
      return "securityContext." + (what.empty() ? "privileged" : what) + " is true; remove it";
    case ForbiddenOption::kPrivilegeEscalation:
      return "securityContext.allowPrivilegeEscalation is not false; set it to false";
    case ForbiddenOption::kHostNamespaces:
      return what + " is true; remove it";
    case ForbiddenOption::kHostPaths:
      return "hostPath '" + what + "' is not allowed; " +
             (rule.host_paths.empty() ? "take a PersistentVolumeClaim" : "allowed are " + first_of(rule.host_paths));
    case ForbiddenOption::kHostPorts:
      return "hostPort " + what + " is not allowed; take a Service";
    case ForbiddenOption::kAddedCapabilities:
      return "securityContext.capabilities.add has " + what + "; remove it";
    case ForbiddenOption::kKeptCapabilities:
      return of_capabilities(what);
    case ForbiddenOption::kRoot:
      return of_root(what);
    case ForbiddenOption::kSecretEnv:
      return "env " + what + " looks like a secret; take it from a Secret, by valueFrom.secretKeyRef";
    case ForbiddenOption::kGpusWithoutLimits:
      return of_gpus(what);
    case ForbiddenOption::kRequestsBelowLimits:
      return "resources.requests." + what + " is not resources.limits." + what + "; give both, and the same";
    case ForbiddenOption::kExclusive:
    case ForbiddenOption::kRequiredTopology:
    case ForbiddenOption::kNoImage:
      break;
  }
  return {};
}

std::string risk_place(const PodRisk& risk) {
  if (risk.where.empty()) return "pod: ";
  return (risk.option == ForbiddenOption::kHostPaths ? "volume '" : "container '") + risk.where + "': ";
}

bool risk_breaks(const PodRisk& risk, const AdmissionRule& rule, const std::vector<ForbiddenOption>& forbidden) {
  if (risk.option == ForbiddenOption::kHostPaths && !rule.host_paths.empty())
    return !allows_host_path(rule.host_paths, risk.what);
  return is_among(forbidden, risk.option);
}

void check_pods(const AdmissionRule& rule, const std::vector<PodRisk>& risks, std::vector<std::string>& broken) {
  const std::vector<ForbiddenOption> forbidden = forbidden_by(rule);
  for (const PodRisk& risk : risks) {
    if (!risk_breaks(risk, rule, forbidden)) continue;
    if (risk.where.empty() && risk.what == kMoreRisks)
      broken.push_back("pod: there is more of " + std::string(name_of(risk.option)) + " than the " +
                       std::to_string(kMostRisks) + " that are looked at");
    else
      broken.push_back(risk_place(risk) + told_of(risk, rule));
  }
}

// What runs on a machine of berth's own has a request that is its limit, too, where it is given.
void check_own_group(const TaskGroup& group, const std::vector<ForbiddenOption>& forbidden,
                     std::vector<std::string>& broken) {
  const std::string place = "task group '" + group.name + "': ";
  if (is_among(forbidden, ForbiddenOption::kSecretEnv)) {
    for (const auto& [name, value] : group.env) {
      if (holds_a_secret(name, value))
        broken.push_back(place + "env " + safe_name(name) + " looks like a secret; give it by `secrets`");
    }
  }
  const bool limited = is_among(forbidden, ForbiddenOption::kRequestsBelowLimits) ||
                       (group.request.gpus > 0 && is_among(forbidden, ForbiddenOption::kGpusWithoutLimits));
  if (limited && group.request.cpu_milli == 0) broken.push_back(place + "cpus is 0, so nothing limits them; give some");
  if (limited && group.request.memory_mib == 0)
    broken.push_back(place + "memory is 0, so nothing limits it; give some");
}

// Returns the path with one slash between its parts, none at its end, and no part that is a dot.
std::string in_short(std::string_view path) {
  std::string text;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (const std::string_view part = path.substr(0, end); !part.empty() && part != ".")
      text += "/" + std::string(part);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return text.empty() ? "/" : text;
}

}  // namespace

std::vector<ForbiddenOption> options_of(SecurityStandard set) {
  using enum ForbiddenOption;
  switch (set) {
    case SecurityStandard::kBaseline:
      return {kPrivileged, kHostNamespaces, kHostPaths, kHostPorts, kAddedCapabilities};
    case SecurityStandard::kRestricted:
      return {kPrivileged, kPrivilegeEscalation, kHostNamespaces,   kHostPaths,
              kHostPorts,  kAddedCapabilities,   kKeptCapabilities, kRoot};
  }
  return {};
}

bool allows_host_path(const std::vector<std::string>& allowed, std::string_view path) {
  if (!path.starts_with('/') || path.find("..") != std::string_view::npos) return false;
  const std::string plain = in_short(path);
  return std::any_of(allowed.begin(), allowed.end(), [&](std::string_view pattern) {
    if (!pattern.ends_with("/*")) return plain == pattern;
    return plain.starts_with(pattern.substr(0, pattern.size() - 1));
  });
}

std::string mistake_in_host_path(std::string_view path) {
  const bool below = path.ends_with("/*");
  const std::string_view name = below ? path.substr(0, path.size() - 2) : path;
  const bool sound = name.size() > 1 && name.size() <= kMostPatternBytes && name.starts_with('/') &&
                     name == in_short(name) && name.find("..") == std::string_view::npos &&
                     name.find('*') == std::string_view::npos;
  if (sound) return {};
  return "host_paths: '" + std::string(path.substr(0, 80)) +
         "' is neither a path nor one that ends in /*; write it as /data or /data/*, with no . or .. in it";
}

void check_security(const AdmissionRule& rule, const JobSpec& spec, const PodRisks& risks,
                    std::vector<std::string>& broken) {
  if (risks) check_pods(rule, *risks, broken);
  if (!spec.source.cell.empty()) return;  // pods: all that there is to them stands in their risks
  const std::vector<ForbiddenOption> forbidden = forbidden_by(rule);
  for (const TaskGroup& group : spec.groups) check_own_group(group, forbidden, broken);
}

}  // namespace berth
