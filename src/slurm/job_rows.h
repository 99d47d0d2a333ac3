#pragma once
// The server's jobs as the rows that squeue, sacct and scontrol show: states and reasons in Slurm's words, the elements
// of an array by their numbers, and those that wait as one row.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "cli/answer.h"
#include "slurm/array_spec.h"
#include "slurm/shell.h"

namespace berth::slurm {

struct JobRow {
  std::int64_t id = 0;                 // the job of berth
  std::int64_t array = 0;              // the job of its array; 0: it is no element
  std::vector<std::int64_t> elements;  // of a row of an array: their numbers
  bool is_set = false;                 // the elements that wait together
  std::int64_t running_at_once = 0;    // of an array; 0: no limit
  std::string state;                   // PENDING
  std::string compact;                 // PD
  std::string reason;                  // None
  std::optional<Timestamp> submitted;
  std::optional<Timestamp> started;
  std::optional<Timestamp> ended;
  Timestamp now;
  std::shared_ptr<const cli::Json> answer = std::make_shared<const cli::Json>();  // shared by the elements of an array

  const cli::Json& job() const { return *answer; }  // as the server lists it, or in full
  bool is_over() const { return ended.has_value(); }
  std::string text(std::string_view member) const { return cli::show(job(), member); }
  std::string number() const;        // "7", "7_3", "7_[1-3%2]"
  std::string element_text() const;  // "3", "1-3%2", "N/A"
  std::int64_t seconds() const;      // that it has run
  std::int64_t limit_minutes() const;
  std::string partition() const;
  std::string qos() const;
  std::vector<std::string> nodes() const;
  std::string variable(std::string_view name) const;  // of the job's environment, where the job is in full
  const cli::Json& spec() const { return cli::at(job(), "spec"); }
  std::string exit_status() const;  // "3:0", "0:9"
};

// Which job and element are meant.
struct JobNumber {
  std::int64_t id = 0;
  std::optional<std::int64_t> element;
};

// What is listed. With `finished`, jobs that are over, too, as far back as `since` if it is stated.
struct RowQuery {
  bool finished = false;
  std::string since = {};
  std::string user = {};
  bool each_element = false;  // elements that wait are rows of their own
  bool in_full = false;       // with what only a job by itself tells
  // Only these, and of an array whose elements are named these elements alone, as rows of their own. Empty: all.
  std::vector<JobNumber> numbers = {};
};
Result<std::vector<JobRow>> job_rows(Shell& shell, const RowQuery& query);

// Asks for what only a job by itself tells.
Result<void> fill_row(Shell& shell, JobRow& row);

// The row of this job, in full; elements of an array that have not begun share one.
Result<JobRow> job_row(Shell& shell, std::int64_t id);

// "7", "7_3": nothing if it is no such text.
std::optional<JobNumber> job_number(std::string_view text);
bool is_meant(const JobRow& row, const JobNumber& number);

// True if `queue` is this account or below it.
bool is_of_account(std::string_view queue, std::string_view account);

// "PENDING" or "pd" as the word for the state; nothing if there is none.
std::optional<std::string> state_word(std::string_view text);
std::string all_states();

}  // namespace berth::slurm
