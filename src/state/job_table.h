#pragma once
// JobTable: jobs, or facts about them, by job id, in pages of consecutive ids. Ids only grow. So a look-up is a few
// array accesses, iteration is in the order of ids, and a page is freed when all its jobs have finished. A pointer
// stays valid until its job is erased. A restore leaves out many ids at once (LogRestored); no room is kept for these.

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
    const std::unique_ptr<Page>* page = id.valid() ? place_of(page_of(id)) : nullptr;
    if (page == nullptr || !*page) return nullptr;
    const auto& slot = (*page)->slots[id.value() % kPageSize];
    return slot ? &*slot : nullptr;
  }
  Job& insert(JobId id, Job job) {
    auto& page = make_place(page_of(id));
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
    auto& page = make_place(page_of(id));
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
  JobId first() const {
    BERTH_CHECK(size_ > 0);
    const auto& slots = (*place_of(in_use_.front()))->slots;
    const auto slot = std::find_if(slots.begin(), slots.end(), [](const auto& one) { return one.has_value(); });
    return id_at(in_use_.front(), static_cast<std::size_t>(slot - slots.begin()));
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const std::size_t page : in_use_) {
      for (const auto& slot : std::as_const(**place_of(page)).slots) {
        if (slot) visit(*slot);
      }
    }
  }
  template <class Visit>
  void for_each_with_id(Visit&& visit) const {
    for (const std::size_t page : in_use_) {
      const auto& slots = std::as_const(**place_of(page)).slots;
      for (std::size_t s = 0; s < kPageSize; ++s) {
        if (slots[s]) visit(id_at(page, s), *slots[s]);
      }
    }
  }
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const std::size_t page : in_use_) {
      for (auto& slot : make_place(page)->slots) {
        if (slot) visit(*slot);
      }
    }
  }

 private:
  static constexpr std::size_t kPageSize = 64;
  static constexpr std::size_t kMostEmpty = 4096;  // pages between two in use; more of them begin another run
  struct Page {
    std::array<std::optional<Job>, kPageSize> slots;
    std::size_t used = 0;
  };
  // Consecutive pages. There is one, and one more for each restore.
  struct Run {
    std::size_t first = 0;
    std::vector<std::unique_ptr<Page>> pages = {};
  };
  static std::size_t page_of(JobId id) { return static_cast<std::size_t>(id.value() / kPageSize); }
  static JobId id_at(std::size_t page, std::size_t slot) { return JobId(page * kPageSize + slot); }

  const std::unique_ptr<Page>* place_of(std::size_t page) const {
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      if (page >= run->first) return page - run->first < run->pages.size() ? &run->pages[page - run->first] : nullptr;
    }
    return nullptr;
  }
  std::unique_ptr<Page>& make_place(std::size_t page) {
    auto run = std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& one) { return page >= one.first; });
    const bool is_far = run == runs_.rend() || page - run->first >= run->pages.size() + kMostEmpty;
    if (is_far) {
      const auto at = runs_.insert(run.base(), Run{page});
      at->pages.resize(1);
      return at->pages.front();
    }
    if (page - run->first >= run->pages.size()) run->pages.resize(page - run->first + 1);
    return run->pages[page - run->first];
  }

  std::vector<Run> runs_;            // by their first page; they do not overlap
  std::vector<std::size_t> in_use_;  // sorted
  std::size_t size_ = 0;
};

}  // namespace berth::state
