#pragma once
// The names of GPU models. The driver's marketing names differ in form from card to card; berth's are MODEL-FORM-MEMORY
// throughout, and are what pools, quotas and prices are written with.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::telemetry {

// "NVIDIA H100 80GB HBM3" -> "H100-SXM5-80GB". A name that is not in the table is kept, made fit for a label: letters,
// digits and single dashes, at most 63 characters.
std::string normalise_model(std::string_view driver_name);

struct GpuModelFacts {
  std::string_view driver_name;
  std::string_view model;
  std::int64_t memory_mib = 0;  // as the driver reports it, or nearly
  bool nvlink = false;          // all of a machine reach each other
  bool mig = false;
};

std::optional<GpuModelFacts> find_model(std::string_view model);

}  // namespace berth::telemetry
