#pragma once
// A table with a header line. Cells are found by the name of their column, without case, and checked when they are
// read. A row keeps its first fault; the reader looks at it at the end of the row.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "sim/trace/csv.h"
#include "sim/trace/row_sink.h"

namespace berth::sim {

class Header {
 public:
  // Refuses a header that names a column twice.
  static Result<Header> of(const std::vector<std::string>& names);

  std::optional<std::size_t> find(std::string_view column) const;
  bool has(std::string_view column) const { return find(column).has_value(); }
  bool has_all(const std::vector<std::string_view>& columns) const;
  std::size_t columns() const { return columns_; }

 private:
  std::unordered_map<std::string, std::size_t> index_;
  std::size_t columns_ = 0;
};

class Row {
 public:
  Row(const Header& header, const CsvRow& cells) : header_(header), cells_(cells) {}

  std::int64_t line() const { return cells_.line; }
  // The cell without surrounding blanks; empty where the column is missing.
  std::string_view cell(std::string_view column) const;
  bool empty(std::string_view column) const { return cell(column).empty(); }

  // Each of these notes a fault if the cell has the wrong form. For an empty cell they return nothing, or note a fault
  // in the `need_` forms.
  std::string name(std::string_view column);
  std::string need_name(std::string_view column);
  std::optional<std::int64_t> whole(std::string_view column, std::int64_t limit);
  std::int64_t need_whole(std::string_view column, std::int64_t limit);
  std::optional<std::int64_t> seconds_as_ms(std::string_view column);

  // Remembers an assumption, to be counted if the row turns out sound. `text` must be a literal.
  void take_default(std::string_view text) { defaults_.push_back(text); }
  const std::vector<std::string_view>& defaults() const { return defaults_; }

  void fault(std::string_view column, std::string_view what);
  void fault(std::string reason);
  const std::optional<std::string>& first_fault() const { return fault_; }

 private:
  const Header& header_;
  const CsvRow& cells_;
  std::optional<std::string> fault_;
  std::vector<std::string_view> defaults_;
};

// The header line of a text, without reading further.
Result<Header> read_header(const std::string& file, std::string_view text, const CsvDialect& dialect);

// Calls `read` for every row after the header; a row that faults is counted as bad. Rows whose number of cells differs
// from the header's are bad.
using ReadRow = std::function<void(Row& row, RowSink& sink)>;
Result<void> read_table(std::string_view text, const CsvDialect& dialect, RowSink& sink, const ReadRow& read);

}  // namespace berth::sim
