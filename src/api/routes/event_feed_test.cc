#include "api/routes/event_feed.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "api/http/server.h"
#include "api/routes/fake_service.h"
#include "base/random.h"

namespace berth::api {
namespace {

// Durable events that carry nothing but their number, from any thread.
class EventSource : public FakeService {
 public:
  void append() {
    EventRecord record{.seq = 0, .time = Timestamp{1}, .event = JobHoldChanged{JobId(1), true, "op"}};
    {
      const std::lock_guard lock(log_mutex_);
      record.seq = log.size() + 1;
      if (record.seq % 3 == 0) record.event = CycleRan{};
      log.push_back(record);
    }
    const std::lock_guard lock(watch_mutex_);
    const LiveEvent event{record};
    for (const auto& [id, watcher] : watchers) watcher(event);
  }
  Result<std::vector<EventRecord>> events(Seq from, std::size_t limit) override {
    const std::lock_guard lock(log_mutex_);
    return FakeService::events(from, limit);
  }
  std::uint64_t watch(Watcher watcher) override {
    const std::lock_guard lock(watch_mutex_);
    return FakeService::watch(std::move(watcher));
  }
  void unwatch(std::uint64_t id) override {
    const std::lock_guard lock(watch_mutex_);
    FakeService::unwatch(id);
  }

 private:
  std::mutex log_mutex_;
  std::mutex watch_mutex_;
};

// A sink that two threads may use.
class LockedStream : public RecordedStream {
 public:
  bool write(http::Chunk chunk) override {
    const std::lock_guard lock(mutex_);
    return RecordedStream::write(std::move(chunk));
  }
  bool wait_for(std::string_view text) {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (!chunks.empty() && chunks.back()->find(text) != std::string::npos) return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  std::mutex mutex_;
};

std::vector<std::string> ids_in(const RecordedStream& stream) {
  std::vector<std::string> ids;
  for (const auto& chunk : stream.chunks) {
    for (std::size_t at = chunk->find("id: "); at != std::string::npos; at = chunk->find("\nid: ", at)) {
      at = chunk->find(' ', at) + 1;
      ids.push_back(chunk->substr(at, chunk->find('\n', at) - at));
    }
  }
  return ids;
}

std::vector<std::string> numbers(Seq from, Seq to, Seq step = 1) {
  std::vector<std::string> all;
  for (Seq seq = from; seq <= to; seq += step) all.push_back(std::to_string(seq));
  return all;
}

}  // namespace

TEST_CASE("however events and drains interleave, each event is sent once, in order") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    EventSource source;
    const Seq history = random.below(700);
    for (Seq i = 0; i < history; ++i) source.append();
    const auto sink = std::make_shared<RecordedStream>();
    const Seq from = 1 + random.below(history + 1);
    EventFeed::start(source, http::Stream(sink, http::StreamFormat::kServerSentEvents), {}, from);
    for (int step = 0; step < 60; ++step) {
      if (random.below(2) == 0) sink->drain();
      for (std::uint64_t n = random.below(20); n > 0; --n) source.append();
    }
    for (int i = 0; i < 20; ++i) sink->drain();
    CHECK_EQ(ids_in(*sink), numbers(from, source.log.size()));
  }
}

TEST_CASE("with a writer on another thread there is neither gap nor repeat") {
  EventSource source;
  for (int i = 0; i < 1000; ++i) source.append();
  const auto sink = std::make_shared<LockedStream>();
  EventFeed::start(source, http::Stream(sink, http::StreamFormat::kServerSentEvents), {}, 1);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 4000; ++i) source.append();
    done = true;
  });
  while (!done) sink->drain();
  writer.join();
  for (int i = 0; i < 40; ++i) sink->drain();
  REQUIRE(sink->wait_for("id: 5000\n"));
  CHECK_EQ(ids_in(*sink), numbers(1, 5000));
}

TEST_CASE("a filter that leaves out nearly everything still reaches the present") {
  EventSource source;
  for (int i = 0; i < 10'000; ++i) source.append();
  const auto sink = std::make_shared<RecordedStream>();
  EventFeed::start(source, http::Stream(sink, http::StreamFormat::kServerSentEvents),
                   {.kind = "job-finished", .job = {}}, 1);
  for (int i = 0; i < 20; ++i) sink->drain();
  CHECK(ids_in(*sink).empty());
  CHECK_FALSE(sink->chunks.empty());  // heartbeats keep it going
  const std::size_t beats = sink->chunks.size();
  sink->drain();
  CHECK_EQ(sink->chunks.size(), beats);  // live: waits for events
}

TEST_CASE("a live feed takes no more steps, however much is sent") {
  EventSource source;
  for (int i = 0; i < 300; ++i) source.append();
  const auto sink = std::make_shared<RecordedStream>();
  EventFeed::start(source, http::Stream(sink, http::StreamFormat::kServerSentEvents), {}, 1);
  CHECK(sink->has_step());
  for (int i = 0; i < 5; ++i) sink->drain();
  CHECK_FALSE(sink->has_step());
  for (int i = 0; i < 9; ++i) source.append();
  CHECK_FALSE(sink->has_step());
  CHECK_EQ(ids_in(*sink), numbers(1, 309));
}

TEST_CASE("a stream by kind or job sends those events only") {
  EventSource source;
  for (int i = 0; i < 9; ++i) source.append();
  const auto sink = std::make_shared<RecordedStream>();
  EventFeed::start(source, http::Stream(sink, http::StreamFormat::kServerSentEvents), {.kind = "cycle-ran", .job = {}},
                   1);
  for (int i = 0; i < 5; ++i) sink->drain();
  for (int i = 0; i < 9; ++i) source.append();
  CHECK_EQ(ids_in(*sink), numbers(3, 18, 3));
  const auto other = std::make_shared<RecordedStream>();
  EventFeed::start(source, http::Stream(other, http::StreamFormat::kServerSentEvents), {.kind = "", .job = JobId(2)},
                   1);
  for (int i = 0; i < 5; ++i) other->drain();
  CHECK(ids_in(*other).empty());
}

TEST_CASE("streams share the text of a live event") {
  EventSource source;
  source.append();
  const auto one = std::make_shared<RecordedStream>();
  const auto other = std::make_shared<RecordedStream>();
  for (const auto& sink : {one, other}) {
    EventFeed::start(source, http::Stream(sink, http::StreamFormat::kServerSentEvents), {}, 1);
    sink->drain();
  }
  source.append();
  CHECK_EQ(ids_in(*one), numbers(1, 2));
  CHECK_EQ(one->chunks.back().get(), other->chunks.back().get());
}

TEST_CASE("streams that catch up over the same events read and encode them once") {
  EventSource source;
  for (int i = 0; i < 5000; ++i) source.append();
  const auto pages = std::make_shared<EventPages>();
  std::vector<std::shared_ptr<RecordedStream>> sinks;
  for (int i = 0; i < 300; ++i) {
    sinks.push_back(std::make_shared<RecordedStream>());
    EventFeed::start(source, http::Stream(sinks.back(), http::StreamFormat::kServerSentEvents), {}, 1, pages);
  }
  for (int step = 0; step < 21; ++step) {
    for (const auto& sink : sinks) sink->drain();
  }
  for (const auto& sink : sinks) REQUIRE_EQ(ids_in(*sink), numbers(1, 5000));
  CHECK_LT(source.looks, 5000 / 256 + 2 * 300);  // the whole pages once, and the last one by each stream
  source.append();
  for (const auto& sink : sinks) CHECK_NE(sink->chunks.back()->find("id: 5001\n"), std::string::npos);
}

TEST_CASE("a step sends less than a stream may have pending, however large the events are") {
  EventSource source;
  for (int i = 0; i < 100; ++i) {
    source.append();
    source.log.back().event = JobHoldChanged{JobId(1), true, std::string(10'000, 'x')};
  }
  const auto sink = std::make_shared<RecordedStream>();
  EventFeed::start(source, http::Stream(sink, http::StreamFormat::kServerSentEvents), {}, 1);
  for (std::size_t step = 1; ids_in(*sink).size() < 100; ++step) {
    sink->drain();
    REQUIRE_EQ(sink->chunks.size(), step);
    CHECK_LT(sink->chunks.back()->size(), http::Limits().stream_pending_bytes);
  }
  CHECK_EQ(ids_in(*sink), numbers(1, 100));
}

TEST_CASE("when the reader is gone the watch is given up") {
  EventSource source;
  auto sink = std::make_shared<RecordedStream>();
  EventFeed::start(source, http::Stream(sink, http::StreamFormat::kServerSentEvents), {}, 1);
  CHECK_EQ(source.watchers.size(), 1);
  sink->end();
  CHECK(source.watchers.empty());
  source.append();
}

TEST_CASE("a stream resumes behind Last-Event-ID, and an archived start is gone") {
  EventSource source;
  for (int i = 0; i < 5; ++i) source.append();
  const Client client(source);
  const auto resumed = client.send({.target = "/v1/events?follow=true&from=1", .headers = {{"last-event-id", "3"}}});
  REQUIRE(resumed->stream != nullptr);
  for (int i = 0; i < 3; ++i) resumed->stream->drain();
  source.append();
  CHECK_EQ(ids_in(*resumed->stream), numbers(4, 6));
  CHECK(client.send({.target = "/v1/events", .headers = {{"accept", "text/event-stream"}}})->stream != nullptr);
  CHECK_EQ(client.call({.target = "/v1/events?follow=true", .headers = {{"last-event-id", "x"}}}).status, 400);
  source.archived_below = 3;
  for (const char* target : {"/v1/events?from=2", "/v1/events?from=2&follow=true"}) {
    const auto gone = client.call({.target = target});
    CHECK_EQ(gone.status, 410);
    CHECK_NE(gone.body.find("\"code\":\"gone\""), std::string::npos);
  }
  CHECK_EQ(client.get("/v1/events?from=3").status, 200);
}

TEST_CASE("a stream behind an event that is not there yet is refused, for the log is another one") {
  EventSource source;
  for (int i = 0; i < 6; ++i) source.append();
  const Client client(source);
  const auto beyond = client.call({.target = "/v1/events?follow=true", .headers = {{"last-event-id", "7"}}});
  CHECK_EQ(beyond.status, 410);
  CHECK_NE(beyond.body.find("\"code\":\"beyond-end\""), std::string::npos);
  CHECK_NE(beyond.body.find("snapshot"), std::string::npos);
  for (const char* last : {"0", "6"}) {
    CHECK(client.send({.target = "/v1/events?follow=true", .headers = {{"last-event-id", last}}})->stream != nullptr);
  }
}

TEST_CASE("events by pages: every one once, and the end is known") {
  EventSource source;
  for (int i = 0; i < 1200; ++i) source.append();
  const Client client(source);
  std::vector<std::string> seen;
  Seq from = 1;
  for (int page = 0; page < 100 && from <= 1200; ++page) {
    const auto answer = client.json("/v1/events?limit=70&kind=cycle-ran&from=" + std::to_string(from));
    for (const auto& item : answer.at("items").as_array()) {
      seen.push_back(std::to_string(item.at("seq").to_number<Seq>()));
    }
    from = answer.at("next_from").to_number<Seq>();
  }
  CHECK_EQ(seen, numbers(3, 1200, 3));
}

}  // namespace berth::api
