#pragma once
// Lists of nodes as Slurm's users write them: "n1,m[3-5,9],k[01-03]".

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::slurm {

inline constexpr std::size_t kMostHostNames = 100'000;

// Returns the names in the order of the list; nothing if it is no such list or has more than kMostHostNames. Numbers
// keep the zeros in front of the first of their range: "n[08-10]" is n08, n09, n10.
std::optional<std::vector<std::string>> host_names(std::string_view list);

}  // namespace berth::slurm
