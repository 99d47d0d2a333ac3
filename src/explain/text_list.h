#pragma once
// Lists and counts in sentences: "a, b and c", "3 jobs", " (a, b)".

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace berth::explain {

// Returns the items as a list, "a, b and c". `name` returns the text of one item.
template <class Items, class Name>
std::string listed(const Items& items, Name&& name) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + name(items[i]);
  }
  return text;
}

// "1 job", "3 jobs".
inline std::string counted(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// " (2 GPUs failed on n1, 1 eligible node cordoned)", or nothing.
inline std::string in_parentheses(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += (text.empty() ? " (" : ", ") + note;
  return text.empty() ? text : text + ")";
}

}  // namespace berth::explain
