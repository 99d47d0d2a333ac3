#include "daemon/job_news.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "store/memory_log.h"
#include "support/fleet_fixture.h"

namespace berth::daemon {
namespace {

// A backend that keeps what it is told.
class Listener final : public backend::Backend {
 public:
  Result<void> start(backend::ReportSink) override { return {}; }
  void perform(std::span<const Effect>) override {}
  void stop() override {}
  std::vector<std::string> warnings() const override { return {}; }
  void learn(backend::JobNews news) override {
    const std::lock_guard lock(mutex_);
    news_.push_back(std::move(news));
    came_.notify_all();
  }

  // Waits until so many came, far longer than it takes.
  std::vector<backend::JobNews> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    CHECK(came_.wait_for(lock, std::chrono::seconds(60), [&] { return news_.size() >= count; }));
    return news_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<backend::JobNews> news_;
};

struct News : FleetFixture {
  News() {
    command(ApplyConfig{config({queue("a")}), "op"});
    command(RegisterNode{node("n1", 8)});
    waiting = submit(job("a", 1, 8));
    cycle();  // it runs
    waiting = submit(job("a", 1, 8));
  }
  state::State copy() { return std::move(*state::State::load(state.save())); }

  JobId waiting;  // since long ago, by the server's clock
};

template <class T>
const T& only(const backend::JobNews& news) {
  REQUIRE(std::holds_alternative<T>(news));
  return std::get<T>(news);
}

}  // namespace

TEST_CASE_FIXTURE(News, "a backend learns that its job was accepted, and then why it waits, once") {
  store::MemoryLog log;
  Reader reader(copy(), billing::Meter(), log, 1'000'000);
  Listener listener;
  ServerClock clock;
  JobNewsDesk desk(reader, log, listener, clock);
  control::Reply reply;
  reply.job = waiting;
  desk.answer_for("uid-1")(reply);
  auto news = listener.wait_for(2);
  CHECK(only<backend::JobAccepted>(news[0]).key == "uid-1");
  CHECK(only<backend::JobAccepted>(news[0]).job == waiting);
  const auto& waits = only<backend::JobWaits>(news[1]);
  CHECK(waits.job == waiting);
  CHECK_MESSAGE(waits.why.find("waits for") != std::string::npos, waits.why);
  std::this_thread::sleep_for(std::chrono::milliseconds(2200));  // two more rounds
  CHECK(listener.wait_for(2).size() == 2);
}

TEST_CASE_FIXTURE(News, "a backend learns why its job was refused") {
  store::MemoryLog log;
  Reader reader(copy(), billing::Meter(), log, 1'000'000);
  Listener listener;
  ServerClock clock;
  JobNewsDesk desk(reader, log, listener, clock);
  desk.answer_for("uid-2")(not_found("no queue 'x'"));
  const auto news = listener.wait_for(1);
  CHECK(only<backend::JobRefused>(news[0]).key == "uid-2");
  CHECK(only<backend::JobRefused>(news[0]).why == "no queue 'x'");
}

TEST_CASE_FIXTURE(News, "a backend learns of the end of a job by its durable event") {
  store::MemoryLog log;
  billing::Meter meter;
  JobSubmitted submitted;
  submitted.job = waiting;
  submitted.spec = state.job(waiting)->spec;
  meter.apply({1, now, submitted});
  Reader reader(copy(), std::move(meter), log, 1'000'000);
  Listener listener;
  ServerClock clock;
  JobNewsDesk desk(reader, log, listener, clock);
  DurableBatch batch;
  batch.records.push_back({state.last_seq() + 1, now, JobFinished{waiting, Outcome::kCancelled, 0, ""}});
  reader.push(std::move(batch));
  const auto news = listener.wait_for(1);
  CHECK(only<backend::JobOver>(news[0]).job == waiting);
  CHECK(only<backend::JobOver>(news[0]).cancelled);
}

TEST_CASE_FIXTURE(News, "a job that is accepted again after it has finished is told to be over") {
  store::MemoryLog log;
  Reader reader(copy(), billing::Meter(), log, 1'000'000);
  Listener listener;
  ServerClock clock;
  JobNewsDesk desk(reader, log, listener, clock);
  control::Reply reply;
  reply.job = JobId(4711);
  reply.repeated = true;
  desk.answer_for("uid-3")(reply);
  const auto news = listener.wait_for(2);
  CHECK(only<backend::JobAccepted>(news[0]).job == JobId(4711));
  CHECK(only<backend::JobOver>(news[1]).job == JobId(4711));
}

TEST_CASE_FIXTURE(News, "after a restart a backend learns of its live jobs first, and of no others") {
  JobSpec mine = job("a", 1, 8);
  mine.user = "kubernetes:team";
  SUBCASE("by its source") { mine.source = {"c", "kube/c/job/1/2"}; }
  SUBCASE("by its comment, as in a log of an earlier version") { mine.comment = "kube/c/job/1/2"; }
  const JobId id = submit(mine);
  JobSpec posing = job("a", 1, 8);
  posing.comment = "kube/c/job/1/2";  // by a user of berth
  submit(posing);
  store::MemoryLog log;
  Reader reader(copy(), billing::Meter(), log, 1'000'000);
  Listener listener;
  ServerClock clock;
  JobNewsDesk desk(reader, log, listener, clock);
  const auto news = listener.wait_for(1);
  CHECK(only<backend::JobAccepted>(news[0]).job == id);
  CHECK(only<backend::JobAccepted>(news[0]).key == "kube/c/job/1/2");
  for (const backend::JobNews& one : news) {
    if (const auto* accepted = std::get_if<backend::JobAccepted>(&one)) CHECK(accepted->job == id);
  }
}

}  // namespace berth::daemon
