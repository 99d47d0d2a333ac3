#include "sim/trace/csv.h"

#include <algorithm>

namespace berth::sim {

CsvReader::CsvReader(std::string_view text, CsvDialect dialect) : text_(text), dialect_(dialect) {
  if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
}

bool CsvReader::at_line_end() const {
  return at_ == text_.size() || text_[at_] == '\n' ||
         (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
}

void CsvReader::skip_line_end() {
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size() && text_[at_] == '\n') {
    ++at_;
    ++line_;
  }
}

// A bad row may have consumed lines because of a quote that never closes. So the next row begins at the next line.
void CsvReader::skip_rest_of_line(std::size_t from) {
  const std::size_t end = text_.find('\n', from);
  at_ = end == std::string_view::npos ? text_.size() : end + 1;
}

CsvReader::Step CsvReader::next(CsvRow& row, std::string& reason) {
  while (at_ < text_.size() && at_line_end()) skip_line_end();
  if (at_ == text_.size()) return Step::kEnd;
  row.line = line_;
  row_start_ = at_;
  std::size_t columns = 0;
  for (;;) {
    if (columns == row.fields.size()) row.fields.emplace_back();
    std::string& field = row.fields[columns];
    field.clear();
    const bool sound = read_field(field, reason);
    ++columns;
    if (!sound || columns > dialect_.max_columns) {
      if (sound) reason = "more than " + std::to_string(dialect_.max_columns) + " columns";
      skip_rest_of_line(row_start_);
      line_ = row.line + 1;
      return Step::kBadRow;
    }
    if (at_line_end()) break;
    ++at_;  // the delimiter
  }
  row.fields.resize(columns);
  skip_line_end();
  return Step::kRow;
}

bool CsvReader::read_field(std::string& field, std::string& reason) {
  if (dialect_.quotes && at_ < text_.size() && text_[at_] == '"') return read_quoted(field, reason);
  const std::size_t limit = row_start_ + dialect_.max_row_bytes;
  const std::size_t begin = at_;
  while (!at_line_end() && text_[at_] != dialect_.delimiter) {
    if (text_[at_] == '\r' || (dialect_.quotes && text_[at_] == '"')) {
      reason = text_[at_] == '"' ? "a quote inside a field that is not quoted" : "a carriage return inside a line";
      return false;
    }
    if (++at_ > limit) {
      reason = "longer than " + std::to_string(dialect_.max_row_bytes) + " bytes";
      return false;
    }
  }
  field.assign(text_.substr(begin, at_ - begin));
  return true;
}

bool CsvReader::read_quoted(std::string& field, std::string& reason) {
  const std::size_t limit = std::min(text_.size(), row_start_ + dialect_.max_row_bytes);
  ++at_;
  while (at_ < limit) {
    if (text_[at_] != '"') {
      if (text_[at_] == '\n') ++line_;
      field.push_back(text_[at_++]);
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      field.push_back('"');
      at_ += 2;
    } else {
      ++at_;
      if (at_line_end() || text_[at_] == dialect_.delimiter) return true;
      reason = "text after a closing quote";
      return false;
    }
  }
  reason = limit == text_.size() ? "a quote that never closes"
                                 : "longer than " + std::to_string(dialect_.max_row_bytes) + " bytes";
  return false;
}

}  // namespace berth::sim
