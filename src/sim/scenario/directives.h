#pragma once
// The directives of a scenario and the lines of a cluster, each with the words that may follow it. A word that is not
// listed here is refused; docs/scenarios.md describes them all.

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
  std::string_view names = {};  // the names that come first, as the documentation shows them: "NAME [CODE]"
  std::size_t fewest = 0;       // the least number of names
  std::size_t most = 0;
  std::string_view flags = {};    // words without a value, separated by spaces
  std::string_view options = {};  // words with `=value`, separated by spaces
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

// Returns an error if a line is too long or has other characters than printable ASCII, or quotation marks.
Result<void> check_text(std::string_view text);

// Returns the words of the line. Error: an unknown word, a word given twice, or an option without a value; the message
// says what would be right. `kind` is the noun for the message: "directive".
Result<Line> read_line(std::string_view text, std::span<const Directive> known, std::string_view kind);

}  // namespace berth::sim
