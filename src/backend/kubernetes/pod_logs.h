#pragma once
// Logs of pods, from their kubelets by way of the API server (the subresource pods/log). Standard output and standard
// error are one stream there. At most kMostReads are read at a time, the others wait.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/kubernetes/http.h"
#include "kube/cluster.h"
#include "kube/log_reading.h"

namespace berth::backend {

class PodLogs {
 public:
  static constexpr std::size_t kMostReads = 32;
  static constexpr std::size_t kMostWaiting = 200;
  static constexpr std::size_t kMostPods = 256;  // whose places are remembered

  explicit PodLogs(Http& http) : http_(http) {}
  // Answers on the thread of `http`. All methods belong to it.
  void read(const kube::PodPlace& pod, const LogQuery& query, LogAnswer answer);
  // Answers all that are waiting: nothing comes any more.
  void give_up();

 private:
  struct Read {
    kube::PodPlace pod;
    LogQuery query;
    LogAnswer answer;
    std::string container;
    bool is_cut = false;
  };
  struct Known {
    std::string container;
    std::map<std::int64_t, kube::LogPlace> places;  // by offset
    std::uint64_t used = 0;
  };

  void next();
  void begin(std::uint64_t id);
  void ask_container(std::uint64_t id);
  void measure(std::uint64_t id);
  void fetch(std::uint64_t id);
  void fetched(std::uint64_t id, const HttpAnswer& answer, const kube::LogReading& reading);
  void send(std::uint64_t id, const kube::LogPlace& place, std::int64_t from, std::int64_t max_bytes,
            std::function<void(const HttpAnswer&, const kube::LogReading&)> done);
  void finish(std::uint64_t id, Result<LogPart> part);
  bool refuse(std::uint64_t id, const HttpAnswer& answer);
  kube::LogPlace place_before(const std::string& uid, std::int64_t offset) const;
  void remember(const std::string& uid, const kube::LogPlace& place);
  Known& known(const std::string& uid);

  Http& http_;
  std::uint64_t next_id_ = 1;
  std::uint64_t used_ = 0;
  std::map<std::uint64_t, Read> reads_;  // under way
  std::deque<Read> waiting_;
  std::map<std::string, Known> known_;  // by uid of the pod
};

}  // namespace berth::backend
