#pragma once
// A task of a job that was submitted to berth with an image, as the Pod that it is. The pod is bound to its node when
// it is made, and carries the key of its task. Its name follows from that key, so that making it twice is making it
// once. No text of a user gets into a name or label that the API server would refuse.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/effect.h"
#include "model/job.h"
#include "model/node.h"

namespace berth::kube {

// How a pod reports to the server that its job has saved (docs/data.md).
struct SaveReports {
  std::string server;                                // its address; empty: pods report nothing
  std::function<std::string(const TaskKey&)> token;  // what may report the saves of this attempt, and nothing else
};

// Where and how the pods of berth's own jobs are made.
struct OwnPods {
  std::string space;                                        // namespace; empty: none are made
  std::vector<std::pair<std::string, std::string>> spaces;  // of these queues and all below them, another namespace
  std::int64_t user = 65'532;                               // that containers run as, and their group
  std::int64_t keep_s = 3600;                               // how long a pod is kept after its end
  std::size_t keep = 1000;                                  // pods that are kept after their end
  SaveReports saves = {};
};

inline constexpr std::string_view kContainer = "main";  // name of the container of an own pod

// Returns the namespace of the pods of a queue: that of the table for it or the nearest queue above it.
std::string space_of_queue(const OwnPods& own, std::string_view queue);
// Returns all namespaces in which own pods may be, each once.
std::vector<std::string> spaces_of(const OwnPods& own);

// Returns the name of the task's pod, such as berth-12-1-0-1-0f3a99c2; the end stands for the log `log`, so that two
// servers can make pods in one namespace.
std::string name_of_pod(const TaskKey& key, std::string_view log);
// Returns the name of the headless Service of the attempt. `task-0` of it is the host name of task 0.
std::string name_of_gang(const TaskKey& key, std::string_view log);

// Returns whether other tasks find the task's gang by name.
bool has_gang(const StartTask& start);
// Returns the queue of the task's job.
std::string queue_of_start(const StartTask& start);

// Returns the Pod. `taints` are those of its node: that the task may be there was decided already.
boost::json::object pod_of(const StartTask& start, const OwnPods& own, const std::vector<Taint>& taints,
                           const std::string& scheduler, const std::string& log);
// Returns the Service of the gang. The pod of task 0 owns it: it goes when that pod is deleted.
boost::json::object service_of(const StartTask& start, const std::string& log, const std::string& space,
                               const std::string& pod_name, const std::string& pod_uid);

// Returns the Secret with the token by which the task reports saves. Its pod mounts it, and owns it. Requires:
// own.saves has a server.
boost::json::object save_secret_of(const StartTask& start, const OwnPods& own, const std::string& log,
                                   const std::string& pod_uid);

// Says what of the job cannot run as pods.
Result<void> check_own_job(const JobSpec& job, const OwnPods& own);

}  // namespace berth::kube
