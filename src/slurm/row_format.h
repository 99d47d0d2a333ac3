#pragma once
// The format strings of squeue and sinfo: `%[.][width]letter` (-o) and `name:[.][width][suffix]` (-O). What is not
// known is printed as it stands and told of, as Slurm does.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::slurm {

// A column: which field, how wide (0: as wide as its text), on which side, and the text after it.
struct Column {
  std::size_t field = 0;
  std::size_t width = 0;
  bool right = false;
  std::string suffix = {};
};

struct RowFormat {
  std::string prefix = {};
  std::vector<Column> columns;
  std::vector<std::string> unknown = {};  // what no field stands for
};

// `find` gives the number of a field by its letter, or npos.
RowFormat parse_letters(std::string_view text, const std::function<std::size_t(char)>& find);
RowFormat parse_names(std::string_view text, const std::function<std::size_t(const std::string&)>& find);

// `text` cut to at most `width` bytes, between characters.
std::string cut_to(const std::string& text, std::size_t width);

// One line, with its newline. What `text_of` gives is a tenant's: characters that a terminal obeys are shown as
// escapes.
std::string row_line(const RowFormat& format, const std::function<std::string(std::size_t)>& text_of);

// "n[1-3],m5" of n1, n2, n3, m5.
std::string host_list(const std::vector<std::string>& names);

}  // namespace berth::slurm
