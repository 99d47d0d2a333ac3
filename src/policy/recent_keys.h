#pragma once
// A table of texts with a value each that never holds more than a stated number of them, whatever is asked. Keeps the
// order in which they were last used.

#include <cstddef>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace berth::policy {

template <class Value>
class RecentKeys {
 public:
  explicit RecentKeys(std::size_t most) : most_(most) {}

  std::size_t size() const { return entries_.size(); }
  bool full() const { return entries_.size() >= most_; }

  // Returns the value of the key, which is then the one that was used last; null if there is none.
  Value* find(std::string_view key) {
    const auto known = entries_.find(key);
    if (known == entries_.end()) return nullptr;
    order_.splice(order_.end(), order_, known->second.place);
    return &known->second.value;
  }

  // Requires: not full, and the key is not there.
  Value& add(std::string_view key, Value value) {
    const auto [entry, fresh] = entries_.try_emplace(std::string(key), Entry{std::move(value), {}});
    entry->second.place = order_.insert(order_.end(), &entry->first);
    return entry->second.value;
  }

  // The value that was not used for longest; requires: there is one.
  const Value& oldest() const { return entries_.find(*order_.front())->second.value; }
  void drop_oldest() {
    entries_.erase(entries_.find(*order_.front()));
    order_.pop_front();
  }

 private:
  struct Entry {
    Value value;
    std::list<const std::string*>::iterator place;
  };
  std::size_t most_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::list<const std::string*> order_;  // of use, the last at the end; the keys of entries_
};

}  // namespace berth::policy
