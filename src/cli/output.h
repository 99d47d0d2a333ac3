#pragma once
// How answers are shown: tables aligned by columns that fit the terminal, and the server's JSON as JSON or YAML.

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  bool shrinks = false;    // may be cut when the terminal is too narrow
  bool keeps_end = false;  // then at its front, as a path, whose last part says most
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns; each is made printable. An empty one is shown as "-".
  void add(const std::vector<std::string>& cells);
  bool empty() const { return rows_.empty(); }

  // With a heading and two spaces between columns. `width` 0: as wide as it gets.
  std::string text(std::size_t width) const;
  // With a heading, each line ended as RFC 4180 has it. An empty cell is empty.
  std::string csv() const;

 private:
  std::vector<std::size_t> widths(std::size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// The lines of `text` that fit a screen of so many rows, on which long lines are wrapped; the last row says how many
// lines there are more. No rows: all of it.
std::string fitting(std::string_view text, std::size_t columns, std::size_t rows);

// Indented by two, members in the order they came, numbers without exponents where they are short that way.
std::string json_text(const boost::json::value& value);
// On one line.
std::string json_line(const boost::json::value& value);
std::string yaml_text(const boost::json::value& value);

// Digits with at most a minus before them and points between: 8, -5, 0.25.
bool is_number(std::string_view text);

}  // namespace berth::cli
