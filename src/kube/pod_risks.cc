#include "kube/pod_risks.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>
#include <utility>

#include "kube/device.h"
#include "kube/json_reading.h"
#include "kube/quantity.h"
#include "model/admission_security.h"
#include "model/secret_name.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostName = 80;
constexpr std::size_t kMostPath = 255;
constexpr std::string_view kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kCounted[] = {"cpu", "memory"};

// Returns the value of the key; null if there is none, or if it is JSON's null.
const json::value* set_at(const json::object* object, std::string_view key) {
  const json::value* value = object == nullptr ? nullptr : object->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool is_bool(const json::value* value, bool wanted) {
  const bool* truth = value == nullptr ? nullptr : value->if_bool();
  return truth != nullptr && *truth == wanted;
}

// Returns true unless the value is absent or false: what is of no known type is not trusted.
bool may_be_true(const json::value* value) { return value != nullptr && !is_bool(value, false); }

class RiskReading {
  using enum ForbiddenOption;

 public:
  RiskReading(const json::object& pod, const std::vector<std::string>& vendors)
      : pod_(pod),
        vendors_(vendors),
        spec_(object_at(pod, {"spec"})),
        security_(object_at(pod, {"spec", "securityContext"})),
        resources_(object_at(pod, {"spec", "resources"})) {}

  std::vector<PodRisk> take() {
    read_pod();
    for (const char* list : {"initContainers", "containers"}) {
      for (const json::object* container : objects_at(pod_, {"spec", list})) read_container(*container);
    }
    return std::move(risks_);
  }

 private:
  void add(ForbiddenOption option, std::string what = {}) { risks_.push_back({option, container_, std::move(what)}); }

  void read_pod() {
    for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
      if (may_be_true(set_at(spec_, field))) add(kHostNamespaces, field);
    }
    if (security_ != nullptr && may_be_true(set_at(object_at(*security_, {"windowsOptions"}), "hostProcess")))
      add(kPrivileged, "windowsOptions.hostProcess");
    for (const json::object* volume : objects_at(pod_, {"spec", "volumes"})) {
      if (set_at(volume, "hostPath") != nullptr)
        risks_.push_back({kHostPaths, shown(text_at(*volume, {"name"}), kMostName), path_of(*volume)});
    }
    if (states_any(resources_)) read_requests(resources_);
  }

  // A path that is cut, or has letters that are not shown, is no longer one: with dots before it, it is below nothing
  // that is allowed.
  static std::string path_of(const json::object& volume) {
    const std::string path = text_at(volume, {"hostPath", "path"});
    std::string text = shown(path, kMostPath);
    return text == path ? text : kMoreRisks + text;
  }

  void read_container(const json::object& container) {
    container_ = shown(text_at(container, {"name"}), kMostName);
    if (container_.empty()) container_ = "?";
    read_security(object_at(container, {"securityContext"}));
    for (const json::object* port : objects_at(container, {"ports"})) {
      if (const std::int64_t number = integer_at(*port, {"hostPort"}, 0); number != 0)
        add(kHostPorts, std::to_string(number));
    }
    read_env(container);
    read_resources(container);
    container_.clear();
  }

  void read_security(const json::object* security) {
    if (may_be_true(set_at(security, "privileged"))) add(kPrivileged);
    if (security != nullptr && may_be_true(set_at(object_at(*security, {"windowsOptions"}), "hostProcess")))
      add(kPrivileged, "windowsOptions.hostProcess");
    if (!is_bool(set_at(security, "allowPrivilegeEscalation"), false)) add(kPrivilegeEscalation);
    read_capabilities(security);
    read_user(security);
  }

  void read_capabilities(const json::object* security) {
    const json::object* capabilities = security == nullptr ? nullptr : object_at(*security, {"capabilities"});
    bool drops_all = false;
    for (const std::string& name : texts_at(capabilities, "drop")) drops_all = drops_all || name == "ALL";
    if (!drops_all) add(kKeptCapabilities);
    for (const std::string& name : texts_at(capabilities, "add")) {
      const bool is_baseline = std::find(std::begin(kBaselineCapabilities), std::end(kBaselineCapabilities), name) !=
                               std::end(kBaselineCapabilities);
      if (!is_baseline) add(kAddedCapabilities, name);
      if (name != "NET_BIND_SERVICE") add(kKeptCapabilities, name);
    }
  }

  // What stands in the container is in force there, else what stands in the pod.
  void read_user(const json::object* security) {
    const auto in_force = [&](std::string_view key) {
      const json::value* own = set_at(security, key);
      return own != nullptr ? own : set_at(security_, key);
    };
    if (const json::value* user = in_force("runAsUser"); user != nullptr) {
      const std::int64_t* number = user->if_int64();
      if (number == nullptr || *number <= 0) return add(kRoot, "runAsUser");
    }
    if (!is_bool(in_force("runAsNonRoot"), true)) add(kRoot);
  }

  void read_env(const json::object& container) {
    for (const json::object* variable : objects_at(container, {"env"})) {
      const std::string name = text_at(*variable, {"name"});
      const json::value* value = set_at(variable, "value");
      const json::string* text = value == nullptr ? nullptr : value->if_string();
      if (text != nullptr && holds_a_secret(name, *text)) add(kSecretEnv, shown(name, kMostName));
    }
  }

  // The variable gives a container GPUs of the node past every count, also beside a GPU of its own. What an image sets
  // itself is not seen here.
  void read_visible_devices(const json::object& container) {
    for (const json::object* variable : objects_at(container, {"env"})) {
      if (text_at(*variable, {"name"}) != kVisibleDevices) continue;
      const std::string value = text_at(*variable, {"value"});
      const bool gives_none = value == "void" || value == "none" || value.empty();
      if (!gives_none || set_at(variable, "valueFrom") != nullptr)
        add(kGpusWithoutLimits, std::string(kVisibleDevices));
    }
  }

  void read_resources(const json::object& container) {
    const json::object* resources = object_at(container, {"resources"});
    const bool has_devices = asks_for_devices(resources);
    for (const std::string_view resource : kCounted) {
      if (has_devices && amount_of(resources, "limits", resource).empty() &&
          amount_of(resources_, "limits", resource).empty())
        add(kGpusWithoutLimits, std::string(resource));
    }
    read_visible_devices(container);
    if (!states_any(resources_)) read_requests(resources);
  }

  bool asks_for_devices(const json::object* resources) const {
    for (const char* kind : {"limits", "requests"}) {
      const json::object* all = resources == nullptr ? nullptr : object_at(*resources, {kind});
      if (all == nullptr) continue;
      for (const auto& [resource, amount] : *all) {
        if (is_device(resource, vendors_) && !amount_of(resources, kind, resource).empty()) return true;
      }
    }
    return false;
  }

  // Both have to be given, and be the same: what Kubernetes calls the QoS class Guaranteed.
  void read_requests(const json::object* resources) {
    for (const std::string_view resource : kCounted) {
      const std::string limit = amount_of(resources, "limits", resource);
      const std::string request = amount_of(resources, "requests", resource);
      if (limit.empty() || (!request.empty() && !is_same_quantity(limit, request)))
        add(kRequestsBelowLimits, std::string(resource));
    }
  }

  // Returns the amount as it is written; empty if there is none, or it is 0.
  static std::string amount_of(const json::object* resources, std::string_view kind, std::string_view resource) {
    const json::object* all = resources == nullptr ? nullptr : object_at(*resources, {kind});
    const json::value* value = set_at(all, resource);
    if (value == nullptr) return {};
    std::string text;
    if (const json::string* written = value->if_string()) text = std::string(*written);
    if (const std::int64_t* number = value->if_int64()) text = std::to_string(*number);
    return is_same_quantity(text, "0") ? std::string() : text;
  }

  static bool states_any(const json::object* resources) {
    return std::any_of(std::begin(kCounted), std::end(kCounted), [&](std::string_view resource) {
      return !amount_of(resources, "limits", resource).empty() || !amount_of(resources, "requests", resource).empty();
    });
  }

  static std::vector<std::string> texts_at(const json::object* object, std::string_view key) {
    std::vector<std::string> texts;
    const json::array* array = object == nullptr ? nullptr : array_at(*object, {key});
    if (array == nullptr) return texts;
    for (const json::value& one : *array) {
      const json::string* text = one.if_string();
      texts.push_back(text == nullptr ? "?" : shown(*text, kMostName));
    }
    return texts;
  }

  const json::object& pod_;
  const std::vector<std::string>& vendors_;
  const json::object* spec_;
  const json::object* security_;
  const json::object* resources_;  // of the whole pod
  std::string container_;          // that is read; empty: the pod
  std::vector<PodRisk> risks_;
};

// Returns the risks ascending, each once. Of an option with more than kMostRisks it keeps the first, and one that says
// that there are more.
std::vector<PodRisk> once_each(std::vector<PodRisk> risks) {
  std::sort(risks.begin(), risks.end());
  risks.erase(std::unique(risks.begin(), risks.end()), risks.end());
  std::vector<PodRisk> kept;
  for (auto first = risks.begin(); first != risks.end();) {
    const ForbiddenOption option = first->option;
    const auto end = std::find_if(first, risks.end(), [&](const PodRisk& one) { return one.option != option; });
    const PodRisk more{option, {}, kMoreRisks};
    const bool has_more = end - first > std::ptrdiff_t(kMostRisks) || std::find(first, end, more) != end;
    std::size_t count = 0;
    if (has_more) kept.push_back(more);
    for (; first != end; ++first) {
      if (count == kMostRisks || *first == more) continue;
      kept.push_back(*first);
      ++count;
    }
  }
  return kept;
}

bool is_forbidden(const PodRisk& risk, const ForbiddenToPods& forbidden) {
  const auto& options = forbidden.options;
  if (std::find(options.begin(), options.end(), risk.option) != options.end()) return true;
  const auto allows = [&](const std::vector<std::string>& paths) { return allows_host_path(paths, risk.what); };
  return risk.option == ForbiddenOption::kHostPaths &&
         !std::all_of(forbidden.host_paths.begin(), forbidden.host_paths.end(), allows);
}

}  // namespace

std::vector<PodRisk> risks_of(const json::object& pod, const std::vector<std::string>& vendors) {
  return once_each(RiskReading(pod, vendors).take());
}

std::vector<PodRisk> joined(std::vector<PodRisk> a, const std::vector<PodRisk>& b) {
  if (std::includes(a.begin(), a.end(), b.begin(), b.end())) return a;  // both are ascending
  a.insert(a.end(), b.begin(), b.end());
  return once_each(std::move(a));
}

std::vector<PodRisk> beyond(const std::vector<PodRisk>& risks, const PodRisks& judged,
                            const ForbiddenToPods& forbidden) {
  std::vector<PodRisk> more;
  if (!judged) return more;
  const auto has = [&](const PodRisk& one) { return std::find(judged->begin(), judged->end(), one) != judged->end(); };
  for (const PodRisk& one : risks) {
    if (is_forbidden(one, forbidden) && !has(one) && !has({one.option, {}, kMoreRisks})) more.push_back(one);
  }
  return more;
}

}  // namespace berth::kube
