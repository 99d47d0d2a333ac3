#include "store/event_codec.h"

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/codec.h"

namespace berth::store {
namespace {

template <std::size_t... I>
std::vector<Event> one_of_each(std::index_sequence<I...>) {
  return {Event(std::in_place_index<I>)...};
}

// A node and its registration in the form of the log before nodes reported containers.
struct PlainNode {
  std::string name;
  std::string pool;
  std::string cell;
  Labels labels;
  std::vector<Taint> taints;
  std::vector<std::string> topology;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int32_t numa_nodes = 1;
  std::vector<Gpu> gpus;
  std::string address;
  static constexpr auto fields() {
    return field_list(field("name", &PlainNode::name), field("pool", &PlainNode::pool), field("cell", &PlainNode::cell),
                      field("labels", &PlainNode::labels), field("taints", &PlainNode::taints),
                      field("topology", &PlainNode::topology), field("cpu_milli", &PlainNode::cpu_milli),
                      field("memory_mib", &PlainNode::memory_mib), field("numa_nodes", &PlainNode::numa_nodes),
                      field("gpus", &PlainNode::gpus), field("address", &PlainNode::address));
  }
};
struct PlainRegistration {
  NodeId node;
  PlainNode spec;
  std::uint64_t lease = 0;
  static constexpr auto fields() {
    return field_list(field("node", &PlainRegistration::node), field("spec", &PlainRegistration::spec),
                      field("lease", &PlainRegistration::lease));
  }
};

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

TEST_CASE("a node that registered before nodes told of containers runs none") {
  PlainRegistration plain;
  plain.node = NodeId(4);
  plain.spec.name = "n4";
  plain.spec.address = "10.0.0.4";
  plain.lease = 9;
  Record record = to_record({7, Timestamp{1234}, NodeRegistered()}, 2);
  record.payload = encode(plain);
  const auto event = to_event(record);
  REQUIRE(event.has_value());
  const auto& registered = std::get<NodeRegistered>(event->event);
  CHECK(registered.node == NodeId(4));
  CHECK(registered.lease == 9);
  CHECK(registered.spec.address == "10.0.0.4");
  CHECK(!registered.spec.containers);
  CHECK(registered.spec.images.empty());
}

TEST_CASE("an event keeps the request that asked for it, and a record without one is as it was before") {
  for (const Event& event : one_of_each(std::make_index_sequence<std::variant_size_v<Event>>())) {
    EventRecord asked{7, Timestamp{1234}, event, {"token:ci", "token", "10.0.0.7", "r-1", "research", "n1"}};
    const auto back = to_event(to_record(asked, 2));
    REQUIRE(back.has_value());
    CHECK(back->by == asked.by);
    CHECK(encode(back->event) == encode(event));
    asked.by = {};
    CHECK(to_record(asked, 2).payload == std::visit([](const auto& one) { return encode(one); }, event));
    CHECK(to_event(to_record(asked, 2))->by.empty());
  }
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
