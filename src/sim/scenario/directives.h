#pragma once
// What may be written in a scenario: each directive, and each line of a cluster, with the words that may follow it.
// Nothing is read that does not stand here, and docs/scenarios.md names every word of it.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::sim {

struct Directive {
  std::string_view verb;        // one word or two: "submit", "maintenance add"
  std::string_view names = {};  // what comes first, as the documentation says it: "NAME [CODE]"
  std::size_t fewest = 0;       // of the names
  std::size_t most = 0;
  std::string_view flags = {};    // words that stand alone, with spaces between them
  std::string_view options = {};  // words with `=value`, the same way
};

std::span<const Directive> directives();
std::span<const Directive> cluster_lines();

struct Line {
  std::string_view verb;
  std::vector<std::string> names;  // in order
  std::vector<std::string> flags;
  std::vector<std::pair<std::string, std::string>> options;

  const std::string* option(std::string_view key) const;
  bool has(std::string_view flag) const;
};

// Whether a line is of printable ASCII, without quotation marks, and no longer than anybody writes.
Result<void> check_text(std::string_view text);

// The line's words, all of which its directive knows, none given twice and no option without a value; else what is
// wrong, and what would be right. `kind` is what the known ones are called: "directive".
Result<Line> read_line(std::string_view text, std::span<const Directive> known, std::string_view kind);

}  // namespace berth::sim
