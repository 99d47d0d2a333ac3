#include "daemon/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/snapshot.h"
#include "identity/own_keys.h"
#include "store/durable_log.h"
#include "store/event_codec.h"
#include "store/hash_chain.h"
#include "store/postgres_address.h"

namespace berth::daemon {

namespace {

constexpr std::uint64_t kEventsBetweenLooks = 4096;

// Folds a log from its first event, or from a checkpoint where old events are cut off.
class Folding {
 public:
  Folding(const store::DurableLog& log, const VerifyQuestion& question, VerifyReport& report)
      : log_(log), question_(question), report_(report) {}

  Result<void> run() {
    auto checkpoint = log_.load_checkpoint();
    if (!checkpoint) return checkpoint.error();
    const store::Head head = log_.last();
    if (question_.at > head.seq || (question_.at != 0 && question_.at < log_.first_seq()))
      return not_found(
          fmt::format("event {} is not in the log, which has {} to {}", question_.at, log_.first_seq(), head.seq));
    auto from = begin(*checkpoint);
    if (!from) return from.error();
    if (report_.from_genesis && *checkpoint) compared_ = std::move(**checkpoint);
    if (question_.at != 0 && *from == question_.at + 1) {
      if (auto ok = keep_at(last_time_); !ok) return ok;
    }
    std::uint64_t folded = 0;
    auto read = log_.read(*from, [&](const store::Record& record) -> Result<bool> {
      if (record.seq > head.seq) return false;  // appended meanwhile
      if (++folded % kEventsBetweenLooks == 0 && question_.go_on && !question_.go_on())
        return Error{ErrorCode::kUnavailable, "the check was given up before its end"};
      if (auto ok = fold(record); !ok) return ok.error();
      return true;
    });
    if (!read) return read;
    if (auto wrong = state_.state.audit())
      return Error{ErrorCode::kCorrupt, "the recomputed state is inconsistent: " + *wrong};
    auto end = folded_at(head.seq, last_time_);
    if (!end) return end.error();
    report_.end = *end;
    report_.jobs = state_.state.jobs().size();
    report_.state_digest = state_.state.digest();
    return {};
  }

 private:
  // Returns the first event to fold.
  Result<Seq> begin(const std::optional<store::Checkpoint>& newest) {
    if (report_.from_genesis) return Seq{1};
    std::optional<store::Checkpoint> found = newest;
    if (question_.at != 0) {
      auto before = log_.load_checkpoint_at(question_.at);
      if (!before) return before.error();
      found = std::move(*before);
      if (!found)
        return not_found(
            fmt::format("old events are cut off, and event {} is before the oldest checkpoint", question_.at));
    }
    if (!found) return Error{ErrorCode::kCorrupt, "old events are cut off and there is no checkpoint to begin from"};
    auto loaded = load_snapshot(found->bytes);
    if (!loaded) return loaded.error();
    state_ = std::move(*loaded);
    last_time_ = state_.state.now();
    return found->seq + 1;
  }

  Result<void> fold(const store::Record& record) {
    auto event = store::to_event(record);
    if (!event) return event.error();
    state_.state.apply(*event);
    state_.meter.apply(*event);
    last_time_ = event->time;
    if (report_.at && event->seq == question_.at + 1 && event->time == report_.at->time)
      return in_the_middle("the next one has the same time");
    if (question_.on_event) question_.on_event(*event);
    if (compared_ && compared_->seq == event->seq) {
      report_.checkpoint_compared = true;
      if (save_snapshot(state_.state, state_.meter) != compared_->bytes)
        return Error{ErrorCode::kCorrupt,
                     fmt::format("the checkpoint at event {} is not the state that the log folds to", event->seq)};
    }
    return event->seq == question_.at ? keep_at(event->time) : Result<void>();
  }

  // All events of one change have one time.
  Error in_the_middle(const std::string& why) const {
    return invalid(
        fmt::format("event {} is in the middle of what was written at once ({}); name the last event before it, or the "
                    "last one of that time",
                    question_.at, why));
  }

  Result<void> keep_at(Timestamp time) {
    if (auto wrong = state_.state.audit()) return in_the_middle(*wrong);
    auto at = folded_at(question_.at, time);
    if (!at) return at.error();
    report_.at = *at;
    return {};
  }

  Result<LogFold> folded_at(Seq seq, Timestamp time) const {
    LogFold fold;
    if (seq != 0) {
      const auto chain = log_.hash_at(seq);
      if (!chain) return chain.error();
      fold.seq = seq;
      fold.time = time;
      fold.chain_hash = *chain;
    }
    fold.state_hash = store::sha256(save_snapshot(state_.state, state_.meter));
    fold.jobs = state_.state.jobs().size();
    return fold;
  }

  const store::DurableLog& log_;
  const VerifyQuestion& question_;
  VerifyReport& report_;
  Snapshot state_;
  std::optional<store::Checkpoint> compared_;
  Timestamp last_time_;
};

}  // namespace

Error error_of_log(Error error) {
  // Where what is wrong can be removed, the message says so.
  const bool is_told = error.message.ends_with("Remove it");
  if (error.code == ErrorCode::kCorrupt && !is_told) error.message += ". Restore a backup (docs/store.md)";
  return error;
}

Result<VerifyReport> verify_log(const std::string& where, const VerifyQuestion& question) {
  auto log = store::open_log_read_only(where);
  if (!log) return log.error();
  const auto go_on = [&](std::uint64_t, std::uint64_t) { return !question.go_on || question.go_on(); };
  auto chain = store::verify_chain(**log, go_on);
  if (!chain) return chain.error();
  if (auto foreign = (*log)->check_foreign(); !foreign) return foreign.error();
  if (auto pages = (*log)->check_pages(); !pages) {
    return Error{pages.error().code, pages.error().message + "; yet every record (" + std::to_string(chain->first_seq) +
                                         " to " + std::to_string(chain->last_seq) +
                                         ") and history row can be read and is sound"};
  }
  if (auto history = store::verify_history(**log, go_on); !history) return history.error();
  VerifyReport report;
  report.records = chain->records;
  report.first_seq = chain->first_seq;
  report.last_seq = chain->last_seq;
  report.history_rows = chain->history_rows;
  report.from_genesis = chain->first_seq == 1;
  report.warnings = (*log)->warnings();
  if (auto folded = Folding(**log, question, report).run(); !folded) return folded.error();
  return report;
}

Result<VerifyReport> verify_directory(const std::string& where) {
  auto report = verify_log(where);
  if (!report) return error_of_log(report.error());
  if (store::is_postgres_address(where)) return report;  // nothing else is there
  if (auto keys = identity::OwnKeys::check(where + "/signing-keys.json"); !keys) {
    if (keys.error().code == ErrorCode::kCorrupt) return keys.error();
    report->warnings.push_back(keys.error().message);  // another user's server may have it
  }
  return report;
}

}  // namespace berth::daemon
