#include "store/memory_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"

namespace berth::store {

namespace {

constexpr std::size_t kCheckpointsKept = 2;

bool matches(const HistoryQuery& query, const HistoryRow& row) {
  return row.cursor > query.after && row.cursor < query.before && (!query.job_id || *query.job_id == row.job_id);
}

}  // namespace

Result<void> MemoryLog::usable() const {
  if (failed_) return Error{ErrorCode::kIo, "the log failed before and is unusable until it is opened again"};
  return {};
}

bool MemoryLog::due_to_fail() { return appends_until_failure_ > 0 && --appends_until_failure_ == 0; }

Result<void> MemoryLog::append(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records,
                               std::span<const HistoryRow> finished_jobs) {
  const std::lock_guard lock(mutex_);
  if (auto ok = usable(); !ok) return ok;
  if (auto ok = check_batch(epoch, first_seq, records); !ok) return ok;
  if (epoch != head_.epoch || first_seq != head_.seq + 1) return refused_append(head_, epoch, first_seq);
  std::set<std::uint64_t> jobs;
  for (const HistoryRow& row : finished_jobs) {
    if (history_of_job_.contains(row.job_id) || !jobs.insert(row.job_id).second) {
      return conflict(fmt::format("append: job {} is already in the history", row.job_id));
    }
  }
  if (!due_to_fail()) {
    keep(records, finished_jobs);
    return {};
  }
  failed_ = true;
  if (failure_leaves_ == FailedAppend::kAllKept) keep(records, finished_jobs);
  return Error{ErrorCode::kIo, "injected: the append failed"};
}

void MemoryLog::keep(std::span<const Record> records, std::span<const HistoryRow> finished_jobs) {
  for (const Record& record : records) {
    head_.hash = chain_.next(head_.hash, record);
    head_.seq = record.seq;
    rows_.push_back({record, head_.hash});
    counters_.bytes += record.payload.size();
  }
  for (const HistoryRow& row : finished_jobs) {
    history_of_job_[row.job_id] = history_.size();
    history_.push_back(row);
    history_.back().cursor = history_.size();
  }
  ++counters_.appends;
  ++counters_.fsyncs;
  counters_.records += records.size();
}

Result<std::uint64_t> MemoryLog::take_epoch() {
  const std::lock_guard lock(mutex_);
  if (auto ok = usable(); !ok) return ok.error();
  return ++head_.epoch;
}

Head MemoryLog::last() const {
  const std::lock_guard lock(mutex_);
  return head_;
}

std::uint64_t MemoryLog::first_seq() const {
  const std::lock_guard lock(mutex_);
  return anchor_seq_ + 1;
}

const Hash& MemoryLog::hash_at(std::uint64_t seq) const {
  return seq == anchor_seq_ ? anchor_hash_ : rows_[seq - anchor_seq_ - 1].hash;
}

Result<bool> MemoryLog::copy_record(std::uint64_t seq, Hash& previous, Record& record) const {
  const std::lock_guard lock(mutex_);
  if (auto ok = usable(); !ok) return ok.error();
  if (seq == head_.seq + 1) return false;
  if (seq <= anchor_seq_ || seq > head_.seq) return not_in_log(seq, anchor_seq_ + 1, head_.seq);
  const Row& row = rows_[seq - anchor_seq_ - 1];
  if (row.record.seq != seq) return corrupt_record(seq, fmt::format("the row says {}", row.record.seq));
  if (chain_.next(previous, row.record) != row.hash) return corrupt_record(seq, "the hash does not fit the chain");
  record = row.record;
  previous = row.hash;
  return true;
}

Result<void> MemoryLog::read(std::uint64_t from_seq, const Visitor& visitor) const {
  Hash previous{};
  {
    const std::lock_guard lock(mutex_);
    if (from_seq > anchor_seq_ && from_seq <= head_.seq + 1) previous = hash_at(from_seq - 1);
  }
  Record record;
  for (std::uint64_t seq = from_seq;; ++seq) {
    const auto copied = copy_record(seq, previous, record);
    if (!copied) return copied.error();
    if (!*copied) return {};
    const auto go_on = visitor(record);
    if (!go_on) return go_on.error();
    if (!*go_on) return {};
  }
}

Result<void> MemoryLog::save_checkpoint(std::uint64_t seq, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (auto ok = usable(); !ok) return ok;
  if (seq < anchor_seq_ || seq > head_.seq) return not_in_log(seq, anchor_seq_ + 1, head_.seq);
  if (!checkpoints_.empty() && seq < checkpoints_.rbegin()->first) {
    return invalid(fmt::format("a checkpoint at {} is newer than {}", checkpoints_.rbegin()->first, seq));
  }
  checkpoints_[seq] = {hash_at(seq), sha256(bytes), std::string(bytes)};
  if (checkpoints_.size() > kCheckpointsKept) checkpoints_.erase(checkpoints_.begin());
  return {};
}

Result<std::optional<Checkpoint>> MemoryLog::load_checkpoint() const {
  const std::lock_guard lock(mutex_);
  if (auto ok = usable(); !ok) return ok.error();
  std::vector<std::string> passed_over;
  for (auto it = checkpoints_.rbegin(); it != checkpoints_.rend(); ++it) {
    const auto& [seq, stored] = *it;
    if (sha256(stored.bytes) != stored.checksum) {
      passed_over.push_back(fmt::format("checkpoint at {}: its checksum does not hold", seq));
      continue;
    }
    if (stored.head_hash != hash_at(seq)) return corrupt_record(seq, "the checkpoint at it has another hash");
    return std::optional(Checkpoint{seq, stored.head_hash, stored.bytes, passed_over});
  }
  if (anchor_seq_ > 0) return corrupt_record(anchor_seq_, "it was cut off, and no checkpoint that covers it loads");
  return std::optional<Checkpoint>();
}

Result<std::vector<HistoryRow>> MemoryLog::history(const HistoryQuery& query) const {
  const std::lock_guard lock(mutex_);
  if (auto ok = usable(); !ok) return ok.error();
  std::vector<HistoryRow> found;
  if (query.job_id) {
    const auto it = history_of_job_.find(*query.job_id);
    if (it != history_of_job_.end() && matches(query, history_[it->second]) && query.limit > 0) {
      found.push_back(history_[it->second]);
    }
    return found;
  }
  // Cursors are positions plus one, so that a page is found without a search.
  const std::uint64_t begin = std::min<std::uint64_t>(query.after, history_.size());
  const std::uint64_t end = std::min<std::uint64_t>(std::max<std::uint64_t>(query.before, 1) - 1, history_.size());
  for (std::uint64_t i = begin; i < end && found.size() < query.limit; ++i) {
    found.push_back(history_[query.newest_first ? end - 1 - (i - begin) : i]);
  }
  return found;
}

Result<void> MemoryLog::truncate_before(std::uint64_t seq) {
  const std::lock_guard lock(mutex_);
  if (auto ok = usable(); !ok) return ok;
  if (seq <= anchor_seq_ + 1) return {};
  for (const auto& [at, stored] : checkpoints_) {
    if (sha256(stored.bytes) != stored.checksum) return conflict(fmt::format("the checkpoint at {} is damaged", at));
  }
  if (checkpoints_.size() < kCheckpointsKept || seq > checkpoints_.begin()->first) {
    return conflict(
        fmt::format("records before {} are needed: the log can be cut only below the older of two checkpoints", seq));
  }
  anchor_hash_ = hash_at(seq - 1);
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(seq - anchor_seq_ - 1));
  anchor_seq_ = seq - 1;
  return {};
}

Counters MemoryLog::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void MemoryLog::fail_append(std::uint64_t nth, FailedAppend leaves) {
  const std::lock_guard lock(mutex_);
  BERTH_CHECK(nth > 0);
  appends_until_failure_ = nth;
  failure_leaves_ = leaves;
}

void MemoryLog::reopen() {
  const std::lock_guard lock(mutex_);
  failed_ = false;
  appends_until_failure_ = 0;
}

MemoryLog::Row& MemoryLog::stored(std::uint64_t seq) {
  const std::lock_guard lock(mutex_);
  BERTH_CHECK(seq > anchor_seq_);
  BERTH_CHECK(seq <= head_.seq);
  return rows_[seq - anchor_seq_ - 1];
}

std::string& MemoryLog::stored_checkpoint(std::uint64_t seq) {
  const std::lock_guard lock(mutex_);
  return checkpoints_.at(seq).bytes;
}

}  // namespace berth::store
