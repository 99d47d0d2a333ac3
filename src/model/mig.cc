#include "model/mig.h"

#include <algorithm>
#include <array>
#include <bit>

namespace berth {

namespace {

constexpr std::array<MigProfile, 3> kA30{{{"1g.6gb", 1, 0b1111}, {"2g.12gb", 2, 0b0101}, {"4g.24gb", 4, 0b0001}}};

// Returns the profiles of a GPU with seven compute slices and eight memory slices. No instance of one slice begins at
// the last memory slice.
constexpr std::array<MigProfile, 6> seven(std::string_view one, std::string_view one_wide, std::string_view two,
                                          std::string_view three, std::string_view four, std::string_view all) {
  return {{{one, 1, 0b0111'1111},
           {one_wide, 2, 0b0101'0101},
           {two, 2, 0b0001'0101},
           {three, 4, 0b0001'0001},
           {four, 4, 0b0000'0001},
           {all, 8, 0b0000'0001}}};
}

constexpr auto kA100Of40 = seven("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb");
constexpr auto kOf80 = seven("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb");
constexpr auto kH200 = seven("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb");
constexpr auto kB200 = seven("1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb");

constexpr std::array<MigGeometry, 6> kGeometries{{{"a30-24gb", 4, kA30},
                                                  {"a100-40gb", 8, kA100Of40},
                                                  {"a100-80gb", 8, kOf80},
                                                  {"h100-80gb", 8, kOf80},
                                                  {"h200-141gb", 8, kH200},
                                                  {"b200-180gb", 8, kB200}}};

}  // namespace

const MigProfile* MigGeometry::profile_named(std::string_view wanted) const {
  const auto found =
      std::find_if(profiles.begin(), profiles.end(), [&](const auto& one) { return one.name == wanted; });
  return found == profiles.end() ? nullptr : &*found;
}

const MigGeometry* mig_geometry(std::string_view name) {
  const auto* const found =
      std::find_if(kGeometries.begin(), kGeometries.end(), [&](const auto& one) { return one.name == name; });
  return found == kGeometries.end() ? nullptr : found;
}

std::string known_mig_geometries() {
  std::string names;
  for (const MigGeometry& one : kGeometries) names.append(names.empty() ? "" : ", ").append(one.name);
  return names;
}

// All instances have the same width, so taking each free position from the lowest slice up gives the most.
std::int32_t instances_beside(const MigProfile& profile, MigSlices used) {
  std::int32_t instances = 0;
  for (std::uint32_t start = 0; start < 8; ++start) {
    if ((profile.starts >> start & 1U) == 0 || (profile.at(start) & used) != 0) continue;
    used |= profile.at(start);
    ++instances;
  }
  return instances;
}

std::int32_t mig_loss(const MigGeometry& geometry, MigSlices used, MigSlices taken) {
  std::int32_t loss = 0;
  for (const MigProfile& profile : geometry.profiles) {
    for (std::uint32_t start = 0; start < 8; ++start) {
      const MigSlices slices = profile.at(start);
      if ((profile.starts >> start & 1U) == 0 || (slices & used) != 0) continue;
      if ((slices & taken) != 0) loss += profile.width;
    }
  }
  return loss;
}

std::optional<MigPlace> best_place(const MigGeometry& geometry, const MigProfile& profile, MigSlices used) {
  std::optional<MigPlace> best;
  for (std::uint32_t start = 0; start < 8; ++start) {
    const MigSlices slices = profile.at(start);
    if ((profile.starts >> start & 1U) == 0 || (slices & used) != 0) continue;
    const std::int32_t loss = mig_loss(geometry, used, slices);
    if (!best || loss <= best->loss) best = MigPlace{slices, loss};
  }
  return best;
}

std::string slices_text(MigSlices slices) {
  const int first = std::countr_zero(slices);
  const int last = std::bit_width(slices) - 1;
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

}  // namespace berth
