#include "kube/own_pod.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "kube/device.h"
#include "kube/json_reading.h"
#include "kube/pod_object.h"
#include "kube/pod_volumes.h"
#include "kube/rank_script.h"
#include "model/volume_directory.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostLabel = 63;
constexpr std::size_t kMostAnnotation = 4096;
// The limit of the job holds from the start of its attempt, and berth sees to it. The kubelet's holds while berth is
// away, and counts from before the image is pulled.
constexpr std::int64_t kPullPatienceS = 600;

std::string host_of_task(std::uint32_t task) { return "task-" + std::to_string(task); }

bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// Returns the text as the value of a label, or nothing if it cannot be one.
std::string label_value(std::string text) {
  std::replace(text.begin(), text.end(), '/', '.');
  const bool fits =
      !text.empty() && text.size() <= kMostLabel && is_plain(text.front()) && is_plain(text.back()) &&
      std::all_of(text.begin(), text.end(), [](char c) { return is_plain(c) || c == '-' || c == '_' || c == '.'; });
  return fits ? text : std::string();
}

// Kubernetes replaces $(NAME) in commands and values, and $$ stands for one $.
std::string literal(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled += c == '$' ? std::string("$$") : std::string(1, c);
  return doubled;
}

std::string last_value(const Environment& env, std::string_view name) {
  for (auto one = env.rbegin(); one != env.rend(); ++one) {
    if (one->first == name) return one->second;
  }
  return {};
}

json::object labels_of(const StartTask& start, const std::string& log) {
  json::object labels{{"app.kubernetes.io/managed-by", "berth"},
                      {"berth.dev/server", mark_of_log(log)},
                      {"berth.dev/job", std::to_string(start.key.job.value())},
                      {"berth.dev/attempt", std::to_string(start.key.attempt)}};
  return labels;
}

json::object metadata_of(const StartTask& start, const std::string& log, const std::string& space) {
  json::object labels = labels_of(start, log);
  labels["berth.dev/task"] = std::to_string(start.key.task);
  const std::string queue = queue_of_start(start);
  if (const std::string value = label_value(queue); !value.empty()) labels["berth.dev/queue"] = value;
  return {{"name", name_of_pod(start.key, log)},
          {"namespace", space},
          {"labels", std::move(labels)},
          {"annotations",
           {{kTaskAnnotation, text_of_task(start.key)},
            {kLogAnnotation, log},
            {"berth.dev/queue", shown(queue, kMostAnnotation)},
            {"berth.dev/job-name", shown(start.job_name, kMostAnnotation)},
            {"berth.dev/user", shown(start.user, kMostAnnotation)}}}};
}

// The kubelet chooses the devices; their plugin names them to the container.
bool is_of_the_node(std::string_view name) { return name == "CUDA_VISIBLE_DEVICES"; }

// Where the container finds the token by which it reports saves: in a file, and never in its environment.
constexpr std::string_view kSaveVolume = "berth-saves";
constexpr std::string_view kSaveDirectory = "/berth/saves";
constexpr std::string_view kSaveFile = "token";
constexpr int kSaveMode = 0440;  // the file is root's, and of the group that the container runs as

json::array environment_of(const StartTask& start, const OwnPods& own, const std::string& master) {
  Environment env{{"HOME", "/tmp"}};
  const auto put = [&env](const std::string& name, const std::string& value) {
    std::erase_if(env, [&](const auto& one) { return one.first == name; });
    env.emplace_back(name, value);
  };
  for (const auto& [name, value] : start.env) {
    if (!is_of_the_node(name)) put(name, value);
  }
  if (!master.empty()) put("MASTER_ADDR", master);
  if (!own.saves.server.empty()) {
    put("BERTH_SAVE_SERVER", own.saves.server);
    put("BERTH_SAVE_TOKEN_FILE", std::string(kSaveDirectory) + "/" + std::string(kSaveFile));
  }
  if (start.ranks.size() == 1) {
    for (const auto& [name, value] : start.ranks.front()) put(name, value);
  }
  json::array list;
  for (const auto& [name, value] : env) list.push_back(json::object{{"name", name}, {"value", literal(value)}});
  return list;
}

// The core names the node of task 0 where torchrun is told its address; a pod has one of its own.
std::vector<std::string> command_of(const StartTask& start, const std::string& master) {
  std::vector<std::string> command = start.command;
  if (start.signal_workers && !master.empty()) {
    const std::string before = last_value(start.env, "MASTER_ADDR");
    const std::string port = last_value(start.env, "MASTER_PORT");
    for (std::size_t at = 1; at + 1 < command.size(); ++at) {
      if (command[at] == "--master_addr" && command[at + 1] == before) command[at + 1] = master;
      if (command[at] == "--rdzv_endpoint" && command[at + 1] == before + ":" + port)
        command[at + 1] = master + ":" + port;
      if (command[at] == "--master_addr" || command[at] == "--rdzv_endpoint") break;  // the rest is the user's
    }
  }
  if (start.ranks.size() > 1) {
    std::vector<std::string> shell{"/bin/sh", "-c",
                                   rank_script(start.ranks, std::max<std::int64_t>(1, start.grace_ms / 1000)), "berth"};
    command.insert(command.begin(), shell.begin(), shell.end());
  }
  return command;
}

json::object resources_of(const StartTask& start) {
  json::object amounts;
  if (start.cpu_milli > 0) amounts["cpu"] = std::to_string(start.cpu_milli) + "m";
  if (start.memory_mib > 0) amounts["memory"] = std::to_string(start.memory_mib) + "Mi";
  for (const auto& [resource, count] : start.countables)
    amounts[resource] = std::to_string(count) + (is_huge_pages(resource) ? "Mi" : "");
  for (const auto& [resource, count] : devices_in(start.gpu_uuids)) amounts[resource] = std::to_string(count);
  return {{"requests", amounts}, {"limits", amounts}};
}

// The pod gets no other signal than SIGTERM. So a hook sends the one that the job wants, and waits for its end.
json::object hook_for(std::int32_t signal) {
  const std::string script = "kill -" + std::to_string(signal) + " 1; while kill -0 1 2>/dev/null; do sleep 1; done";
  return {{"preStop", {{"exec", {{"command", json::array{"/bin/sh", "-c", literal(script)}}}}}}};
}

json::object container_of(const StartTask& start, const OwnPods& own, const std::string& master,
                          const std::string& log) {
  constexpr std::int32_t kTerm = 15;
  json::object container{
      {"name", kContainer},
      {"image", start.image},
      {"env", environment_of(start, own, master)},
      {"resources", resources_of(start)},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"securityContext", {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", json::array{"ALL"}}}}}},
      {"volumeMounts", mounts_of(start, log)}};
  if (!own.saves.server.empty())
    container["volumeMounts"].as_array().push_back(
        json::object{{"name", kSaveVolume}, {"mountPath", kSaveDirectory}, {"readOnly", true}});
  json::array command;
  for (const std::string& word : command_of(start, master)) command.emplace_back(literal(word));
  if (!command.empty()) container["command"] = std::move(command);
  if (!start.workdir.empty()) container["workingDir"] = start.workdir;
  if (start.stop_signal != kTerm) container["lifecycle"] = hook_for(start.stop_signal);
  return container;
}

json::array tolerations_of(const std::vector<Taint>& taints) {
  json::array tolerations;
  for (const Taint& taint : taints) {
    if (taint.key.starts_with("node.kubernetes.io/")) continue;  // conditions, which come and go
    tolerations.push_back(json::object{{"key", taint.key}, {"operator", "Exists"}});
  }
  return tolerations;
}

}  // namespace

std::string space_of_queue(const OwnPods& own, std::string_view queue) {
  for (std::string_view at = queue; !at.empty();) {
    for (const auto& [path, space] : own.spaces) {
      if (path == at) return space;
    }
    const std::size_t slash = at.rfind('/');
    at = slash == std::string_view::npos ? std::string_view() : at.substr(0, slash);
  }
  return own.space;
}

std::vector<std::string> spaces_of(const OwnPods& own) {
  std::vector<std::string> spaces;
  if (own.space.empty()) return spaces;
  spaces.push_back(own.space);
  for (const auto& [queue, space] : own.spaces) spaces.push_back(space);
  std::sort(spaces.begin(), spaces.end());
  spaces.erase(std::unique(spaces.begin(), spaces.end()), spaces.end());
  return spaces;
}

std::string name_of_pod(const TaskKey& key, std::string_view log) {
  return "berth-" + std::to_string(key.job.value()) + "-" + std::to_string(key.attempt) + "-" +
         std::to_string(key.task) + "-" + std::to_string(key.incarnation) + "-" + mark_of_log(log);
}

std::string name_of_gang(const TaskKey& key, std::string_view log) {
  return "berth-" + std::to_string(key.job.value()) + "-" + std::to_string(key.attempt) + "-" + mark_of_log(log);
}

bool has_gang(const StartTask& start) { return !last_value(start.env, "MASTER_PORT").empty(); }

std::string queue_of_start(const StartTask& start) { return last_value(start.env, "BERTH_QUEUE"); }

json::object pod_of(const StartTask& start, const OwnPods& own, const std::vector<Taint>& taints,
                    const std::string& scheduler, const std::string& log) {
  const std::string space = space_of_queue(own, queue_of_start(start));
  const std::string gang = has_gang(start) ? name_of_gang(start.key, log) : std::string();
  const std::string master = gang.empty() ? std::string() : host_of_task(0) + "." + gang + "." + space + ".svc";
  json::object spec{{"schedulerName", scheduler},
                    {"nodeName", start.node},
                    {"hostname", host_of_task(start.key.task)},
                    {"restartPolicy", "Never"},
                    {"terminationGracePeriodSeconds", std::max<std::int64_t>(1, start.grace_ms / 1000)},
                    {"automountServiceAccountToken", false},
                    {"enableServiceLinks", false},
                    {"securityContext",
                     {{"runAsNonRoot", true},
                      {"runAsUser", own.user},
                      {"runAsGroup", own.user},
                      {"fsGroup", own.user},
                      {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
                    {"tolerations", tolerations_of(taints)},
                    {"volumes", volumes_of(start)},
                    {"containers", json::array{container_of(start, own, master, log)}}};
  // Otherwise each start goes through all files of a volume and gives them to the group.
  if (!start.volumes.empty()) spec["securityContext"].as_object()["fsGroupChangePolicy"] = "OnRootMismatch";
  if (!own.saves.server.empty())
    spec["volumes"].as_array().push_back(json::object{
        {"name", kSaveVolume}, {"secret", {{"secretName", name_of_pod(start.key, log)}, {"defaultMode", kSaveMode}}}});
  if (!gang.empty()) spec["subdomain"] = gang;
  if (start.time_limit_ms > 0) spec["activeDeadlineSeconds"] = (start.time_limit_ms + 999) / 1000 + kPullPatienceS;
  return {
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata_of(start, log, space)}, {"spec", std::move(spec)}};
}

json::object service_of(const StartTask& start, const std::string& log, const std::string& space,
                        const std::string& pod_name, const std::string& pod_uid) {
  const json::object labels = labels_of(start, log);
  json::object owner{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod_name}, {"uid", pod_uid}};
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"name", name_of_gang(start.key, log)},
            {"namespace", space},
            {"labels", labels},
            {"ownerReferences", json::array{std::move(owner)}}}},
          {"spec", {{"clusterIP", "None"}, {"publishNotReadyAddresses", true}, {"selector", labels}}}};
}

json::object save_secret_of(const StartTask& start, const OwnPods& own, const std::string& log,
                            const std::string& pod_uid) {
  const std::string name = name_of_pod(start.key, log);
  json::object owner{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", name}, {"uid", pod_uid}};
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", name},
            {"namespace", space_of_queue(own, queue_of_start(start))},
            {"labels", labels_of(start, log)},
            {"ownerReferences", json::array{std::move(owner)}}}},
          {"type", "berth.dev/save-token"},
          {"immutable", true},
          {"stringData", {{kSaveFile, own.saves.token(start.key)}}}};
}

Result<void> check_own_job(const JobSpec& job, const OwnPods& own) {
  if (own.space.empty())
    return Error{ErrorCode::kUnsupported,
                 "this server makes no pods of its own (berth serve --job-namespace); make them in the cluster"};
  for (const TaskGroup& group : job.groups) {
    const std::string where = job.groups.size() > 1 ? "group '" + group.name + "': " : std::string();
    if (group.image.empty())
      return Error{ErrorCode::kUnsupported, where +
                                                "image is missing: tasks are pods here; give one (--image), or have a "
                                                "default_image configured for the queue"};
    if (group.request.is_share() || !group.request.mig_profile.empty())
      return Error{ErrorCode::kUnsupported, where +
                                                "shares of GPUs and MIG instances are not given to pods yet; ask "
                                                "for whole GPUs"};
    if (group.launch == Launch::kPerGpu && group.command.empty())
      return invalid(where + "launch per-gpu starts a command for each GPU; give it");
  }
  return {};
}

}  // namespace berth::kube
