#pragma once
// Amounts: one vector of integers, in which quotas, usage and fair share are counted.
//
//   0  gpu             milli-GPUs of any model
//   1  cpu             milli-cores
//   2  memory          MiB
//   3  gpu_equivalent  milli-GPUs times the model's weight in per mille (H100 = 1000 by convention)
//   4+ one dimension per GPU model, milli-GPUs
//
// A guarantee applies only to the dimensions that it states (QuotaAmounts::stated). A ceiling that is not stated is
// kUnlimited.

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/fields.h"
#include "model/countable.h"
#include "model/ids.h"

namespace berth {

inline constexpr std::size_t kMaxGpuModels = 12;
inline constexpr std::size_t kDimGpu = 0;
inline constexpr std::size_t kDimCpu = 1;
inline constexpr std::size_t kDimMemory = 2;
inline constexpr std::size_t kDimGpuEquivalent = 3;
inline constexpr std::size_t kDimFirstModel = 4;
inline constexpr std::size_t kDims = kDimFirstModel + kMaxGpuModels;
inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kMilli = 1000;

constexpr std::size_t dim_of(GpuModelId model) { return kDimFirstModel + model.index(); }

struct Amounts {
  std::array<std::int64_t, kDims> of{};

  std::int64_t operator[](std::size_t dim) const { return of[dim]; }
  std::int64_t& operator[](std::size_t dim) { return of[dim]; }

  Amounts& operator+=(const Amounts& other) {
    for (std::size_t d = 0; d < kDims; ++d) of[d] = checked_add(of[d], other.of[d]);
    return *this;
  }
  Amounts& operator-=(const Amounts& other) {
    for (std::size_t d = 0; d < kDims; ++d) of[d] = checked_subtract(of[d], other.of[d]);
    return *this;
  }
  auto operator<=>(const Amounts&) const = default;

  bool is_zero() const {
    return std::all_of(of.begin(), of.end(), [](std::int64_t amount) { return amount == 0; });
  }
  static Amounts unlimited() {
    Amounts all;
    all.of.fill(kUnlimited);
    return all;
  }
  static constexpr auto fields() { return field_list(field("of", &Amounts::of)); }
};

inline Amounts operator+(Amounts a, const Amounts& b) { return a += b; }
inline Amounts operator-(Amounts a, const Amounts& b) { return a -= b; }

// A guarantee: amounts in the dimensions that it states.
struct QuotaAmounts {
  Amounts amounts;
  std::uint32_t stated = 0;  // bit d: dimension d is stated

  bool states(std::size_t dim) const { return (stated >> dim & 1U) != 0; }
  void state(std::size_t dim, std::int64_t amount) {
    amounts[dim] = amount;
    stated |= 1U << dim;
  }
  bool operator==(const QuotaAmounts&) const = default;
  static constexpr auto fields() {
    return field_list(field("amounts", &QuotaAmounts::amounts), field("stated", &QuotaAmounts::stated));
  }
};

// Returns true if the guarantee states what is asked for. For a request with GPUs it must state GPUs in total, or every
// GPU model that is asked for; if no model is known yet, any model is enough. CPU and memory of such a request need not
// be stated. For a request without GPUs it must state CPU or memory that is asked for.
inline bool covers(const QuotaAmounts& guaranteed, const Amounts& asked) {
  if (guaranteed.stated == 0) return false;  // a short cut: most queues state nothing
  if (asked[kDimGpu] == 0) {
    return (asked[kDimCpu] > 0 && guaranteed.states(kDimCpu)) ||
           (asked[kDimMemory] > 0 && guaranteed.states(kDimMemory));
  }
  if (guaranteed.states(kDimGpu)) return true;
  bool any_model = false;
  for (std::size_t d = kDimFirstModel; d < kDims; ++d) {
    if (asked[d] > 0 && !guaranteed.states(d)) return false;
    any_model = any_model || guaranteed.states(d);
  }
  return any_model;
}

// Returns true if the guarantee covers what is asked for, and used + asked is inside it in every dimension that it
// states.
inline bool inside_guarantee(const Amounts& used, const Amounts& asked, const QuotaAmounts& guaranteed) {
  if (!covers(guaranteed, asked)) return false;
  for (std::size_t d = 0; d < kDims; ++d) {
    if (guaranteed.states(d) && asked[d] > 0 && used[d] + asked[d] > guaranteed.amounts[d]) return false;
  }
  return true;
}

// What one task requests from one node. gpu_milli below 1000 is a share of a single GPU; then gpus is 1.
struct TaskRequest {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int32_t gpus = 0;
  std::int32_t gpu_milli = 1000;        // per GPU
  std::vector<std::string> gpu_models;  // any of these; empty: any model
  std::string mig_profile;              // such as 1g.10gb; empty: no MIG instance
  Countables countables = {};           // of its node

  bool is_share() const { return gpus == 1 && gpu_milli < kMilli; }
  std::int64_t total_gpu_milli() const { return std::int64_t{gpus} * gpu_milli; }
  bool operator==(const TaskRequest&) const = default;
  static constexpr auto fields() {
    return field_list(field("cpu_milli", &TaskRequest::cpu_milli), field("memory_mib", &TaskRequest::memory_mib),
                      field("gpus", &TaskRequest::gpus), field("gpu_milli", &TaskRequest::gpu_milli),
                      field("gpu_models", &TaskRequest::gpu_models), field("mig_profile", &TaskRequest::mig_profile),
                      field_if_set("countables", &TaskRequest::countables));
  }
};

}  // namespace berth
