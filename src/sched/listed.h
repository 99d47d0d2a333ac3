#pragma once
// "a, b and c": a list in a sentence.

#include <cstddef>
#include <string>

namespace berth::sched {

// `name` says one of them.
template <class Items, class Name>
std::string listed(const Items& items, Name&& name) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + name(items[i]);
  }
  return text;
}

}  // namespace berth::sched
