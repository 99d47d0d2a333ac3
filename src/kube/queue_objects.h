#pragma once
// The quota tree as custom resources (Queue of berth.dev/v1alpha1, cluster scoped): a view for kubectl. berth's
// configuration is the one source of the tree. It does no I/O and reads no clock: requests go out, answers come in.
//
// Rules:
// 1. A queue is one object, named by its path: research/nlp is research.nlp. A path that no object may be named by has
//    its other characters replaced, and a hash behind it.
// 2. An object is written when what it shows differs from what the API server has: one request (server-side apply),
//    which also makes it. At most kMostPerRound are written in a round; the others follow in the next.
// 3. Objects are listed every Waits::list_queues_ms. One that was changed there is told by name and written over.
//    One whose queue is gone is deleted if berth made it (label app.kubernetes.io/managed-by), else it is told.
// 4. Without the resource definition, or the right to write, nothing is written; whether it has come is asked again
//    after Waits::no_queues_ms. A refusal is told once each time.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.h"
#include "kube/cluster.h"
#include "kube/waits.h"
#include "model/queue_summary.h"

namespace berth::kube {

// Returns the name of the object of the queue.
std::string queue_object_name(const std::string& path);

class QueueObjects {
 public:
  static constexpr std::size_t kMostPerRound = 50;
  static constexpr std::uint64_t kFirstId = std::uint64_t{1} << 62U;  // the ids of its requests begin here

  explicit QueueObjects(const Waits& waits = {}) : waits_(waits) {}

  // A round: these are all queues but the root. Requires: the round before is some seconds ago.
  void show(const std::vector<QueueSummary>& queues, Timestamp now);
  // The answer to a request of it. Status 0: none came.
  void answered(std::uint64_t id, int status, std::string_view body, Timestamp now);
  // Takes the requests that have gathered, and what there is to tell.
  std::vector<Request> take();
  std::vector<std::string> take_warnings();

 private:
  struct There {
    std::string spec;
    std::string status;
    bool ours = false;
  };
  struct Shown {
    std::string body;
    std::string spec;
    std::string status;
  };
  enum class Asked { kList, kWrite, kDelete };
  struct Call {
    Asked asked = Asked::kList;
    std::string name;
  };

  void send(Method method, std::string path, std::string content_type, std::string body, Call call);
  void write_some();
  void listed(std::string_view body);
  void denied(std::string_view body, Timestamp now);

  Waits waits_;
  std::map<std::string, Shown> wanted_;       // by name of the object
  std::map<std::string, There> there_;        // as listed last, and as written since
  std::map<std::string, std::string> wrote_;  // the spec that was written last, by name
  std::set<std::string> under_way_;           // names of writes without an answer yet
  std::string next_;                          // where the next round begins
  bool known_ = false;                        // it was listed once
  bool listing_ = false;
  Timestamp list_at_;
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t next_id_ = kFirstId;
  std::vector<Request> requests_;
  std::vector<std::string> warnings_;
};

}  // namespace berth::kube
