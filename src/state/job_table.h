#pragma once
// JobTable: jobs, or facts about them, by job id, in pages of consecutive ids. Ids only grow. So a look-up is two array
// accesses, iteration is in the order of ids, and a page is freed when all its jobs have finished. A pointer stays
// valid until its job is erased.

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/ids.h"

namespace berth::state {

template <class Job>
class JobTable {
 public:
  Job* find(JobId id) {
    return const_cast<Job*>(std::as_const(*this).find(id));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  const Job* find(JobId id) const {
    if (!id.valid() || page_of(id) >= pages_.size() || !pages_[page_of(id)]) return nullptr;
    const auto& slot = pages_[page_of(id)]->slots[id.value() % kPageSize];
    return slot ? &*slot : nullptr;
  }
  Job& insert(JobId id, Job job) {
    if (page_of(id) >= pages_.size()) pages_.resize(page_of(id) + 1);
    auto& page = pages_[page_of(id)];
    if (!page) {
      page = std::make_unique<Page>();
      in_use_.insert(std::upper_bound(in_use_.begin(), in_use_.end(), page_of(id)), page_of(id));
    }
    auto& slot = page->slots[id.value() % kPageSize];
    BERTH_CHECK(!slot.has_value());
    ++page->used;
    ++size_;
    return slot.emplace(std::move(job));
  }
  void erase(JobId id) {
    auto& page = pages_[page_of(id)];
    auto& slot = page->slots[id.value() % kPageSize];
    BERTH_CHECK(slot.has_value());
    slot.reset();
    --size_;
    if (--page->used > 0) return;
    page.reset();
    in_use_.erase(std::lower_bound(in_use_.begin(), in_use_.end(), page_of(id)));
  }
  std::size_t size() const { return size_; }
  // Returns the smallest id. Requires that the table is not empty.
  JobId first() {
    BERTH_CHECK(size_ > 0);
    const auto& slots = pages_[in_use_.front()]->slots;
    const auto slot = std::find_if(slots.begin(), slots.end(), [](const auto& one) { return one.has_value(); });
    return id_at(in_use_.front(), static_cast<std::size_t>(slot - slots.begin()));
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const std::size_t page : in_use_) {
      for (const auto& slot : std::as_const(*pages_[page]).slots) {
        if (slot) visit(*slot);
      }
    }
  }
  template <class Visit>
  void for_each_with_id(Visit&& visit) const {
    for (const std::size_t p : in_use_) {
      for (std::size_t s = 0; s < kPageSize; ++s) {
        if (const auto& slot = pages_[p]->slots[s]) visit(id_at(p, s), *slot);
      }
    }
  }
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const std::size_t page : in_use_) {
      for (auto& slot : pages_[page]->slots) {
        if (slot) visit(*slot);
      }
    }
  }

 private:
  static constexpr std::size_t kPageSize = 64;
  struct Page {
    std::array<std::optional<Job>, kPageSize> slots;
    std::size_t used = 0;
  };
  static std::size_t page_of(JobId id) { return static_cast<std::size_t>(id.value() / kPageSize); }
  static JobId id_at(std::size_t page, std::size_t slot) { return JobId(page * kPageSize + slot); }

  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t size_ = 0;
  std::vector<std::size_t> in_use_;  // sorted; few, although a restore leaves out ten million ids
};

}  // namespace berth::state
