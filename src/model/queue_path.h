#pragma once
// Paths of queues: names joined by '/', such as research/nlp. The root's is empty. Paths of directories are alike.

#include <string_view>

namespace berth {

// Returns true if the path is `top` or lies below it. Everything is below the root.
inline bool is_at_or_below(std::string_view path, std::string_view top) {
  return top.empty() || (path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/'));
}

}  // namespace berth
