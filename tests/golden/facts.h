#pragma once
// What a log says, as lines of text: the digest of the state it folds to, that state's facts field by field, and for
// each kind of event the first and the last one. Compiled at the commit that wrote a golden log, it made the log's
// facts.txt; compiled today, golden_log_test.cc compares with it.

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/document/config_document.h"
#include "model/json.h"
#include "state/state.h"
#include "store/event_codec.h"
#include "store/log.h"

namespace berth::golden {

// A value with the names of its fields: {job: 7, held: true, after: [1 2]}.
class Words {
 public:
  template <class T>
  static std::string of(const T& value) {
    Words words;
    words.put(value);
    return words.text_;
  }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (NamedEnum<T>) {
      text_ += name_of(value);
    } else if constexpr (std::is_integral_v<T>) {
      text_ += std::to_string(value);
    } else if constexpr (std::is_same_v<T, Timestamp>) {
      put(value.ms);
    } else if constexpr (HasFields<T>) {
      text_ += '{';
      const std::uint64_t count = encoded_field_count(value);  // fields that later releases added are left out
      std::uint64_t index = 0;
      for_each_field(value, [&](std::string_view name, const auto& member) {
        if (index++ >= count) return;
        text_ += (text_.back() == '{' ? "" : ", ") + std::string(name) + ": ";
        put(member);
      });
      text_ += '}';
    } else {
      put_composite(value);
    }
  }
  void put_composite(const std::string& text) { text_ += '"' + text + '"'; }
  template <class Tag, class Rep>
  void put_composite(StrongId<Tag, Rep> id) {
    put(id.value());
  }
  template <class T>
  void put_composite(const std::vector<T>& items) {
    put_all(items);
  }
  template <class T, std::size_t N>
  void put_composite(const std::array<T, N>& items) {
    put_all(items);
  }
  template <class Items>
  void put_all(const Items& items) {
    text_ += '[';
    for (const auto& item : items) {
      text_ += text_.back() == '[' ? "" : " ";
      put(item);
    }
    text_ += ']';
  }
  template <class T>
  void put_composite(const std::optional<T>& item) {
    if (item) put(*item);
    if (!item) text_ += "none";
  }
  template <class A, class B>
  void put_composite(const std::pair<A, B>& both) {
    put(both.first);
    text_ += '=';
    put(both.second);
  }

  std::string text_;
};

inline void add_state(std::vector<std::string>& lines, const state::State& state) {
  for (const state::NodeState& node : state.nodes()) lines.push_back("node " + Words::of(node.spec));
  state.jobs().for_each([&](const state::JobState& job) { lines.push_back("job " + Words::of(job)); });
  const std::string config = document::config_to_yaml(state.config());
  for (std::size_t at = 0; at < config.size();) {
    const std::size_t end = std::min(config.find('\n', at), config.size());
    lines.push_back("config " + config.substr(at, end - at));
    at = end + 1;
  }
}

// The lines of a log that can be read to its end; else the error.
inline Result<std::vector<std::string>> facts_of(const store::Log& log) {
  state::State state;
  std::map<std::size_t, std::pair<std::string, std::string>> kinds;
  const auto read = log.read(1, [&](const store::Record& record) -> Result<bool> {
    const auto event = store::to_event(record);
    if (!event) return event.error();
    state.apply(*event);
    auto& [first, last] = kinds[event->event.index()];
    (first.empty() ? first : last) = boost::json::serialize(event_json(*event));
    return true;
  });
  if (!read) return read.error();
  char digest[20];
  std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(state.digest()));
  std::vector<std::string> lines{"events " + std::to_string(state.last_seq()) + " digest " + digest};
  add_state(lines, state);
  for (const auto& [kind, events] : kinds) {
    lines.push_back("event " + events.first);
    if (!events.second.empty()) lines.push_back("event " + events.second);
  }
  return lines;
}

}  // namespace berth::golden
