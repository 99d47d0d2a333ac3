#include "model/json.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/codec.h"
#include "base/random.h"

namespace berth {
namespace {

// Fills any value of the model with random contents, so that a test finds every field that JSON loses.
class Filler {
 public:
  explicit Filler(std::uint64_t seed) : random_(seed) {}

  template <class T>
  void fill(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = random_.chance(500);
    } else if constexpr (NamedEnum<T>) {
      value = static_cast<T>(random_.below(EnumNames<T>::kNames.size()));
    } else if constexpr (std::is_same_v<T, Timestamp>) {
      value = random_.chance(100) ? Timestamp::never() : Timestamp{random_.between(0, 4'000'000'000'000)};
    } else if constexpr (HasFields<T>) {
      for_each_field(value, [this](std::string_view, auto& member) { fill(member); });
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(random_.next() >> random_.below(64));
    } else {
      fill_composite(value);
    }
  }

 private:
  void fill_composite(std::string& text) {
    text.clear();
    for (std::uint64_t n = random_.below(6); n > 0; --n)
      text += std::string_view("ab\"\\\x01\n{}").substr(random_.below(9), 1);
  }
  template <class Tag, class Rep>
  void fill_composite(StrongId<Tag, Rep>& id) {
    id = random_.chance(200) ? StrongId<Tag, Rep>() : StrongId<Tag, Rep>(static_cast<Rep>(random_.below(1000)));
  }
  template <class T>
  void fill_composite(std::vector<T>& items) {
    items.resize(random_.below(3));
    for (auto& item : items) fill(item);
  }
  template <class T>
  void fill_composite(std::vector<std::pair<std::string, T>>& entries) {
    entries.resize(random_.below(3));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i].first = "key" + std::to_string(i);
      fill(entries[i].second);
    }
  }
  template <class T, std::size_t N>
  void fill_composite(std::array<T, N>& items) {
    for (auto& item : items) fill(item);
  }
  template <class T>
  void fill_composite(std::optional<T>& value) {
    value.reset();
    if (random_.chance(500)) fill(value.emplace());
  }

  Random random_;
};

template <std::size_t I = 0>
void fill_alternative(Filler& filler, Event& event, std::size_t index) {
  if constexpr (I < std::variant_size_v<Event>) {
    if (index == I) return filler.fill(event.emplace<I>());
    fill_alternative<I + 1>(filler, event, index);
  }
}

std::string refusal(std::string_view text) {
  const auto spec = from_json<JobSpec>(boost::json::parse(text), "job");
  return spec ? "accepted" : spec.error().message;
}

}  // namespace

TEST_CASE("every kind of event, with any contents, reads back from its JSON text") {
  Filler filler(1);
  for (std::size_t round = 0; round < 40; ++round) {
    for (std::size_t kind = 0; kind < std::variant_size_v<Event>; ++kind) {
      EventRecord record{round * 100 + kind, {1'782'000'000'123}, {}};
      fill_alternative(filler, record.event, kind);
      const std::string text = boost::json::serialize(event_json(record));
      const auto back = event_from_json(boost::json::parse(text));
      CAPTURE(text);
      REQUIRE_MESSAGE(back.has_value(), back.error().message);
      CHECK_EQ(back->seq, record.seq);
      CHECK_EQ(back->time, record.time);
      CHECK_EQ(encode(back->event), encode(record.event));
    }
  }
}

TEST_CASE("an event's JSON is its sequence number, time, kind and fields") {
  const EventRecord record{7, {1'782'000'000'123}, StopBegan{JobId(3), 2, StopCause::kReclaim, JobId(9), {0}}};
  CHECK_EQ(boost::json::serialize(event_json(record)),
           R"({"seq":7,"time":"2026-06-21T00:00:00.123Z","kind":"stop-began","job":3,"attempt":2,"cause":"reclaim",)"
           R"("preemptor":9,"deadline":"1970-01-01T00:00:00.000Z","keep":0})");
}

TEST_CASE("an event that a request asked for says so, and reads back with it") {
  const EventRecord record{7, {0}, TokenRevoked{"ci", "u"}, {"user:corp:ada", "issuer", "10.0.0.7", "r-1"}};
  const auto json = event_json(record);
  CHECK_EQ(json.at("by").at("subject").as_string(), "user:corp:ada");
  CHECK_EQ(json.at("by").at("request").as_string(), "r-1");
  const auto back = event_from_json(json);
  REQUIRE_MESSAGE(back.has_value(), back.error().message);
  CHECK(back->by == record.by);
  CHECK_FALSE(event_json({7, {0}, TokenRevoked{"ci", "u"}}).contains("by"));
}

TEST_CASE("an id that names nothing is null") {
  CHECK_EQ(boost::json::serialize(event_json({1, {0}, StopBegan{}}).at("preemptor")), "null");
}

TEST_CASE("reading refuses what it does not understand, with the path") {
  CHECK_EQ(refusal("[]"), "job: give an object");
  CHECK_EQ(refusal(R"({"nmae": "x"})"), "job: there is no field 'nmae'");
  CHECK_EQ(refusal(R"({"name": 3})"), "job.name: give a string");
  CHECK_EQ(refusal(R"({"kind": "Gang"})"), "job.kind: give one of gang, service, array, interactive");
  CHECK_EQ(refusal(R"({"groups": [{}, {"count": 2147483648}]})"),
           "job.groups[1].count: give an integer between -2147483648 and 2147483647");
  CHECK_EQ(refusal(R"({"retries": 1.0})"), "job.retries: give an integer between -2147483648 and 2147483647");
  CHECK_EQ(refusal(R"({"groups": [{"env": {"A": null}}]})"), "job.groups[0].env.A: give a string");
  CHECK_EQ(refusal(R"({"deadline": "tomorrow"})"),
           "job.deadline: give a time such as 2026-11-21T08:15:30Z, or milliseconds since 1970");
  CHECK_EQ(refusal(R"({"held": "yes"})"), "job.held: give true or false");
}

TEST_CASE("a hash is a string: many readers of JSON keep 53 bits of a number") {
  EventRecord record;
  record.seq = 7;
  record.event = CycleRan{.plan_hash = 0xfedcba9876543210U, .decisions = 2};
  const boost::json::object json = event_json(record);
  CHECK(json.at("plan_hash") == boost::json::value("fedcba9876543210"));
  CHECK(std::get<CycleRan>(event_from_json(json)->event).plan_hash == 0xfedcba9876543210U);
  for (const char* bad : {"fedcba987654321", "fedcba987654321g", "0xfedcba98765432", ""}) {
    CAPTURE(bad);
    boost::json::object wrong = json;
    wrong["plan_hash"] = bad;
    CHECK_FALSE(event_from_json(wrong));
  }
  JobSubmitted submitted;
  submitted.body_hash = 5;
  record.event = submitted;
  CHECK(event_json(record).at("body_hash") == boost::json::value("0000000000000005"));
}

}  // namespace berth
