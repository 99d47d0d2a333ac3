#include "policy/denial_counter.h"

#include <algorithm>
#include <utility>

namespace berth::policy {
namespace {

std::string object_of_denial(const AccessDenied& denied) {
  return denied.job.valid() ? "job " + std::to_string(denied.job.value()) : denied.queue;
}

// What is common to the requests of a shared row.
AccessDenied shared_row(std::string subject) {
  AccessDenied row;
  row.subject = std::move(subject);
  row.others = true;
  return row;
}

}  // namespace

AccessDenied& DenialCounter::row_of(const AccessDenied& denied) {
  if (denied.subject.empty()) {
    const std::string key = "\n" + denied.address;
    if (const auto known = rows_.find(key); known != rows_.end()) return known->second;
    if (of_addresses_ == kMostOfAddresses) return rows_.try_emplace("\n\n", shared_row({})).first->second;
    ++of_addresses_;
    return rows_.emplace(key, denied).first->second;
  }
  const std::string key = denied.subject + "\n" + denied.verb + "\n" + object_of_denial(denied);
  if (const auto known = rows_.find(key); known != rows_.end()) return known->second;
  const std::string rest = denied.subject + "\n";
  if (const auto known = rows_.find(rest); known != rows_.end()) return known->second;
  if (of_subjects_ == kMostOfSubjects) return rows_.try_emplace("\n\n\n", shared_row({})).first->second;
  ++of_subjects_;
  if (++rows_of_subject_[denied.subject] == kMostOfOne)
    return rows_.emplace(rest, shared_row(denied.subject)).first->second;
  return rows_.emplace(key, denied).first->second;
}

void DenialCounter::count(AccessDenied denied, Timestamp now) {
  denied.count = 0;
  denied.first = now;
  denied.others = false;
  AccessDenied& row = row_of(denied);
  if (row.count == 0) row.first = now;
  ++row.count;
  row.last = std::max(row.last, now);
  row.proof = std::move(denied.proof);
  row.address = std::move(denied.address);
}

std::vector<AccessDenied> DenialCounter::take(Timestamp now) {
  if (rows_.empty() || now < not_before_) return {};
  not_before_ = now + kPauseMs;
  return take_all();
}

std::vector<AccessDenied> DenialCounter::take_all() {
  std::vector<AccessDenied> rows;
  rows.reserve(rows_.size());
  for (auto& [key, row] : rows_) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const AccessDenied& a, const AccessDenied& b) { return a.first < b.first; });
  rows_.clear();
  rows_of_subject_.clear();
  of_subjects_ = 0;
  of_addresses_ = 0;
  return rows;
}

}  // namespace berth::policy
