#include "model/document/admission_policies.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/hash.h"
#include "model/admission_security.h"
#include "model/document/document.h"
#include "model/document/quantity.h"
#include "model/pod_risk.h"
#include "model/secret_name.h"

namespace berth::document {
namespace {

constexpr std::size_t kMostLabel = 63;  // of the value of a label
constexpr std::size_t kMostName = 200;  // of what is readable in the name of an object
constexpr const char* kVersion = "admissionregistration.k8s.io/v1";

// What has to hold, in CEL, and what is said where it does not.
struct Validation {
  std::string expression;
  std::string message;
};

// Returns the text as a literal of CEL.
std::string cel(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string literal = "'";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\'' || letter == '\\') literal += '\\';
    if (byte < 0x20)
      literal += std::string("\\x") + kDigits[byte >> 4U] + kDigits[byte & 15U];
    else
      literal += letter;
  }
  return literal + "'";
}

std::string any_of_these(const std::vector<std::string>& conditions) {
  std::string text;
  for (const std::string& one : conditions) text += (text.empty() ? "" : " || ") + one;
  return conditions.empty() ? "false" : "(" + text + ")";
}

std::string all_containers(const std::string& condition) { return "variables.containers.all(c, " + condition + ")"; }

Validation of_image(const AdmissionRule& rule) {
  std::vector<std::string> allowed;
  for (const std::string& pattern : rule.images)
    allowed.push_back(pattern.ends_with('*') ? "c.image.startsWith(" + cel(pattern.substr(0, pattern.size() - 1)) + ")"
                                             : "c.image == " + cel(pattern));
  return {all_containers(any_of_these(allowed)), "an image is none of the images of the rule"};
}

// A path below one that is allowed has a letter behind that which is neither a slash nor a dot.
Validation of_host_paths(const AdmissionRule& rule) {
  std::vector<std::string> allowed;
  for (const std::string& pattern : rule.host_paths) {
    const std::string begin = pattern.substr(0, pattern.size() - 1);
    allowed.push_back(!pattern.ends_with("/*")
                          ? "v.hostPath.path == " + cel(pattern)
                          : "(v.hostPath.path.startsWith(" + cel(begin) + ") && v.hostPath.path.substring(size(" +
                                cel(begin) + ")).matches('[^/.]'))");
  }
  return {"object.spec.?volumes.orValue([]).all(v, !has(v.hostPath) || (!v.hostPath.path.contains('..') && " +
              any_of_these(allowed) + "))",
          rule.host_paths.empty() ? "a volume has a hostPath; take a PersistentVolumeClaim"
                                  : "a volume has a hostPath that host_paths does not allow"};
}

std::string listed_in_cel(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + cel(word);
  return "[" + list + "]";
}

Validation of_secrets() {
  return {all_containers("c.?env.orValue([]).all(e, e.?value.orValue('') == '' || !(e.value.matches(" +
                         cel(pattern_of_secret_values()) + ") || (('_' + e.name.upperAscii() + '_').matches(" +
                         cel(pattern_of_secret_names()) +
                         ") && !e.value.matches('^[$][(][^)]+[)]$') && !(e.value.startsWith('/') && "
                         "e.name.upperAscii().matches('_(FILE|PATH|DIR)$')))))"),
          "a variable in env looks like a secret; take it from a Secret, by valueFrom.secretKeyRef"};
}

Validation of_gpu_limits() {
  const std::string above_zero = "quantity(c.resources.limits[r]).isGreaterThan(quantity('0'))";
  const std::string limits = "c.?resources.?limits.orValue({})";
  return {all_containers("(!" + limits + ".exists(r, r.startsWith('nvidia.com/') && " + above_zero +
                         ") || ['cpu', 'memory'].all(r, r in " + limits + " && " + above_zero +
                         ")) && !c.?env.orValue([]).exists(e, e.name == 'NVIDIA_VISIBLE_DEVICES' && "
                         "(has(e.valueFrom) || !(e.?value.orValue('') in ['', 'void', 'none'])))"),
          "a container has GPUs without limits of cpu and memory, or NVIDIA_VISIBLE_DEVICES"};
}

Validation of_requests() {
  return {all_containers("['cpu', 'memory'].all(r, r in c.?resources.?limits.orValue({}) && r in "
                         "c.?resources.?requests.orValue({}) && quantity(c.resources.limits[r]).compareTo("
                         "quantity(c.resources.requests[r])) == 0 && "
                         "quantity(c.resources.limits[r]).isGreaterThan(quantity('0')))"),
          "resources.requests of cpu and memory are not resources.limits; give both, and the same"};
}

Validation of_user() {
  return {all_containers("c.?securityContext.?runAsNonRoot.orValue(object.spec.?securityContext.?runAsNonRoot.orValue("
                         "false)) && c.?securityContext.?runAsUser.orValue(object.spec.?securityContext.?runAsUser."
                         "orValue(1)) != 0"),
          "securityContext.runAsNonRoot is not true, or runAsUser is 0"};
}

Validation of_option(ForbiddenOption option, const AdmissionRule& rule) {
  const std::string security = "c.?securityContext.?";
  switch (option) {
    case ForbiddenOption::kExclusive:
    case ForbiddenOption::kNoImage:
      return {};  // no pod is so
    case ForbiddenOption::kRequiredTopology:
      return {"!('berth.dev/topology-required' in object.metadata.?annotations.orValue({}))",
              "the annotation berth.dev/topology-required is not allowed; use berth.dev/topology-preferred"};
    case ForbiddenOption::kPrivileged:
      return {all_containers("!" + security + "privileged.orValue(false) && !" + security +
                             "windowsOptions.?hostProcess.orValue(false)") +
                  " && !object.spec.?securityContext.?windowsOptions.?hostProcess.orValue(false)",
              "securityContext.privileged is true in a container; remove it"};
    case ForbiddenOption::kPrivilegeEscalation:
      return {all_containers("!" + security + "allowPrivilegeEscalation.orValue(true)"),
              "securityContext.allowPrivilegeEscalation is not false in a container; set it to false"};
    case ForbiddenOption::kHostNamespaces:
      return {
          "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) && "
          "!object.spec.?hostIPC.orValue(false)",
          "hostNetwork, hostPID or hostIPC is true; remove it"};
    case ForbiddenOption::kHostPaths:
      return of_host_paths(rule);
    case ForbiddenOption::kHostPorts:
      return {all_containers("c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)"),
              "a container has a hostPort; take a Service"};
    case ForbiddenOption::kAddedCapabilities:
      return {all_containers(security + "capabilities.?add.orValue([]).all(n, n in " +
                             listed_in_cel(kBaselineCapabilities) + ")"),
              "securityContext.capabilities.add has what the standard baseline does not allow; remove it"};
    case ForbiddenOption::kKeptCapabilities:
      return {all_containers("'ALL' in " + security + "capabilities.?drop.orValue([]) && " + security +
                             "capabilities.?add.orValue([]).all(n, n == 'NET_BIND_SERVICE')"),
              "securityContext.capabilities.drop lacks ALL, or add has more than NET_BIND_SERVICE"};
    case ForbiddenOption::kRoot:
      return of_user();
    case ForbiddenOption::kSecretEnv:
      return of_secrets();
    case ForbiddenOption::kGpusWithoutLimits:
      return of_gpu_limits();
    case ForbiddenOption::kRequestsBelowLimits:
      return of_requests();
  }
  return {};
}

std::vector<Validation> validations_of(const AdmissionRule& rule) {
  std::vector<Validation> all;
  if (!rule.images.empty()) all.push_back(of_image(rule));
  if (rule.digest)
    all.push_back({all_containers("c.image.matches('^.+@sha256:[0-9a-f]{64}$')"),
                   "an image is not named by its digest; write it as NAME@sha256:DIGEST"});
  if (rule.max_time_s > 0)
    all.push_back({"object.spec.?activeDeadlineSeconds.orValue(0) > 0 && object.spec.activeDeadlineSeconds <= " +
                       std::to_string(rule.max_time_s),
                   "activeDeadlineSeconds: give one of at most " + std::to_string(rule.max_time_s)});
  if (rule.checkpoint)
    all.push_back({"object.metadata.?annotations[?'berth.dev/checkpoint'].orValue('') == 'on-signal'",
                   "the annotation berth.dev/checkpoint is not on-signal"});
  std::vector<ForbiddenOption> options = forbidden_by(rule);
  if (!rule.host_paths.empty() &&
      std::find(options.begin(), options.end(), ForbiddenOption::kHostPaths) == options.end())
    options.push_back(ForbiddenOption::kHostPaths);
  for (const ForbiddenOption option : options) {
    if (Validation one = of_option(option, rule); !one.expression.empty()) all.push_back(std::move(one));
  }
  for (const std::string& label : rule.labels)
    all.push_back({"object.metadata.?labels[?" + cel(label) + "].orValue('') != ''",
                   "label '" + label + "' is missing; give it a value"});
  return all;
}

// Returns why no policy says the rule; empty: one does, if it has validations.
std::string why_not_said(const AdmissionRule& rule) {
  if (!rule.classes.empty()) return "it is for some classes, and a pod need not say of which it is";
  if (rule.above_gpu_milli >= 0) return "it is for jobs of some size, and an API server sees one pod of them";
  if (!rule.roles.empty() && std::find(rule.roles.begin(), rule.roles.end(), Role::kMember) == rule.roles.end())
    return "it is for roles that no pod has";
  return {};
}

std::string action_of(AdmissionMode mode) {
  switch (mode) {
    case AdmissionMode::kEnforce:
      return "Deny";
    case AdmissionMode::kWarn:
      return "Warn";
    case AdmissionMode::kDryRun:
      return "Audit";
  }
  return {};
}

std::string words_of_queue(std::string_view queue) {
  return queue.empty() ? "the cluster" : "queue '" + std::string(queue) + "'";
}

std::string digits_of(std::uint64_t hash) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(hash >> static_cast<unsigned>(shift)) & 15U];
  return text;
}

// Returns the name of an object: what can be read of the text, and what tells it from all others.
std::string object_name(const std::string& text) {
  std::string name = "berth-";
  for (const char letter : text.substr(0, kMostName)) {
    const char low = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    name += (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9') ? low : '-';
  }
  return name + "-" + digits_of(Hasher().add(text).digest());
}

Node object_node(std::string_view kind, const std::string& name) {
  Node object = map_node();
  object.set("apiVersion", string_node(kVersion));
  object.set("kind", string_node(kind));
  Node metadata = map_node();
  metadata.set("name", string_node(name));
  object.set("metadata", std::move(metadata));
  return object;
}

Node one_of_list(std::string_view text) {
  Node list = list_node();
  list.items.push_back(string_node(text));
  return list;
}

Node policy_node(const std::string& name, const RuleOfQueue& one, const std::vector<Validation>& validations) {
  Node what = map_node();
  what.set("apiGroups", one_of_list(""));
  what.set("apiVersions", one_of_list("v1"));
  what.set("operations", one_of_list("CREATE"));
  what.set("resources", one_of_list("pods"));
  Node rules = list_node();
  rules.items.push_back(std::move(what));
  Node matched = map_node();
  matched.set("resourceRules", std::move(rules));
  Node variable = map_node();
  variable.set("name", string_node("containers"));
  variable.set("expression", string_node("object.spec.containers + object.spec.?initContainers.orValue([])"));
  Node variables = list_node();
  variables.items.push_back(std::move(variable));
  Node list = list_node();
  for (const Validation& each : validations) {
    Node validation = map_node();
    validation.set("expression", string_node(each.expression));
    validation.set("message", string_node(each.message + " (rule '" + one.rule.name + "' of " +
                                          words_of_queue(one.queue) + " of berth)"));
    list.items.push_back(std::move(validation));
  }
  Node spec = map_node();
  spec.set("failurePolicy", string_node("Fail"));
  spec.set("matchConstraints", std::move(matched));
  spec.set("variables", std::move(variables));
  spec.set("validations", std::move(list));
  Node policy = object_node("ValidatingAdmissionPolicy", name);
  policy.set("spec", std::move(spec));
  return policy;
}

Node binding_node(const std::string& name, const std::string& policy, const std::string& label, AdmissionMode mode) {
  Node labels = map_node();
  labels.set(kRulesLabel, string_node(label));
  Node selector = map_node();
  selector.set("matchLabels", std::move(labels));
  Node matched = map_node();
  matched.set("namespaceSelector", std::move(selector));
  Node spec = map_node();
  spec.set("policyName", string_node(policy));
  spec.set("validationActions", one_of_list(action_of(mode)));
  spec.set("matchResources", std::move(matched));
  Node binding = object_node("ValidatingAdmissionPolicyBinding", name);
  binding.set("spec", std::move(spec));
  return binding;
}

}  // namespace

Result<std::string> policies_of(const std::vector<RuleOfQueue>& rules, std::string_view queue) {
  if (queue == kLabelOfRoot || queue.find('.') != std::string_view::npos)
    return invalid("queue '" + std::string(queue) +
                   "': its label would be that of another one too; rename it, with no dot in its path, and not " +
                   std::string(kLabelOfRoot));
  std::string label(queue.empty() ? kLabelOfRoot : queue);
  std::replace(label.begin(), label.end(), '/', '.');
  if (label.size() > kMostLabel)
    return invalid("queue '" + std::string(queue) + "': its path is longer than the " + std::to_string(kMostLabel) +
                   " letters of a label");
  std::string text = "# The admission rules of berth at " + words_of_queue(queue) +
                     ". They hold in namespaces with the label " + std::string(kRulesLabel) + ": " + label + "\n";
  for (const RuleOfQueue& one : rules) {
    const std::string words = "# Rule '" + one.rule.name + "' of " + words_of_queue(one.queue);
    const std::vector<Validation> validations = validations_of(one.rule);
    std::string why = why_not_said(one.rule);
    if (why.empty() && validations.empty()) why = "an API server sees one pod, and not the job";
    if (!why.empty()) {
      text += words + " is not said here: " + why + ".\n";
      continue;
    }
    if (one.rule.max_gpu_milli) text += words + ": max_gpus is not said here, as it is for a whole job.\n";
    const std::string policy = object_name(one.queue + "/" + one.rule.name);
    const std::string binding = object_name(label + "/" + policy.substr(std::string_view("berth-").size()));
    text += "---\n" + to_yaml(policy_node(policy, one, validations)) + "---\n" +
            to_yaml(binding_node(binding, policy, label, one.rule.mode));
  }
  return text;
}

}  // namespace berth::document
