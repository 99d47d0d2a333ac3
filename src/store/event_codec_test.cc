#include "store/event_codec.h"

#include <doctest/doctest.h>

#include <utility>
#include <variant>

#include "base/codec.h"

namespace berth::store {
namespace {

template <std::size_t... I>
std::vector<Event> one_of_each(std::index_sequence<I...>) {
  return {Event(std::in_place_index<I>)...};
}

Record some_record() {
  NodeCordoned cordon;
  cordon.node = NodeId(3);
  cordon.cordoned = true;
  return to_record({7, Timestamp{1234}, cordon}, 2);
}

}  // namespace

TEST_CASE("every kind of event comes back as it was written") {
  for (const Event& event : one_of_each(std::make_index_sequence<std::variant_size_v<Event>>())) {
    const Record record = to_record({7, Timestamp{1234}, event}, 2);
    CHECK(record.kind == event.index());
    const auto back = to_event(record);
    REQUIRE(back.has_value());
    CHECK(back->seq == 7);
    CHECK(back->time == Timestamp{1234});
    CHECK(encode(back->event) == encode(event));
  }
  const auto cordon = to_event(some_record());
  REQUIRE(cordon.has_value());
  REQUIRE(std::holds_alternative<NodeCordoned>(cordon->event));
  CHECK(std::get<NodeCordoned>(cordon->event).node == NodeId(3));
  CHECK(std::get<NodeCordoned>(cordon->event).cordoned);
}

TEST_CASE("a record that is no event is refused with its number") {
  const auto refused = [](const Record& record, ErrorCode code) {
    const auto event = to_event(record);
    REQUIRE(!event.has_value());
    CHECK(event.error().code == code);
    CHECK(event.error().message.find("event 7") != std::string::npos);
  };
  Record record = some_record();
  record.version = 2;
  refused(record, ErrorCode::kUnsupported);
  record = some_record();
  record.kind = std::variant_size_v<Event>;
  refused(record, ErrorCode::kCorrupt);
  record = some_record();
  record.payload.pop_back();
  refused(record, ErrorCode::kCorrupt);
  record = some_record();
  record.payload += '\0';
  refused(record, ErrorCode::kCorrupt);
}

}  // namespace berth::store
