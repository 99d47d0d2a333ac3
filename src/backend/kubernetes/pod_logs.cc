#include "backend/kubernetes/pod_logs.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <limits>
#include <memory>
#include <utility>

#include "kube/default_container.h"
#include "kube/json_reading.h"

namespace berth::backend {
namespace {

constexpr std::chrono::milliseconds kTimeout{15'000};
constexpr std::size_t kMostPlaces = 8;  // of one pod: as many readers as have a place of their own

std::string path_of(const kube::PodPlace& pod) { return "/api/v1/namespaces/" + pod.space + "/pods/" + pod.name; }

std::string shown(const kube::PodPlace& pod) { return pod.space + "/" + pod.name; }

std::string container_of(const HttpAnswer& answer) {
  boost::json::error_code error;
  const boost::json::value pod = boost::json::parse(answer.body, error);
  return error || !pod.is_object() ? std::string() : kube::default_container_of(pod.get_object());
}

}  // namespace

void PodLogs::read(const kube::PodPlace& pod, const LogQuery& query, LogAnswer answer) {
  if (waiting_.size() >= kMostWaiting)
    return answer(Error{ErrorCode::kUnavailable, "too many logs are being read; try again in a moment"});
  waiting_.push_back({pod, query, std::move(answer), {}});
  next();
}

void PodLogs::give_up() {
  const Error stopping{ErrorCode::kUnavailable, "the server is stopping"};
  for (auto& [id, one] : std::exchange(reads_, {})) one.answer(stopping);
  for (Read& one : std::exchange(waiting_, {})) one.answer(stopping);
}

void PodLogs::next() {
  while (reads_.size() < kMostReads && !waiting_.empty()) {
    const std::uint64_t id = next_id_++;
    reads_.emplace(id, std::move(waiting_.front()));
    waiting_.pop_front();
    begin(id);
  }
}

void PodLogs::begin(std::uint64_t id) {
  Read& one = reads_.at(id);
  one.container = one.pod.own ? std::string(kube::kContainer) : known(one.pod.uid).container;
  if (one.container.empty()) return ask_container(id);
  if (one.query.from < 0) return measure(id);
  fetch(id);
}

void PodLogs::ask_container(std::uint64_t id) {
  HttpCall call;
  call.path = path_of(reads_.at(id).pod);
  call.timeout = kTimeout;
  call.done = [this, id](const HttpAnswer& answer) {
    const auto found = reads_.find(id);
    if (found == reads_.end() || refuse(id, answer)) return;
    const std::string name = container_of(answer);
    if (name.empty()) return finish(id, not_found("pod " + shown(found->second.pod) + " has no container"));
    known(found->second.pod.uid).container = name;
    begin(id);
  };
  http_.send(std::move(call));
}

// An offset from the end needs the length.
void PodLogs::measure(std::uint64_t id) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const kube::LogPlace place = place_before(reads_.at(id).pod.uid, kEnd);
  send(id, place, kEnd, 0, [this, id](const HttpAnswer&, const kube::LogReading& reading) {
    LogQuery& query = reads_.at(id).query;
    query.from = std::max<std::int64_t>(0, reading.end() + query.from);
    fetch(id);
  });
}

void PodLogs::fetch(std::uint64_t id) {
  const Read& one = reads_.at(id);
  const kube::LogPlace place = place_before(one.pod.uid, one.query.from);
  send(id, place, one.query.from, one.query.max_bytes,
       [this, id](const HttpAnswer& answer, const kube::LogReading& reading) { fetched(id, answer, reading); });
}

// Asks for the log from `place` on. `done` is called only if it came.
void PodLogs::send(std::uint64_t id, const kube::LogPlace& place, std::int64_t from, std::int64_t max_bytes,
                   std::function<void(const HttpAnswer&, const kube::LogReading&)> done) {
  const Read& one = reads_.at(id);
  const auto reading = std::make_shared<kube::LogReading>(place, from, max_bytes, one.is_cut);
  HttpCall call;
  call.path = path_of(one.pod) + "/log?container=" + one.container + "&" + kube::log_query(place);
  call.timeout = kTimeout;
  call.on_bytes = [reading](std::string_view bytes) { reading->take(bytes); };
  call.done = [this, id, reading, done = std::move(done)](const HttpAnswer& answer) {
    const auto found = reads_.find(id);
    if (found == reads_.end() || refuse(id, answer)) return;
    if (reading->found()) return done(answer, *reading);
    found->second.is_cut = true;  // the node has begun a new file
    begin(id);
  };
  http_.send(std::move(call));
}

void PodLogs::fetched(std::uint64_t id, const HttpAnswer& /*answer*/, const kube::LogReading& reading) {
  const Read& one = reads_.at(id);
  const std::int64_t from = std::min(one.query.from, reading.end());
  const auto size = static_cast<std::int64_t>(reading.bytes().size());
  remember(one.pod.uid, reading.last());
  finish(id, LogPart{from, from + size, reading.bytes()});
}

// Answers if the log did not come, and returns true then.
bool PodLogs::refuse(std::uint64_t id, const HttpAnswer& answer) {
  if (answer.ok()) return false;
  const Read& one = reads_.at(id);
  const std::string why = answer.status == 0 ? answer.failure : message_of(answer);
  const bool not_yet = answer.status == 400 && why.find("waiting to start") != std::string::npos;
  if (not_yet) {
    const std::int64_t from = std::max<std::int64_t>(0, one.query.from);
    finish(id, LogPart{from, from, {}});
  } else if (answer.status == 404) {
    finish(id, not_found("pod " + shown(one.pod) + " is gone, and its log with it"));
  } else {
    const ErrorCode code = answer.status == 403 ? ErrorCode::kUnsupported : ErrorCode::kUnavailable;
    finish(id, Error{code, "the log of pod " + shown(one.pod) +
                               " could not be read from its node: " + kube::shown(why, 300)});
  }
  return true;
}

void PodLogs::finish(std::uint64_t id, Result<LogPart> part) {
  const LogAnswer answer = std::move(reads_.at(id).answer);
  reads_.erase(id);
  answer(std::move(part));
  next();
}

kube::LogPlace PodLogs::place_before(const std::string& uid, std::int64_t offset) const {
  const auto found = known_.find(uid);
  if (found == known_.end()) return {};
  const auto behind = found->second.places.upper_bound(offset);
  return behind == found->second.places.begin() ? kube::LogPlace() : std::prev(behind)->second;
}

void PodLogs::remember(const std::string& uid, const kube::LogPlace& place) {
  if (place.time.empty()) return;
  auto& places = known(uid).places;
  places[place.offset] = place;
  if (places.size() > kMostPlaces) places.erase(places.begin());
}

PodLogs::Known& PodLogs::known(const std::string& uid) {
  Known& one = known_[uid];
  one.used = ++used_;
  if (known_.size() > kMostPods) {
    known_.erase(std::min_element(known_.begin(), known_.end(),
                                  [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  return one;
}

}  // namespace berth::backend
