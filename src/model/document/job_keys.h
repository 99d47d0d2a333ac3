#pragma once
// The keys of a job document, one JobKey row each, and the only list of them. From a row follow how the key is read
// (job_read.cc) and written (job_write.cc), its flag of `berth submit` and `berth run` (cli/job_flags.cc), its schema
// (api/routes/document_schemas.cc) and its row in docs/jobs.md. job_keys_test.cc compares that page with the rows and
// says how to write it anew.
//
// A plain key is a member of JobSpec or TaskGroup and needs no code of its own; plain_keys.h has the forms. Any other
// key names its reader and its writer, which are in custom_keys.cc.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/document/document.h"
#include "model/job.h"

namespace berth::document {

class Value;

// What stands at a key, as a user sees it. Schema, and how a flag is given, follow from it.
enum class KeyKind {
  kText,
  kInteger,   // within `low` to `high`
  kAmount,    // 8 or 0.5
  kBytes,     // 64GiB
  kDuration,  // 2h; above zero
  kTime,      // ISO 8601
  kBool,
  kWord,         // one of `words`
  kTexts,        // a list; a single text stands for a list of one
  kPairs,        // a map of texts
  kCounts,       // a map of names to integers, each within `low` to `high`
  kIntegers,     // a list, each within `low` to `high`
  kSignal,       // SIGUSR1, USR1 or 10
  kJobIds,       // one or a list
  kTerms,        // rules of affinity
  kTolerations,  // a list of texts or maps; a single text stands for a list of one
  kNodeRules,    // likewise
  kMounts,       // likewise
  kSecrets,      // likewise
  kMap,          // the keys whose path begins with this key's and a dot
  kGroups,       // the keys whose path begins with "groups[]."
};

// Where a key is read into and written from: the job, and the task group that the key belongs to if its path begins
// with "groups[].".
struct JobTarget {
  JobSpec& job;
  TaskGroup& group;
};
struct JobSource {
  const JobSpec& job;
  const TaskGroup& group;
};

struct KeyForm {
  KeyKind kind = KeyKind::kMap;
  std::int64_t low = 0;
  std::int64_t high = 0;  // kText: `low` is the least number of bytes and `high` the most; 0: no limit here
  std::span<const std::string_view> words = {};
  // Absent for kMap and kGroups, which are walked. `write` returns null for what is not written.
  void (*read)(const KeyForm& form, const Value& value, JobTarget to) = nullptr;
  Node (*write)(const KeyForm& form, JobSource from) = nullptr;
  bool always = false;  // written also where it is the default
};

struct KeyFlag {
  std::string_view name = {};
  std::string_view value_name = {};  // empty: none (kBool), or the words (kWord)
  std::string_view says = {};        // empty: what the key `is`
};

struct JobKey {
  std::string_view path;
  KeyForm form;
  std::string_view is;      // one line of Markdown, in lower case, without a full stop; the words follow a colon
  std::string_view absent;  // the same: what holds without the key
  bool required = false;    // wherever the map it belongs to is given
  KeyFlag flag = {};
  KeyFlag wish_flag = {};  // kTerms: what adds a rule that is only preferred

  std::string_view name() const { return path.substr(path.rfind('.') + 1); }
};

inline constexpr std::string_view kGroupKeys = "groups[].";

// In the order of the page, of what is written, and of the flags' help.
std::span<const JobKey> job_keys();
// Those of one map: "" is the job, kGroupKeys a task group, "checkpoint." the map `checkpoint`.
std::vector<const JobKey*> keys_in(std::string_view prefix);
// The row with this path; it must be there.
const JobKey& job_key(std::string_view path);

// Markdown without its marks: `x` and [x](y) become x.
std::string plain_text(std::string_view markdown);
// What a key is, with its range or words, in Markdown; and the same with what holds without it, as plain sentences.
std::string meaning_of(const JobKey& key);
std::string description_of(const JobKey& key);

}  // namespace berth::document
