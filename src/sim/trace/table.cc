#include "sim/trace/table.h"

#include <algorithm>
#include <utility>

#include "sim/trace/fields.h"

namespace berth::sim {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Error bad_header(const std::string& file, const std::string& reason) { return invalid(file + ":1: " + reason); }

}  // namespace

Result<Header> Header::of(const std::vector<std::string>& names) {
  Header header;
  header.columns_ = names.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = lower_case(trimmed(names[i]));
    if (!header.index_.emplace(name, i).second) return invalid("the header names a column twice: " + name);
  }
  return header;
}

std::optional<std::size_t> Header::find(std::string_view column) const {
  const auto found = index_.find(lower_case(column));
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

bool Header::has_all(const std::vector<std::string_view>& columns) const {
  return std::all_of(columns.begin(), columns.end(), [this](std::string_view column) { return has(column); });
}

std::string_view Row::cell(std::string_view column) const {
  const auto index = header_.find(column);
  return index ? trimmed(cells_.fields[*index]) : std::string_view();
}

std::string Row::name(std::string_view column) {
  const std::string_view text = cell(column);
  if (!is_sound_name(text)) fault(column, "not a sound name (UTF-8, no control characters, at most 256 bytes)");
  return std::string(text);
}

std::string Row::need_name(std::string_view column) {
  if (empty(column)) fault(column, "empty");
  return name(column);
}

std::optional<std::int64_t> Row::whole(std::string_view column, std::int64_t limit) {
  const std::string_view text = cell(column);
  if (text.empty()) return std::nullopt;
  const auto value = parse_whole(text);
  if (!value) {
    fault(column, text.front() == '-' ? "negative" : "not a whole number");
    return 0;
  }
  if (*value > limit) {
    fault(column, "over " + std::to_string(limit));
    return 0;
  }
  return value;
}

std::int64_t Row::need_whole(std::string_view column, std::int64_t limit) {
  if (empty(column)) fault(column, "empty");
  return whole(column, limit).value_or(0);
}

std::optional<std::int64_t> Row::seconds_as_ms(std::string_view column) {
  const std::string_view text = cell(column);
  if (text.empty()) return std::nullopt;
  const auto value = parse_thousandths(text);
  if (!value) {
    fault(column, text.front() == '-' ? "negative" : "not a number of seconds");
    return 0;
  }
  if (*value > kMaxTimeMs) {
    fault(column, "over a thousand years");
    return 0;
  }
  return value;
}

void Row::fault(std::string_view column, std::string_view what) {
  fault(std::string(column).append(": ").append(what));
}

void Row::fault(std::string reason) {
  if (!fault_) fault_ = std::move(reason);
}

Result<Header> read_header(const std::string& file, std::string_view text, const CsvDialect& dialect) {
  CsvReader reader(text, dialect);
  CsvRow row;
  std::string reason;
  switch (reader.next(row, reason)) {
    case CsvReader::Step::kEnd:
      return bad_header(file, "the file is empty");
    case CsvReader::Step::kBadRow:
      return bad_header(file, reason);
    case CsvReader::Step::kRow:
      break;
  }
  auto header = Header::of(row.fields);
  if (!header) return bad_header(file, header.error().message);
  return header;
}

Result<void> read_table(std::string_view text, const CsvDialect& dialect, RowSink& sink, const ReadRow& read) {
  const auto header = read_header(sink.file(), text, dialect);
  if (!header) return header.error();
  CsvReader reader(text, dialect);
  CsvRow cells;
  std::string reason;
  reader.next(cells, reason);  // the header, sound as just seen
  while (!sink.stopped()) {
    const CsvReader::Step step = reader.next(cells, reason);
    if (step == CsvReader::Step::kEnd) break;
    sink.count_row();
    if (step == CsvReader::Step::kBadRow) {
      sink.bad_row(cells.line, reason);
    } else if (cells.fields.size() != header->columns()) {
      sink.bad_row(cells.line, "the number of cells differs from the header's");
    } else {
      Row row(*header, cells);
      read(row, sink);
      if (row.first_fault()) sink.bad_row(row.line(), *row.first_fault());
    }
  }
  return sink.status();
}

}  // namespace berth::sim
