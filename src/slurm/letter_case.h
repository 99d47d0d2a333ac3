#pragma once
// Words without regard to upper and lower case, of ASCII letters.

#include <cctype>
#include <string>
#include <string_view>

namespace berth::slurm {

inline std::string lower_case(std::string_view text) {
  std::string copy(text);
  for (char& c : copy) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return copy;
}

inline std::string upper_case(std::string_view text) {
  std::string copy(text);
  for (char& c : copy) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return copy;
}

}  // namespace berth::slurm
