#pragma once
// Checks a whole log from outside, as `berth verify` does: every hash, every page, the history, the checkpoint, and
// that the records fold to a state without contradictions. A backup and a restore are proved by the same fold.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "store/log.h"

namespace berth::daemon {

// What a log is after one of its events. Two logs whose folds are equal hold the same events and give the same state.
struct LogFold {
  Seq seq = 0;  // 0: no event yet; then the time and the chain hash are empty as well
  Timestamp time;
  store::Hash chain_hash{};  // of the record with that number, which covers all before it
  store::Hash state_hash{};  // SHA-256 of the state and the meter, as a checkpoint keeps them
  std::uint64_t jobs = 0;    // live ones
  bool operator==(const LogFold&) const = default;
};

struct VerifyReport {
  std::uint64_t records = 0;
  std::uint64_t first_seq = 0;
  std::uint64_t last_seq = 0;
  std::uint64_t jobs = 0;
  std::uint64_t history_rows = 0;
  std::uint64_t state_digest = 0;
  bool from_genesis = false;  // the whole state was recomputed from the first event
  std::vector<std::string> warnings;
  bool checkpoint_compared = false;  // a checkpoint was found equal to the recomputed state
  LogFold end;
  std::optional<LogFold> at;  // where VerifyQuestion asks for it
};

struct VerifyQuestion {
  Seq at = 0;                                             // fold up to this event as well; 0: only to the end
  std::function<void(const EventRecord&)> on_event = {};  // each event that is folded
  std::function<bool()> go_on = {};                       // false: give up, which is the error kUnavailable
};

// Checks a log: of a data directory, or of postgresql://... Errors: kCorrupt with the sequence number that is wrong;
// kNotFound: there is no log, or `at` is not in it, or is before the oldest checkpoint of a log that was cut; kInvalid:
// the state after `at` is not one that a server was ever in.
Result<VerifyReport> verify_log(const std::string& where, const VerifyQuestion& question = {});

// The same, with what else is in a data directory, and in words for its operator.
Result<VerifyReport> verify_directory(const std::string& where);

// The error of a log that cannot be served, with what to do where it is damaged.
Error error_of_log(Error error);

}  // namespace berth::daemon
