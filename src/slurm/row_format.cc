#include "slurm/row_format.h"

#include <algorithm>
#include <map>

#include "cli/printable.h"

namespace berth::slurm {
namespace {

constexpr std::size_t kUsualWidth = 20;
constexpr std::size_t kMostWidth = 10'000;

// Reads "[.][width]" off the front.
void read_width(std::string_view& text, Column& column) {
  if (text.starts_with('.')) {
    column.right = true;
    text.remove_prefix(1);
  }
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    column.width = std::min(kMostWidth, column.width * 10 + static_cast<std::size_t>(text.front() - '0'));
    text.remove_prefix(1);
  }
}

void add_text(RowFormat& format, std::string_view text) {
  (format.columns.empty() ? format.prefix : format.columns.back().suffix) += text;
}

}  // namespace

RowFormat parse_letters(std::string_view text, const std::function<std::size_t(char)>& find) {
  RowFormat format;
  const std::size_t first = std::min(text.find('%'), text.size());
  format.prefix = text.substr(0, first);
  text.remove_prefix(first);
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of('%');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find('%'), text.size());
    const std::string_view token = text.substr(0, end);
    text.remove_prefix(end);
    Column column;
    std::string_view rest = token;
    read_width(rest, column);
    column.field = rest.empty() ? std::string_view::npos : find(rest.front());
    if (column.field == std::string_view::npos) {
      format.unknown.emplace_back(rest.substr(0, 1));
      add_text(format, "%" + std::string(token));
      continue;
    }
    column.suffix = rest.substr(1);
    format.columns.push_back(std::move(column));
  }
  return format;
}

RowFormat parse_names(std::string_view text, const std::function<std::size_t(const std::string&)>& find) {
  RowFormat format;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view token = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = token.find(':');
    const std::string name(token.substr(0, colon));
    Column column;
    column.field = find(name);
    column.width = kUsualWidth;
    if (colon != std::string_view::npos) {
      std::string_view rest = token.substr(colon + 1);
      column.width = 0;
      read_width(rest, column);
      column.suffix = rest;
    }
    if (column.field == std::string_view::npos) {
      format.unknown.push_back(name);
    } else {
      format.columns.push_back(std::move(column));
    }
  }
  return format;
}

std::string cut_to(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  while (width > 0 && (static_cast<unsigned char>(text[width]) & 0xc0U) == 0x80U) --width;
  return text.substr(0, width);
}

std::string row_line(const RowFormat& format, const std::function<std::string(std::size_t)>& text_of) {
  std::string line = format.prefix;
  for (const Column& column : format.columns) {
    std::string text = cli::printable(text_of(column.field));
    if (column.width > 0) {
      text = cut_to(text, column.width);
      const std::string blanks(column.width - text.size(), ' ');
      text = column.right ? blanks + text : text + blanks;
    }
    line += text + column.suffix;
  }
  return line + "\n";
}

std::string host_list(const std::vector<std::string>& names) {
  std::vector<std::string> order;                          // of prefixes, as they come
  std::map<std::string, std::vector<std::int64_t>> under;  // the numbers of each
  for (const std::string& name : names) {
    std::size_t end = name.size();
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9' && name.size() - end < 9) --end;
    const bool numbered = end < name.size() && name[end] != '0' && end > 0;
    const std::string prefix = numbered ? name.substr(0, end) : name;
    const std::string key = (numbered ? "#" : "=") + prefix;
    if (under.find(key) == under.end()) order.push_back(key);
    under[key].push_back(numbered ? std::stoll(name.substr(end)) : 0);
  }
  std::string all;
  for (const std::string& key : order) {
    std::vector<std::int64_t>& numbers = under[key];
    all += (all.empty() ? "" : ",") + key.substr(1);
    if (key.front() == '=') continue;
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    std::string ranges;
    for (std::size_t i = 0; i < numbers.size();) {
      std::size_t end = i + 1;
      while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
      ranges += (ranges.empty() ? "" : ",") + std::to_string(numbers[i]);
      if (end - i > 1) ranges += "-" + std::to_string(numbers[end - 1]);
      i = end;
    }
    all += numbers.size() == 1 ? ranges : "[" + ranges + "]";
  }
  return all;
}

}  // namespace berth::slurm
