#include "kube/queue_objects.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/hash.h"
#include "kube/json_reading.h"
#include "model/document/quantity.h"

namespace berth::kube {
namespace {

namespace json = boost::json;

constexpr const char* kQueues = "/apis/berth.dev/v1alpha1/queues";
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestWhy = 500;

bool may_be_in_a_name(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; }

std::string hash_text(const std::string& path) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::uint64_t digest = Hasher().add(std::string_view(path)).digest();
  std::string text;
  for (int i = 0; i < 8; ++i, digest >>= 4U) text.push_back(kDigits[digest & 15U]);
  return text;
}

json::object spec_of(const QueueSummary& queue) {
  const std::size_t slash = queue.path.rfind('/');
  json::object spec{{"path", queue.path},
                    {"parent", slash == std::string::npos ? std::string() : queue.path.substr(0, slash)},
                    {"weight", queue.weight}};
  if (queue.guaranteed_milli) spec["guaranteedGPUs"] = document::milli_text(*queue.guaranteed_milli);
  if (queue.max_milli) spec["maxGPUs"] = document::milli_text(*queue.max_milli);
  if (queue.lending_limit_milli) spec["lendingLimitGPUs"] = document::milli_text(*queue.lending_limit_milli);
  if (!queue.trust_domain.empty()) spec["trustDomain"] = queue.trust_domain;
  return spec;
}

json::object status_of(const QueueSummary& queue) {
  json::object status{{"usedGPUs", document::milli_text(queue.used_milli)},
                      {"borrowedGPUs", document::milli_text(queue.borrowed_milli)},
                      {"lentGPUs", document::milli_text(queue.lent_milli)},
                      {"pending", queue.pending},
                      {"running", queue.running}};
  if (!queue.why.empty()) status["why"] = shown(queue.why, kLongestWhy);
  return status;
}

// Returns the object with its members sorted, so that equal ones are equal texts.
std::string sorted_text(const json::object* object) {
  if (object == nullptr) return "{}";
  std::map<std::string, json::value> sorted;
  for (const auto& member : *object) sorted.emplace(member.key(), member.value());
  std::string text;
  for (const auto& [key, value] : sorted) text += key + "=" + json::serialize(value) + "\n";
  return text;
}

}  // namespace

// Requires: the names in the path begin and end with a letter or digit (model/name.h).
std::string queue_object_name(const std::string& path) {
  std::string name = path.substr(0, kLongestName);
  bool exact = name.size() == path.size() && path.find('.') == std::string::npos;  // a/b is a.b, too
  for (char& c : name) {
    if (c == '/') {
      c = '.';
    } else if (!may_be_in_a_name(c)) {
      const bool upper = c >= 'A' && c <= 'Z';
      c = upper ? static_cast<char>(c - 'A' + 'a') : '-';
      exact = false;
    }
  }
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();  // where it was cut
  return exact ? name : name + "-" + hash_text(path);
}

void QueueObjects::send(Method method, std::string path, std::string content_type, std::string body, Call call) {
  const std::uint64_t id = next_id_++;
  calls_.emplace(id, std::move(call));
  requests_.push_back({id, method, std::move(path), std::move(content_type), std::move(body), false});
}

void QueueObjects::show(const std::vector<QueueSummary>& queues, Timestamp now) {
  wanted_.clear();
  for (const QueueSummary& queue : queues) {
    json::object spec = spec_of(queue);
    json::object status = status_of(queue);
    const std::string name = queue_object_name(queue.path);
    Shown shown{{}, sorted_text(&spec), sorted_text(&status)};
    shown.body = json::serialize(json::object{
        {"apiVersion", "berth.dev/v1alpha1"},
        {"kind", "Queue"},
        {"metadata", json::object{{"name", name}, {"labels", json::object{{"app.kubernetes.io/managed-by", "berth"}}}}},
        {"spec", std::move(spec)},
        {"status", std::move(status)}});
    wanted_.insert_or_assign(name, std::move(shown));
  }
  if (!listing_ && now >= list_at_) {
    listing_ = true;
    return send(Method::kGet, kQueues, "", "", {Asked::kList, {}});  // what is to be written follows its answer
  }
  if (known_) write_some();
}

void QueueObjects::write_some() {
  std::vector<const std::pair<const std::string, Shown>*> differing;
  for (const auto& one : wanted_) {
    const auto there = there_.find(one.first);
    const bool same =
        there != there_.end() && there->second.spec == one.second.spec && there->second.status == one.second.status;
    if (!same && !under_way_.contains(one.first)) differing.push_back(&one);
  }
  const auto turn =
      std::find_if(differing.begin(), differing.end(), [this](const auto* one) { return one->first >= next_; });
  std::rotate(differing.begin(), turn, differing.end());
  if (differing.size() > kMostPerRound) differing.resize(kMostPerRound);
  for (const auto* one : differing) {
    under_way_.insert(one->first);
    wrote_[one->first] = one->second.spec;
    next_ = one->first + '\0';
    send(Method::kPatch, std::string(kQueues) + "/" + one->first + "?fieldManager=berth&force=true",
         "application/apply-patch+yaml", one->second.body, {Asked::kWrite, one->first});
  }
  for (const auto& [name, there] : there_) {
    if (wanted_.contains(name) || under_way_.contains(name)) continue;
    if (!there.ours) {
      warnings_.push_back("Queue " + name + " is no queue of berth's configuration, and shows nothing");
      continue;
    }
    under_way_.insert(name);
    send(Method::kDelete, std::string(kQueues) + "/" + name, "", "", {Asked::kDelete, name});
  }
}

void QueueObjects::listed(std::string_view body) {
  boost::system::error_code error;
  const json::value list = json::parse({body.data(), body.size()}, error);
  if (error || !list.is_object()) return;
  std::map<std::string, There> before = std::move(there_);
  there_.clear();
  for (const json::object* object : objects_at(list.get_object(), {"items"})) {
    const std::string name = text_at(*object, {"metadata", "name"});
    if (name.empty()) continue;
    There there{sorted_text(object_at(*object, {"spec"})), sorted_text(object_at(*object, {"status"})),
                text_at(*object, {"metadata", "labels", "app.kubernetes.io/managed-by"}) == "berth"};
    const auto wrote = wrote_.find(name);
    if (wrote != wrote_.end() && before.contains(name) && there.spec != wrote->second && !under_way_.contains(name))
      warnings_.push_back(
          "Queue " + shown(name, 80) +
          " was changed by somebody; the queues are those of berth's configuration, so it is written over");
    if (const auto wanted = wanted_.find(name); wanted != wanted_.end() && wanted->second.spec == there.spec)
      wrote_[name] = there.spec;  // by a server before this one
    there_.emplace(name, std::move(there));
  }
  known_ = true;
  write_some();
}

// Many writes may be under way: the first refusal speaks for all.
void QueueObjects::denied(std::string_view body, Timestamp now) {
  if (known_ || list_at_ <= now) {
    boost::system::error_code error;
    const json::value answer = json::parse({body.data(), body.size()}, error);
    const std::string why = !error && answer.is_object() ? text_at(answer.get_object(), {"message"}) : std::string();
    warnings_.push_back("queues are not shown as objects: " + shown(why.empty() ? "403" : why, 300));
  }
  known_ = false;
  list_at_ = now + waits_.no_queues_ms;
}

void QueueObjects::answered(std::uint64_t id, int status, std::string_view body, Timestamp now) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const Call call = std::move(found->second);
  calls_.erase(found);
  if (call.asked == Asked::kList) {
    listing_ = false;
    if (status == 403) return denied(body, now);
    list_at_ = now + (status == 404 ? waits_.no_queues_ms : waits_.list_queues_ms);
    if (status == 200) return listed(body);
    if (status == 404) known_ = false;
    return;
  }
  under_way_.erase(call.name);
  if (status == 403) return denied(body, now);
  const bool done = status == 200 || status == 201 || (call.asked == Asked::kDelete && status == 404);
  if (!done) {
    if (status >= 400 && status != 404 && status != 409 && status != 429 && status < 500)
      warnings_.push_back("Queue " + call.name + " could not be written (" + std::to_string(status) +
                          "): " + shown(body, 200));
    list_at_ = now;  // what is there is seen again before the next try
    return;
  }
  if (call.asked == Asked::kDelete) {
    there_.erase(call.name);
    wrote_.erase(call.name);
    return;
  }
  boost::system::error_code error;
  const json::value object = json::parse({body.data(), body.size()}, error);
  if (error || !object.is_object()) return;
  there_[call.name] = {sorted_text(object_at(object.get_object(), {"spec"})),
                       sorted_text(object_at(object.get_object(), {"status"})), true};
}

std::vector<Request> QueueObjects::take() { return std::exchange(requests_, {}); }
std::vector<std::string> QueueObjects::take_warnings() { return std::exchange(warnings_, {}); }

}  // namespace berth::kube
