#include "cli/output.h"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <numeric>

#include "base/check.h"
#include "base/csv.h"
#include "cli/printable.h"
#include "model/document/document.h"

namespace berth::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 8;  // no column is cut below this

std::string number_text(double number) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

std::string scalar_text(const boost::json::value& value) {
  return value.is_double() ? number_text(value.get_double()) : boost::json::serialize(value);
}

// One value, indented by `depth` steps of two, or on one line when `depth` is negative.
void write_json(const boost::json::value& value, int depth, std::string& out);

void break_line(int depth, std::string& out) {
  if (depth < 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(depth) * 2, ' ');
}

void write_object(const boost::json::object& object, int depth, std::string& out) {
  const int inner = depth < 0 ? depth : depth + 1;
  out += '{';
  bool first = true;
  for (const auto& member : object) {
    if (!first) out += ',';
    break_line(inner, out);
    if (!first && depth < 0) out += ' ';
    first = false;
    out += boost::json::serialize(boost::json::string(member.key())) + ": ";
    write_json(member.value(), inner, out);
  }
  break_line(depth, out);
  out += '}';
}

void write_array(const boost::json::array& array, int depth, std::string& out) {
  const int inner = depth < 0 ? depth : depth + 1;
  out += '[';
  bool first = true;
  for (const auto& item : array) {
    if (!first) out += ',';
    break_line(inner, out);
    if (!first && depth < 0) out += ' ';
    first = false;
    write_json(item, inner, out);
  }
  break_line(depth, out);
  out += ']';
}

void write_json(const boost::json::value& value, int depth, std::string& out) {
  if (value.is_object() && !value.get_object().empty()) return write_object(value.get_object(), depth, out);
  if (value.is_array() && !value.get_array().empty()) return write_array(value.get_array(), depth, out);
  out += scalar_text(value);
}

document::Node node_of(const boost::json::value& value) {
  if (const auto* object = value.if_object()) {
    document::Node map = document::map_node();
    for (const auto& member : *object) {
      document::Node inner = node_of(member.value());
      map.entries.push_back({std::string(member.key()), {}, std::move(inner)});
    }
    return map;
  }
  if (const auto* array = value.if_array()) {
    document::Node list = document::list_node();
    for (const auto& item : *array) list.items.push_back(node_of(item));
    return list;
  }
  if (const auto* text = value.if_string()) return document::string_node({text->data(), text->size()});
  if (value.is_null()) return {};
  return document::plain_node(scalar_text(value));
}

std::string padded(const std::string& cell, std::size_t width, Align align) {
  const std::string space(width - std::min(width, display_width(cell)), ' ');
  return align == Align::kRight ? space + cell : cell + space;
}

}  // namespace

void Table::add(const std::vector<std::string>& cells) {
  BERTH_CHECK(cells.size() == columns_.size());
  std::vector<std::string>& row = rows_.emplace_back();
  for (const std::string& cell : cells) row.push_back(printable(cell));
}

// The natural widths; then the widest column that shrinks gives up a character at a time until the table fits, and
// where that is not enough, the widest other one that is no number.
std::vector<std::size_t> Table::widths(std::size_t width) const {
  std::vector<std::size_t> found;
  for (const Column& column : columns_) found.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) found[i] = std::max({found[i], display_width(row[i]), std::size_t{1}});
  }
  if (width == 0) return found;
  std::size_t total = std::accumulate(found.begin(), found.end(), kGap * (columns_.size() - 1));
  for (const bool any_text : {false, true}) {
    for (; total > width; --total) {
      std::size_t* widest = nullptr;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const bool may = (any_text ? columns_[i].align == Align::kLeft : columns_[i].shrinks) &&
                         found[i] > std::max(kNarrowest, columns_[i].title.size());
        if (may && (widest == nullptr || found[i] > *widest)) widest = &found[i];
      }
      if (widest == nullptr) break;
      --*widest;
    }
  }
  return found;
}

std::string Table::text(std::size_t width) const {
  const std::vector<std::size_t> fit = widths(width);
  std::string out;
  const auto line = [&](const auto& cell_at) {
    std::string row;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) row.append(kGap, ' ');
      const bool at_front = columns_[i].keeps_end;
      const std::string cell = at_front ? shorten_front(cell_at(i), fit[i]) : shorten(cell_at(i), fit[i]);
      row += padded(cell, fit[i], columns_[i].align);
    }
    out += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  };
  line([this](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) line([&row](std::size_t i) { return row[i].empty() ? "-" : row[i]; });
  return out;
}

std::string Table::csv() const {
  std::string out;
  const auto end_cell = [&](std::size_t i) { out += i + 1 < columns_.size() ? "," : "\r\n"; };
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    out += csv_text_cell(columns_[i].title);
    end_cell(i);
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += is_number(row[i]) ? row[i] : csv_text_cell(row[i]);
      end_cell(i);
    }
  }
  return out;
}

std::string fitting(std::string_view text, std::size_t columns, std::size_t rows) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  const auto rows_of = [columns](std::string_view line) {
    const std::size_t width = display_width(line);
    return columns == 0 || width == 0 ? 1 : (width + columns - 1) / columns;
  };
  std::size_t all = 0;
  for (const std::string_view line : lines) all += rows_of(line);
  if (rows == 0 || all <= rows) return std::string(text);
  std::string shown;
  std::size_t used = 1;  // the row that says how many
  std::size_t count = 0;
  for (; count < lines.size() && used + rows_of(lines[count]) <= rows; ++count) {
    used += rows_of(lines[count]);
    shown += std::string(lines[count]) + "\n";
  }
  return shown + "… " + std::to_string(lines.size() - count) + " lines more\n";
}

std::string json_text(const boost::json::value& value) {
  std::string out;
  write_json(value, 0, out);
  return out + "\n";
}

std::string json_line(const boost::json::value& value) {
  std::string out;
  write_json(value, -1, out);
  return out + "\n";
}

std::string yaml_text(const boost::json::value& value) { return document::to_yaml(node_of(value)); }

bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.front() != '.' && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace berth::cli
