#pragma once
// MIG: how a GPU can be cut into instances that have memory and compute of their own. An instance of a profile occupies
// some neighbouring slices of the GPU's memory, from one of the places at which the profile may start on. Names and
// places are those of `nvidia-smi mig -lgip` and `-lgipp` (NVIDIA MIG user guide, "Supported MIG profiles").

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace berth {

// Slices of one GPU's memory, bit s: slice s.
using MigSlices = std::uint8_t;

struct MigProfile {
  std::string_view name;    // such as 1g.10gb
  std::uint8_t width = 0;   // slices that an instance occupies
  std::uint8_t starts = 0;  // bit s: an instance may begin at slice s

  MigSlices at(std::uint32_t start) const { return static_cast<MigSlices>(((1U << width) - 1U) << start); }
  bool operator==(const MigProfile&) const = default;
};

struct MigGeometry {
  std::string_view name;    // such as h100-80gb
  std::uint8_t slices = 0;  // of the whole GPU
  std::span<const MigProfile> profiles;

  const MigProfile* profile_named(std::string_view name) const;
  MigSlices all() const { return static_cast<MigSlices>((1U << slices) - 1U); }
  // What a placement takes of the GPU that states these slices; who has all of it states none.
  MigSlices taken_by(MigSlices stated) const { return stated == 0 ? all() : stated; }
  // What an instance of the profile counts, in thousandths of the GPU: its memory slices.
  std::int32_t milli_of(const MigProfile& profile) const { return 1000 * profile.width / slices; }
};

// Nothing where no such geometry is known.
const MigGeometry* mig_geometry(std::string_view name);
// "a30-24gb, a100-40gb, ..."
std::string known_mig_geometries();

// How many instances of the profile fit at most beside the slices that are used.
std::int32_t instances_beside(const MigProfile& profile, MigSlices used);

// What is lost for others when these slices are taken beside the used ones: of every profile the slices of all places
// at which an instance could begin before and cannot then. The place where least is lost keeps the large places, as
// FGD does whole GPUs (ATC'23, section 4): an instance of 1g on an empty H100 goes to slice 6.
std::int32_t mig_loss(const MigGeometry& geometry, MigSlices used, MigSlices taken);

// Where an instance of the profile goes beside the used slices, and what is lost there; of equal places the last.
struct MigPlace {
  MigSlices slices = 0;
  std::int32_t loss = 0;
};
std::optional<MigPlace> best_place(const MigGeometry& geometry, const MigProfile& profile, MigSlices used);

// "4-7", or "6" of a single slice.
std::string slices_text(MigSlices slices);

}  // namespace berth
