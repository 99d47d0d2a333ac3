#pragma once
// All shells in pods of one server. A thread of its own moves their bytes (pod_shell.h); it begins with the first of
// them.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "backend/kubernetes/http.h"
#include "backend/kubernetes/pod_shell.h"
#include "kube/cluster.h"

namespace berth::backend {

class PodShells {
 public:
  static constexpr std::size_t kMostOfOnePod = 16;
  static constexpr std::size_t kMostOfAll = 512;

  explicit PodShells(Http& http);
  ~PodShells();
  PodShells(const PodShells&) = delete;
  PodShells& operator=(const PodShells&) = delete;

  // Looks at the pod first: another one may have its name by now, and it says which container is meant. Belongs to the
  // thread of `http`; the answer comes there or on the thread of the shells.
  void open(const kube::PodPlace& pod, const ShellBegin& begin, ShellAnswer answer);
  // Ends all, and answers what waits. Requires that `http` calls back no more. Called again it changes nothing.
  void stop();

 private:
  struct Opening {
    kube::PodPlace pod;
    std::string container;
    ShellBegin begin;
    ShellAnswer answer;
  };
  struct Open {
    std::string uid;
    std::unique_ptr<PodShell> shell;
  };

  void looked(std::uint64_t id, const HttpAnswer& answer);
  void pass_to_thread(Opening opening);
  void run();
  void take_incoming(std::vector<Open>& shells);
  void begin(Opening opening, std::vector<Open>& shells);
  void wait(const std::vector<Open>& shells) const;

  Http& http_;
  const Credentials credentials_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Opening> looking_;

  std::mutex mutex_;  // guards the next
  std::vector<Opening> incoming_;
  std::atomic<bool> stopping_{false};
  int wake_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace berth::backend
