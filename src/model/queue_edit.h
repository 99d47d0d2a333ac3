#pragma once
// Changes of single limits of a queue by command (`berth queue set`), beside the configuration file. What is in force
// is the file with all changes of each queue over it, in their order. A leased change is taken out when its lease ends,
// and an undone one when it is undone; what was below it is then in force again.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "model/cluster_config.h"

namespace berth {

// The unit of a limit: thousandths (GPUs, CPUs), MiB, a number, or seconds.
enum class LimitUnit { kThousandths, kMemory, kCount, kSeconds };

// Returns the unit of the limit with this key, named as in the configuration document (`guaranteed.gpus`,
// `max.gpus.H100-SXM5-80GB`, `weight`, `eviction.min_runtime`), or nothing if a command cannot change it.
std::optional<LimitUnit> unit_of_limit(std::string_view key);

// All keys, with MODEL for the name of a GPU model.
std::vector<std::string> limit_keys();

// Return and set the value of a limit; nothing is a limit that is not stated. Requires a key with a unit. A weight that
// is not stated is 1, and a number of evictions 0.
std::optional<std::int64_t> limit_of(const QueueConfig& queue, std::string_view key);
void set_limit(QueueConfig& queue, std::string_view key, std::optional<std::int64_t> value);

// A limit that a change sets. Absent values are limits that are not stated.
struct LimitChange {
  std::string key;
  std::optional<std::int64_t> value = {};
  std::optional<std::int64_t> before = {};  // what was in force when it was changed
  bool operator==(const LimitChange&) const = default;
  static constexpr auto fields() {
    return field_list(field("key", &LimitChange::key), field("value", &LimitChange::value),
                      field("before", &LimitChange::before));
  }
};

// The limits of one queue that are not what the file says, or no longer what they were.
struct LimitsOfQueue {
  std::string queue;
  std::vector<LimitChange> limits;
  bool operator==(const LimitsOfQueue&) const = default;
  static constexpr auto fields() {
    return field_list(field("queue", &LimitsOfQueue::queue), field("limits", &LimitsOfQueue::limits));
  }
};

// One change of a queue.
struct QueueEdit {
  std::uint64_t version = 0;  // of the configuration; it names the change
  std::string user;           // the subject that made it
  Timestamp time;
  Timestamp until = Timestamp::never();  // the end of its lease; never: it is not leased
  std::vector<LimitChange> limits;
  bool operator==(const QueueEdit&) const = default;
  static constexpr auto fields() {
    return field_list(field("version", &QueueEdit::version), field("user", &QueueEdit::user),
                      field("time", &QueueEdit::time), field("until", &QueueEdit::until),
                      field("limits", &QueueEdit::limits));
  }
};

// The changes by the path of the queue, each in the order in which they were made.
using QueueEdits = std::map<std::string, std::vector<QueueEdit>, std::less<>>;

inline constexpr std::size_t kMostEditsPerQueue = 32;

// Returns the file's configuration with the changes over it. Changes of queues that it does not have are left out.
ClusterConfig with_edits(ClusterConfig file, const QueueEdits& edits);

// Returns what is in force over the file, with what the file says as `before`.
std::vector<LimitsOfQueue> limits_over(const ClusterConfig& file, const QueueEdits& edits);

// Sets the limits of the queue. Requires that the configuration has it.
void put_limits(ClusterConfig& config, std::string_view queue, const std::vector<LimitChange>& limits);

// Returns the queue of the configuration, or null.
const QueueConfig* queue_named(const ClusterConfig& config, std::string_view path);

// Returns the changes that outlive another file: those of a queue that it still has, under its new name, without the
// limits to which the new file gives another value than the old one. There the file is the later word.
QueueEdits edits_after(const QueueEdits& edits, const ClusterConfig& old_file, const ClusterConfig& new_file,
                       const std::vector<QueueMove>& moves);

// Adds a change. Of more than kMostEditsPerQueue, the oldest one whose limits later changes without a lease all set is
// forgotten: it can no longer be undone to.
void add_edit(QueueEdits& edits, const std::string& queue, QueueEdit edit);

// Takes out the change with this version. Returns false if there is none.
bool remove_edit(QueueEdits& edits, const std::string& queue, std::uint64_t version);

// Returns a text that is another one whenever the limits of the queue or its changes are others: 16 hexadecimal digits.
std::string revision_of(const QueueConfig& in_force, const std::vector<QueueEdit>* edits);

// How a command sets a limit: to a value, to more or less than what is in force, or to nothing.
struct LimitSetting {
  enum class How { kTo, kBy, kUnset };
  std::string key;
  How how = How::kTo;
  std::int64_t amount = 0;  // kBy: negative for less
};

}  // namespace berth
