#pragma once
// What a tool of Slurm says when it refuses something, and its exit code. Lines of `plain` stand alone, those of
// `errors` after "TOOL: error: ". `hint` is what Slurm has no words for; it stands after "TOOL: berth: ".

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace berth::slurm {

struct Complaint {
  std::vector<std::string> plain = {};
  std::vector<std::string> errors = {};
  // The server's refusal in Slurm's words: after "Batch job submission failed: " or the like of another tool.
  std::string refusal = {};
  std::string hint = {};
  int code = 1;
};

inline Complaint error_line(std::string text, int code) { return {.errors = {std::move(text)}, .code = code}; }
inline Complaint refused(std::string text, std::string hint = {}) {
  return {.refusal = std::move(text), .hint = std::move(hint)};
}

template <class T>
using OrComplaint = std::variant<T, Complaint>;

}  // namespace berth::slurm
