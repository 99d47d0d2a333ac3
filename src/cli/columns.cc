#include "cli/columns.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "cli/output.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

constexpr const char* kColumnExample =
    "; give HEADING:PATH,..., such as custom=ID:id,USER:user, or paths alone: custom=id,user";

Error wrong_column(std::string_view part, const char* what) {
  return invalid("column '" + printable(part.substr(0, 80)) + "' " + what + kColumnExample);
}

std::string capitals(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

Result<ShownColumn> parse_column(std::string_view part, bool with_headings) {
  const std::size_t colon = part.find(':');
  if (with_headings && colon == std::string_view::npos) return wrong_column(part, "has no colon");
  std::string_view path = with_headings ? part.substr(colon + 1) : part;
  if (path.starts_with('.')) path.remove_prefix(1);  // as kubectl writes it
  if (with_headings && colon == 0) return wrong_column(part, "has no heading");
  if (path.empty()) return wrong_column(part, "has no path");
  if (path.front() == '.' || path.back() == '.' || path.find("..") != std::string_view::npos)
    return wrong_column(part, "has a path with an empty part");
  return ShownColumn{printable(with_headings ? part.substr(0, colon) : capitals(path)), std::string(path)};
}

std::string one_line(const Json& value) {
  std::string line = json_line(value);
  line.pop_back();
  return line;
}

bool is_simple(const Json& value) { return !value.is_object() && !value.is_array(); }

std::string value_text(const Json& value) {
  if (const auto* truth = value.if_bool()) return *truth ? "true" : "false";
  if (is_simple(value)) return show(value);
  std::vector<std::string> parts;
  if (const auto* list = value.if_array()) {
    for (const Json& item : *list) parts.push_back(value_text(item));
    return joined(parts, ",");
  }
  for (const auto& member : value.get_object()) {
    if (!is_simple(member.value())) return one_line(value);
    parts.push_back(std::string(member.key()) + "=" + value_text(member.value()));
  }
  return joined(parts, ",");
}

}  // namespace

Result<std::vector<ShownColumn>> parse_columns(std::string_view text) {
  if (text.empty()) return invalid("there is no column" + std::string(kColumnExample));
  const bool with_headings = text.find(':') != std::string_view::npos;
  std::vector<ShownColumn> columns;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    auto column = parse_column(text.substr(begin, end - begin), with_headings);
    if (!column) return column.error();
    columns.push_back(std::move(*column));
    begin = end + 1;
  }
  return columns;
}

std::string column_text(const Json& item, std::string_view path) {
  if (path.empty()) return value_text(item);
  if (const auto* list = item.if_array()) {
    std::vector<std::string> parts;
    for (const Json& one : *list) parts.push_back(column_text(one, path));
    return joined(parts, ",");
  }
  const auto* object = item.if_object();
  if (object == nullptr) return "";
  for (std::size_t end = path.size(); end != std::string_view::npos && end > 0; end = path.rfind('.', end - 1)) {
    const Json* member = object->if_contains(path.substr(0, end));
    if (member != nullptr) return column_text(*member, path.substr(std::min(end + 1, path.size())));
  }
  return "";
}

// A column of nothing but numbers has them under each other, at its right.
std::string in_columns(const boost::json::array& items, const ShowOptions& show, std::size_t width) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& item : items) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const ShownColumn& column : show.columns) row.push_back(column_text(item, column.path));
  }
  std::vector<Column> columns;
  for (std::size_t i = 0; i < show.columns.size(); ++i) {
    const bool numbers =
        std::all_of(rows.begin(), rows.end(), [i](const auto& row) { return row[i].empty() || is_number(row[i]); });
    columns.push_back({show.columns[i].title, numbers ? Align::kRight : Align::kLeft});
  }
  Table table(std::move(columns));
  for (const auto& row : rows) table.add(row);
  return show.format == Format::kCsv ? table.csv() : table.text(width);
}

}  // namespace berth::cli
