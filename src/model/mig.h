#pragma once
// MIG: how a GPU can be cut into instances with their own memory and compute. An instance of a profile occupies
// adjacent memory slices of the GPU, and may begin only at certain slices. Names and positions are those of `nvidia-smi
// mig -lgip` and `-lgipp` (NVIDIA MIG user guide, "Supported MIG profiles").

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace berth {

// Memory slices of one GPU; bit s: slice s.
using MigSlices = std::uint8_t;

struct MigProfile {
  std::string_view name;    // such as 1g.10gb
  std::uint8_t width = 0;   // number of slices of an instance
  std::uint8_t starts = 0;  // bit s: an instance may begin at slice s

  MigSlices at(std::uint32_t start) const { return static_cast<MigSlices>(((1U << width) - 1U) << start); }
  bool operator==(const MigProfile&) const = default;
};

struct MigGeometry {
  std::string_view name;    // such as h100-80gb
  std::uint8_t slices = 0;  // slices of the whole GPU
  std::span<const MigProfile> profiles;

  const MigProfile* profile_named(std::string_view name) const;
  MigSlices all() const { return static_cast<MigSlices>((1U << slices) - 1U); }
  // Returns the slices that a placement takes; a placement that states none takes the whole GPU.
  MigSlices taken_by(MigSlices stated) const { return stated == 0 ? all() : stated; }
  // Returns what an instance of the profile counts, in thousandths of a GPU: its part of the memory slices.
  std::int32_t milli_of(const MigProfile& profile) const { return 1000 * profile.width / slices; }
};

// Returns the geometry with this name, or null.
const MigGeometry* mig_geometry(std::string_view name);
// Returns text such as "a30-24gb, a100-40gb, ...".
std::string known_mig_geometries();

// Returns the largest number of instances of the profile that fit beside the used slices.
std::int32_t instances_beside(const MigProfile& profile, MigSlices used);

// Returns how much placement freedom is lost when `taken` slices are taken beside the used ones. It counts every start
// position, of every profile, that was free before and is blocked then, by the number of its slices. The position with
// the least loss keeps large positions free, as FGD does for whole GPUs (ATC'23, section 4): an instance of 1g on an
// empty H100 goes to slice 6.
std::int32_t mig_loss(const MigGeometry& geometry, MigSlices used, MigSlices taken);

// Returns the position for an instance of the profile beside the used slices, with the least loss; the last one of
// equal positions. Returns nothing if none fits.
struct MigPlace {
  MigSlices slices = 0;
  std::int32_t loss = 0;
};
std::optional<MigPlace> best_place(const MigGeometry& geometry, const MigProfile& profile, MigSlices used);

// Returns text such as "4-7", or "6" for a single slice.
std::string slices_text(MigSlices slices);

}  // namespace berth
