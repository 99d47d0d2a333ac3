// A month that was closed: nothing of it can be changed, dropped or reordered without being found; what was billed
// opens down to its events.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "control/hand_driven_fleet.h"
#include "daemon/billing_desk.h"
#include "daemon/history_codec.h"
#include "daemon/verify.h"
#include "store/database_edit.h"
#include "store/event_codec.h"
#include "store/sqlite_log.h"
#include "store/temporary_directory.h"

namespace berth::daemon {
namespace {

// October 2026 of a cluster on a real log: two jobs, a correction, and the month is closed in November.
class ClosedMonth {
 public:
  ClosedMonth() : log_(store::SqliteLog::open(directory_.path()).value()), epoch_(log_->take_epoch().value()) {
    at("2026-10-05T10:00:00Z");
    ClusterConfig config = default_cluster_config();
    config.gpu_models = {{"H100", 1000, 81'920}};
    config.queues = {control::HandDrivenFleet::queue("a", 4), control::HandDrivenFleet::queue("b")};
    command(ApplyConfig{config, "op"});
    command(RegisterNode{fleet_.node("n1")});
    PriceBook book{"EUR", {}};
    book.periods.emplace_back().gpus = {{"H100", 2'000'000, 3'000'000, {}}};
    book.periods[0].quantities = {{"storage", "GiB-hours", 100}};
    command(ApplyPrices{book, "op"});
    run_job("a", 0);
    run_job("b", 4);
    command(CorrectBill{{"b", "2026-09", JobId(1), -5'000'000, "a node was lost", "op"}});
    last_of_month_ = log_->last().seq;
    at("2026-11-02T00:00:00Z");
    command(ReportQuantities{{{"late", "a", "storage", "", 50'000, from_iso8601("2026-10-01").value(),
                               from_iso8601("2026-11-01").value(), "op"}}});
    command(ReportQuantities{{{"next", "a", "storage", "", 7, from_iso8601("2026-11-01").value(),
                               from_iso8601("2026-11-02").value(), "op"}}});
    BillingDesk desk(*log_);
    command(CloseMonth{desk.closing("2026-10", billing_facts(fleet_.state, fleet_.now)).value()});
  }

  std::uint64_t last_of_month() const { return last_of_month_; }
  const store::Log& log() const { return *log_; }
  const state::State& state() const { return fleet_.state; }
  Timestamp now() const { return fleet_.now; }
  // Leaves the directory to the one who edits it.
  std::string end() {
    log_.reset();
    return directory_.path().string();
  }

 private:
  void at(const char* time) { fleet_.now = from_iso8601(time).value(); }
  void store(control::Batch& batch) {
    control::reconcile(batch);
    std::vector<store::Record> records;
    for (const EventRecord& event : batch.records()) records.push_back(store::to_record(event, epoch_));
    std::vector<store::HistoryRow> finished;
    for (const control::FinishedJob& one : batch.take_finished_jobs()) finished.push_back(to_history(one));
    if (!records.empty()) REQUIRE(log_->append(epoch_, records.front().seq, records, finished).has_value());
  }
  control::Reply command(const Command& command) {
    control::Batch batch(fleet_.state, fleet_.now);
    const auto reply = control::handle(batch, command);
    REQUIRE_MESSAGE(reply.has_value(), (reply ? "" : reply.error().message));
    store(batch);
    return *reply;
  }
  void run_job(const std::string& queue, std::uint8_t first) {
    const JobId job = command(SubmitJob{control::HandDrivenFleet::job(queue, 2), ""}).job;
    control::Batch batch(fleet_.state, fleet_.now);
    Plan plan;
    plan.decisions.emplace_back(StartDecision{job, {fleet_.place(job, "n1", first)}});
    control::commit(batch, plan);
    store(batch);
    fleet_.now = fleet_.now + 3'600'000;
    command(ReportTaskExited{{job, 1, 0, 1, ExitReason::kExited, 0, ""}});
  }

  store::TemporaryDirectory directory_;
  std::unique_ptr<store::SqliteLog> log_;
  std::uint64_t epoch_ = 0;
  control::HandDrivenFleet fleet_;
  std::uint64_t last_of_month_ = 0;
};

void check_found(const std::string& edit, std::uint64_t place) {
  CAPTURE(edit);
  ClosedMonth month;
  const std::string directory = month.end();
  store::edit_database(directory, edit);
  const auto verified = verify_directory(directory);
  REQUIRE_FALSE(verified.has_value());
  CHECK(verified.error().code == ErrorCode::kCorrupt);
  CAPTURE(verified.error().message);
  CHECK(verified.error().message.find(fmt::format("record {}:", place)) != std::string::npos);
}

}  // namespace

TEST_CASE("a closed month that nobody touched verifies, and its bill is the one that was closed") {
  ClosedMonth month;
  BillingDesk desk(month.log());
  const auto bill = desk.bill({"", "2026-10"}, billing_facts(month.state(), month.now()));
  REQUIRE(bill.has_value());
  CHECK_EQ(bill->number, "2026-10");
  CHECK(verify_directory(month.end()).has_value());
}

TEST_CASE("any event of a closed month that is changed, dropped or reordered is found, with its place") {
  const std::uint64_t last = ClosedMonth().last_of_month();
  const std::uint64_t closing = last + 3;  // behind two reports; it is the last event of the log
  REQUIRE(last > 10);
  for (std::uint64_t seq = 1; seq < closing; ++seq) {
    check_found(fmt::format("UPDATE records SET payload = CAST(payload || X'00' AS BLOB) WHERE seq = {}", seq), seq);
    check_found(fmt::format("UPDATE records SET time_ms = time_ms - 60000 WHERE seq = {}", seq), seq);
    check_found(fmt::format("DELETE FROM records WHERE seq = {}", seq), seq);
    // Where the events behind it move up, the end of the log is not the one that was acknowledged, either.
    check_found(fmt::format("DELETE FROM records WHERE seq = {0}; UPDATE records SET seq = -seq WHERE seq > {0};"
                            "UPDATE records SET seq = -seq - 1 WHERE seq < 0",
                            seq),
                seq);
    const bool with_end = seq + 1 == closing;
    check_found(fmt::format("UPDATE records SET seq = -1 WHERE seq = {0}; UPDATE records SET seq = {0} WHERE seq = {1};"
                            "UPDATE records SET seq = {1} WHERE seq = -1",
                            seq, seq + 1),
                with_end ? closing : seq);
  }
}

}  // namespace berth::daemon
