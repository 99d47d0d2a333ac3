#pragma once
// An order of arrival without times, the load of the fragmentation experiment of FGD (Weng et al., ATC'23). A file has
// the columns seed,pod: for each seed the numbers of the pods in order of arrival. A pod may arrive many times.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/trace/read_trace.h"
#include "sim/trace/trace.h"

namespace berth::sim {

struct Arrivals {
  std::map<std::uint64_t, std::vector<std::uint32_t>> pods_by_seed;
};

// Reads an order of arrival. A bad row refuses the whole file, because no arrival may be missing.
Result<Arrivals> read_arrivals(const std::string& path, const ReadOptions& options);
Result<Arrivals> read_arrivals_text(const std::string& name, std::string_view bytes, const ReadOptions& options);

// Indexes into trace.jobs in the order of arrival. Pod 17 is the job whose id ends in the number 17 ("openb-pod-0017").
Result<std::vector<std::size_t>> arrival_order(const Trace& trace, const Arrivals& arrivals, std::uint64_t seed);

}  // namespace berth::sim
