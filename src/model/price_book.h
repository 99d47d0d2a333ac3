#pragma once
// The price book: what an hour of a GPU, a MIG instance, a core and a GiB of memory costs, from which day on. It is one
// document, applied and stored as a whole; each version replaces the one before it. Prices are whole millionths of the
// currency ("micro units") per hour, and have at most four decimals, so that a whole percentage of a price is exact.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "model/off_peak.h"

namespace berth {

inline constexpr std::int64_t kMicro = 1'000'000;                  // micro units of one unit of the currency
inline constexpr std::int64_t kMostPriceMicro = 100'000 * kMicro;  // of one hour; a bill of any fleet fits into 64 bits
inline constexpr std::int64_t kMostAdjustmentPercent = 1000;
inline constexpr std::int64_t kMostQuantityPriceMicro = 1000 * kMicro;
inline constexpr std::size_t kMostQuantityKinds = 100;
inline constexpr std::size_t kMostOffPeak = 20;  // windows of one period

struct GpuPrice {
  std::string model;
  std::int64_t floor_micro = 0;  // an hour of one GPU that a guarantee holds, used or not
  std::int64_t burst_micro = 0;  // an hour of one GPU that is used beyond a guarantee
  std::vector<std::pair<std::string, std::int64_t>> mig_micro = {};  // burst: an hour of one instance, by profile
  bool operator==(const GpuPrice&) const = default;
  static constexpr auto fields() {
    return field_list(field("model", &GpuPrice::model), field("floor_micro", &GpuPrice::floor_micro),
                      field("burst_micro", &GpuPrice::burst_micro), field("mig_micro", &GpuPrice::mig_micro));
  }
};

// What raises or lowers the price of a job's GPUs: a percentage of it, positive for a premium, negative for a discount.
enum class AdjustmentCause { kExclusive, kRequiredTopology, kTraining, kInference, kDev, kBatch };
BERTH_ENUM_NAMES(AdjustmentCause, "exclusive", "required_topology", "training", "inference", "dev", "batch");

struct PriceAdjustment {
  AdjustmentCause cause = AdjustmentCause::kExclusive;
  std::int64_t percent = 0;
  bool operator==(const PriceAdjustment&) const = default;
  static constexpr auto fields() {
    return field_list(field("cause", &PriceAdjustment::cause), field("percent", &PriceAdjustment::percent));
  }
};

// What one unit of something costs that others measure and report: storage, egress, energy.
struct QuantityPrice {
  std::string kind;  // such as storage
  std::string unit;  // such as GiB-hours
  std::int64_t price_micro = 0;
  bool operator==(const QuantityPrice&) const = default;
  static constexpr auto fields() {
    return field_list(field("kind", &QuantityPrice::kind), field("unit", &QuantityPrice::unit),
                      field("price_micro", &QuantityPrice::price_micro));
  }
};

// The prices from one day on, until the next ones.
struct PricePeriod {
  Timestamp valid_from;  // midnight, UTC
  std::vector<GpuPrice> gpus;
  std::int64_t cpu_micro = 0;               // an hour of one core
  std::int64_t memory_micro = 0;            // an hour of one GiB
  std::int64_t lending_credit_percent = 0;  // of the burst price, to the queue whose floor was lent
  std::vector<PriceAdjustment> adjustments;
  std::vector<OffPeak> off_peak = {};          // of windows that overlap after all, the first counts
  std::vector<QuantityPrice> quantities = {};  // by kind
  bool operator==(const PricePeriod&) const = default;
  static constexpr auto fields() {
    return field_list(field("valid_from", &PricePeriod::valid_from), field("gpus", &PricePeriod::gpus),
                      field("cpu_micro", &PricePeriod::cpu_micro), field("memory_micro", &PricePeriod::memory_micro),
                      field("lending_credit_percent", &PricePeriod::lending_credit_percent),
                      field("adjustments", &PricePeriod::adjustments), field_if_set("off_peak", &PricePeriod::off_peak),
                      field_if_set("quantities", &PricePeriod::quantities));
  }
  const GpuPrice* gpu(std::string_view model) const;           // null: the model has no price
  const QuantityPrice* quantity(std::string_view kind) const;  // null: the kind has no price
};

struct PriceBook {
  std::string currency = {};              // ISO 4217, such as EUR
  std::vector<PricePeriod> periods = {};  // ascending by valid_from, no two of one day
  std::vector<TimeZone> zones = {};       // of the off-peak windows, by name, as they were when the book was read
  bool operator==(const PriceBook&) const = default;
  static constexpr auto fields() {
    return field_list(field("currency", &PriceBook::currency), field("periods", &PriceBook::periods),
                      field_if_set("zones", &PriceBook::zones));
  }
  bool empty() const { return periods.empty(); }
  // Returns the prices in force then, or null before the first ones.
  const PricePeriod* at(Timestamp time) const;
  const TimeZone* zone(std::string_view name) const;  // null: it is not known
  // Returns the window of the period in which the time lies, or null. Requires: the zones are known.
  const OffPeak* off_peak_at(const PricePeriod& period, Timestamp time) const;
};

// A rule that a price book breaks.
struct PriceMistake {
  std::size_t period = 0;  // its index; or that of none, for a rule about the whole book
  std::string path;        // within the period, such as gpus.H100.floor
  std::string message;     // what is wrong; what would be right
};
// Without zones, off-peak windows of different zones are not compared.
enum class Zones { kKnown, kNotLookedUp };
std::vector<PriceMistake> mistakes_in(const PriceBook& book, Zones zones = Zones::kKnown);
// The error is the first of mistakes_in().
Result<void> validate(const PriceBook& book);

// Returns "2.5000" for 2'500'000: four decimals, or six where the amount needs them.
std::string money_text(std::int64_t micro);

}  // namespace berth
