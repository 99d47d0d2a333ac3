#pragma once
// Comma-separated values as RFC 4180 has them: fields in double quotes may hold delimiters, line breaks and doubled
// quotes; lines end in LF or CRLF; a byte order mark at the start is skipped; a line of nothing is skipped. A malformed
// row is reported with its line, and reading goes on at the line after the one where it began.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::sim {

struct CsvDialect {
  char delimiter = ',';
  bool quotes = true;  // false: a quote is a character like any other, as sacct writes
  std::size_t max_row_bytes = std::size_t{1} << 20U;
  std::size_t max_columns = 256;
};

struct CsvRow {
  std::int64_t line = 0;  // of its first character, from 1
  std::vector<std::string> fields;
};

class CsvReader {
 public:
  enum class Step { kRow, kBadRow, kEnd };

  CsvReader(std::string_view text, CsvDialect dialect);

  // kRow fills `row`; kBadRow sets row.line and `reason`.
  Step next(CsvRow& row, std::string& reason);

 private:
  bool at_line_end() const;
  void skip_line_end();
  void skip_rest_of_line(std::size_t from);
  bool read_field(std::string& field, std::string& reason);
  bool read_quoted(std::string& field, std::string& reason);

  std::string_view text_;
  CsvDialect dialect_;
  std::size_t at_ = 0;
  std::size_t row_start_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace berth::sim
