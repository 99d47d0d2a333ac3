#include "backend/kubernetes/pod_shells.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "kube/default_container.h"
#include "kube/json_reading.h"
#include "kube/pod_exec.h"

namespace berth::backend {
namespace {

constexpr const char* kStopping = "the server is stopping";
constexpr int kLongestWaitMs = 60'000;
constexpr std::size_t kMostLooks = 64;

std::string name_of(const kube::PodPlace& pod) { return pod.space + "/" + pod.name; }

// Returns the container, or why there can be no shell in the pod.
Result<std::string> container_for(const kube::PodPlace& place, const HttpAnswer& answer) {
  if (answer.status == 404) return conflict("pod " + name_of(place) + " is gone");
  if (!answer.ok())
    return Error{ErrorCode::kUnavailable,
                 "pod " + name_of(place) + " could not be looked at: " + kube::shown(message_of(answer), 300)};
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(answer.body, error);
  if (error || !value.is_object())
    return Error{ErrorCode::kUnavailable, "what the API server says of pod " + name_of(place) + " is no object"};
  const boost::json::object& pod = value.get_object();
  if (kube::text_at(pod, {"metadata", "uid"}) != place.uid)
    return conflict("pod " + name_of(place) + " is gone: another one has its name now");
  std::string container = kube::default_container_of(pod);
  if (container.empty()) return conflict("pod " + name_of(place) + " has no container");
  return container;
}

}  // namespace

PodShells::PodShells(Http& http)
    : http_(http), credentials_(http.credentials()), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

PodShells::~PodShells() {
  stop();
  ::close(wake_);
}

void PodShells::open(const kube::PodPlace& pod, const ShellBegin& begin, ShellAnswer answer) {
  if (looking_.size() >= kMostLooks)
    return answer(Error{ErrorCode::kUnavailable, "too many shells are being opened in pods; try again"});
  const std::uint64_t id = next_id_++;
  looking_.emplace(id, Opening{pod, {}, begin, std::move(answer)});
  HttpCall call;
  call.path = "/api/v1/namespaces/" + pod.space + "/pods/" + pod.name;
  call.done = [this, id](const HttpAnswer& said) { looked(id, said); };
  http_.send(std::move(call));
}

void PodShells::looked(std::uint64_t id, const HttpAnswer& answer) {
  const auto found = looking_.find(id);
  if (found == looking_.end()) return;
  Opening opening = std::move(found->second);
  looking_.erase(found);
  auto container = container_for(opening.pod, answer);
  if (!container) return opening.answer(container.error());
  opening.container = std::move(*container);
  pass_to_thread(std::move(opening));
}

void PodShells::pass_to_thread(Opening opening) {
  {
    const std::lock_guard lock(mutex_);
    incoming_.push_back(std::move(opening));
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  ::eventfd_write(wake_, 1);
}

void PodShells::stop() {
  stopping_ = true;
  ::eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  for (auto& [id, one] : std::exchange(looking_, {})) one.answer(Error{ErrorCode::kUnavailable, kStopping});
}

void PodShells::run() {
  std::vector<Open> shells;
  while (!stopping_) {
    take_incoming(shells);
    const Clock::time_point now = Clock::now();
    for (const Open& one : shells) one.shell->attend(now);
    std::erase_if(shells, [](const Open& one) { return one.shell->is_over(); });
    wait(shells);
  }
  take_incoming(shells);
  for (const Open& one : shells) one.shell->give_up(kStopping);
}

void PodShells::take_incoming(std::vector<Open>& shells) {
  std::vector<Opening> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(incoming_);
  }
  for (Opening& one : taken) begin(std::move(one), shells);
}

void PodShells::begin(Opening opening, std::vector<Open>& shells) {
  const auto same =
      std::count_if(shells.begin(), shells.end(), [&](const Open& one) { return one.uid == opening.pod.uid; });
  if (static_cast<std::size_t>(same) >= kMostOfOnePod)
    return opening.answer(conflict("this task has " + std::to_string(kMostOfOnePod) + " shells already; close one"));
  if (shells.size() >= kMostOfAll)
    return opening.answer(Error{ErrorCode::kUnavailable, "this server has " + std::to_string(kMostOfAll) +
                                                             " shells in pods already; try again later"});
  shells.push_back(
      {opening.pod.uid, std::make_unique<PodShell>(
                            credentials_, name_of(opening.pod),
                            kube::exec_path(opening.pod.space, opening.pod.name, opening.container, opening.begin),
                            opening.begin, Clock::now(), std::move(opening.answer))});
}

void PodShells::wait(const std::vector<Open>& shells) const {
  std::vector<pollfd> waited{{wake_, POLLIN, 0}};
  Clock::time_point due = Clock::time_point::max();
  for (const Open& one : shells) {
    one.shell->add_waited(waited);
    due = std::min(due, one.shell->due_at());
  }
  int wait_ms = kLongestWaitMs;
  if (due != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count();
    wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongestWaitMs));
  }
  ::poll(waited.data(), waited.size(), wait_ms);
  eventfd_t rung = 0;
  ::eventfd_read(wake_, &rung);
}

}  // namespace berth::backend
