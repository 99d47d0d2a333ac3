#pragma once
// Counts requests that were denied, so that the log says of each subject, verb and object how often and when, and a
// flood of them is few events. Pure: the time is an argument. Its memory is bounded, whatever comes: requests of one
// subject beyond its first objects share a row, and those of subjects (or addresses) for which there is no row left
// share one, too.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/timestamp.h"
#include "model/event.h"

namespace berth::policy {

class DenialCounter {
 public:
  // The rows are written together, and then not again for kPauseMs. A minute meets two such moments at most, so it
  // makes no more than 2 * (kMostOfSubjects + kMostOfAddresses + 2) = 96 events.
  static constexpr std::int64_t kPauseMs = 60'000;
  static constexpr std::size_t kMostOfSubjects = 31;
  static constexpr std::size_t kMostOfAddresses = 15;
  static constexpr std::size_t kMostOfOne = 4;  // of one subject, the shared one with them

  // Counts one request. Count and times of `denied` are not looked at.
  void count(AccessDenied denied, Timestamp now);

  // Returns the rows and forgets them; none if some were taken less than kPauseMs ago.
  std::vector<AccessDenied> take(Timestamp now);
  // Returns the rows and forgets them, for a server that stops.
  std::vector<AccessDenied> take_all();

 private:
  AccessDenied& row_of(const AccessDenied& denied);

  std::map<std::string, AccessDenied> rows_;
  std::map<std::string, std::size_t> rows_of_subject_;
  std::size_t of_subjects_ = 0;
  std::size_t of_addresses_ = 0;
  Timestamp not_before_;
};

}  // namespace berth::policy
