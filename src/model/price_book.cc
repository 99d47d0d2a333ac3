#include "model/price_book.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "model/gpu_model.h"
#include "model/mig.h"
#include "model/name.h"

namespace berth {
namespace {

constexpr std::size_t kMostPeriods = 1000;
constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kFinest = 100;  // a price has at most four decimals

// ISO 4217, the currencies in use.
constexpr std::string_view kCurrencies =
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY "
    "COP "
    "CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS "
    "INR "
    "IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP "
    "MRU "
    "MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR "
    "SDG "
    "SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND "
    "VUV "
    "WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG";

bool is_currency(std::string_view code) {
  return code.size() == 3 && code.find(' ') == std::string_view::npos &&
         kCurrencies.find(code) != std::string_view::npos;
}

std::string day_text(Timestamp time) { return to_iso8601(time).substr(0, 10); }

class BookCheck {
 public:
  BookCheck(const PriceBook& book, Zones zones) : book_(book), zones_(zones) {}

  std::vector<PriceMistake> run() {
    if (!is_currency(book_.currency))
      tell(kNoPeriod, "currency",
           "'" + book_.currency.substr(0, 80) + "' is no currency in use; give its ISO 4217 code, such as EUR");
    if (book_.periods.empty() || book_.periods.size() > kMostPeriods)
      tell(kNoPeriod, "prices", "a price book needs 1 to " + std::to_string(kMostPeriods) + " entries under prices");
    for (std::size_t i = 0; i < book_.periods.size(); ++i) check_period(i);
    return std::move(mistakes_);
  }

 private:
  static constexpr std::size_t kNoPeriod = ~std::size_t{0};

  void tell(std::size_t period, std::string path, std::string message) {
    mistakes_.push_back({period, std::move(path), std::move(message)});
  }

  void check_period(std::size_t i) {
    const PricePeriod& period = book_.periods[i];
    if (period.valid_from.ms % kDayMs != 0)
      tell(i, "valid_from", "prices begin with a day, at midnight UTC; give one such as 2026-11-01");
    if (i > 0 && period.valid_from == book_.periods[i - 1].valid_from)
      tell(i, "valid_from",
           "two entries begin on " + day_text(period.valid_from) + "; each replaces the one before it");
    if (i > 0 && period.valid_from < book_.periods[i - 1].valid_from)
      tell(i, "valid_from",
           day_text(period.valid_from) + " lies before " + day_text(book_.periods[i - 1].valid_from) +
               " of the entry above; list them in the order of their days");
    if (period.gpus.empty()) tell(i, "gpus", "no GPU model has a price; give one such as H100: {floor: 2.5, burst: 3}");
    std::set<std::string> models;
    for (const GpuPrice& gpu : period.gpus) {
      if (!well_formed_gpu_model(gpu.model))
        tell(i, "gpus", "'" + gpu.model.substr(0, 80) + "': " + std::string(kNameRule));
      if (!models.insert(gpu.model).second) tell(i, "gpus." + gpu.model, "has two prices; keep one");
      check_price(i, "gpus." + gpu.model + ".floor", gpu.floor_micro);
      check_price(i, "gpus." + gpu.model + ".burst", gpu.burst_micro);
      for (const auto& [profile, micro] : gpu.mig_micro) check_price(i, "gpus." + gpu.model + ".mig." + profile, micro);
    }
    check_price(i, "cpu_core", period.cpu_micro);
    check_price(i, "memory_gib", period.memory_micro);
    if (period.lending_credit_percent < 0 || period.lending_credit_percent > 100)
      tell(i, "lending_credit", "the credit must be between 0 and 100 percent of the burst price");
    for (const PriceAdjustment& one : period.adjustments) {
      if (one.percent < -100 || one.percent > kMostAdjustmentPercent || one.percent == 0)
        tell(i, "adjustments." + std::string(name_of(one.cause)),
             "must be between -100 (a discount) and " + std::to_string(kMostAdjustmentPercent) +
                 " percent (a premium), and not 0");
    }
    check_off_peak(i);
    check_discounts(i);
    check_quantities(i);
  }

  void check_quantities(std::size_t i) {
    const std::vector<QuantityPrice>& quantities = book_.periods[i].quantities;
    if (quantities.size() > kMostQuantityKinds)
      tell(i, "quantities", "has more than " + std::to_string(kMostQuantityKinds) + " kinds");
    std::set<std::string> kinds;
    for (const QuantityPrice& one : quantities) {
      const std::string path = "quantities." + one.kind;
      if (!well_formed_name(one.kind))
        tell(i, "quantities", "'" + one.kind.substr(0, 80) + "': " + std::string(kNameRule));
      if (!kinds.insert(one.kind).second) tell(i, path, "has two prices; keep one");
      const bool plain = std::all_of(one.unit.begin(), one.unit.end(), [](char c) { return c > ' ' && c <= '~'; });
      if (one.unit.empty() || one.unit.size() > 40 || !plain)
        tell(i, path + ".unit", "a unit is 1 to 40 visible ASCII characters, such as GiB-hours");
      if (one.price_micro < 0 || one.price_micro > kMostQuantityPriceMicro)
        tell(i, path + ".price",
             "the price of one unit is between 0 and " + std::to_string(kMostQuantityPriceMicro / kMicro) +
                 ", with at most six decimals");
    }
  }

  void check_off_peak(std::size_t i) {
    const std::vector<OffPeak>& windows = book_.periods[i].off_peak;
    if (windows.size() > kMostOffPeak)
      tell(i, "off_peak", "has more than " + std::to_string(kMostOffPeak) + " windows; join those of the same times");
    const std::size_t before = mistakes_.size();
    for (std::size_t w = 0; w < windows.size(); ++w) check_window(i, path_of(w), windows[w]);
    if (mistakes_.size() != before) return;
    for (std::size_t w = 1; w < windows.size(); ++w) {
      for (std::size_t earlier = 0; earlier < w; ++earlier) check_overlap(i, earlier, w);
    }
  }

  static std::string path_of(std::size_t window) { return "off_peak[" + std::to_string(window) + "]"; }

  void check_window(std::size_t i, const std::string& path, const OffPeak& window) {
    if (window.from_min < 0 || window.from_min >= kDayMinutes || window.to_min < 0 || window.to_min > kDayMinutes)
      tell(i, path, "begins between 00:00 and 23:59, and ends by 24:00");
    else if (window.from_min == window.to_min)
      tell(i, path, "begins and ends at " + clock_time(window.to_min) + "; for a whole day leave out from and to");
    if (window.discount_percent < 1 || window.discount_percent > 100)
      tell(i, path + ".discount", "a discount is 1 to 100 percent of the price of a job's GPUs");
    const TimeZone* zone = book_.zone(window.zone);
    if (zones_ == Zones::kKnown && (zone == nullptr || zone->changes.empty()))
      tell(i, path + ".zone",
           "'" + window.zone.substr(0, 80) + "' is no time zone that this server knows; give one such as Europe/Paris");
  }

  // The clocks of two years show every way in which the windows lie to each other.
  void check_overlap(std::size_t i, std::size_t earlier, std::size_t later) {
    const OffPeak& one = book_.periods[i].off_peak[earlier];
    const OffPeak& other = book_.periods[i].off_peak[later];
    static const TimeZone kSameClock{"", {{Timestamp{0}, 0}}};
    if (zones_ == Zones::kNotLookedUp && one.zone != other.zone) return;
    const TimeZone& zone = zones_ == Zones::kKnown ? *book_.zone(one.zone) : kSameClock;
    const TimeZone& other_zone = zones_ == Zones::kKnown ? *book_.zone(other.zone) : kSameClock;
    const Timestamp from = book_.periods[i].valid_from;
    Timestamp to = from + 2 * 366 * kDayMs;
    if (i + 1 < book_.periods.size()) to = std::min(to, std::max(from, book_.periods[i + 1].valid_from));
    const std::vector<TimeSpan> spans = spans_of(other, other_zone, from, to);
    auto second = spans.begin();
    for (const TimeSpan& first : spans_of(one, zone, from, to)) {
      while (second != spans.end() && second->end <= first.begin) ++second;
      if (second == spans.end() || second->begin >= first.end) continue;
      tell(i, path_of(later),
           "overlaps " + path_of(earlier) + " at " + to_iso8601(std::max(first.begin, second->begin)) +
               "; windows may touch, but an hour has one discount");
      return;
    }
  }

  // A job has one class, and may be exclusive and have a required topology, at any time.
  void check_discounts(std::size_t i) {
    const PricePeriod& period = book_.periods[i];
    std::int64_t of_class = 0;
    std::int64_t all = 0;
    for (const PriceAdjustment& one : period.adjustments) {
      const std::int64_t discount = std::max<std::int64_t>(-one.percent, 0);
      if (one.cause == AdjustmentCause::kExclusive || one.cause == AdjustmentCause::kRequiredTopology)
        all += discount;
      else
        of_class = std::max(of_class, discount);
    }
    std::int64_t off_peak = 0;
    for (const OffPeak& window : period.off_peak) off_peak = std::max(off_peak, window.discount_percent);
    if (off_peak > 0 && all + of_class + off_peak > 100)
      tell(i, "off_peak",
           "the discounts of one job can come to " + std::to_string(all + of_class + off_peak) +
               " percent with those under adjustments; together they may be at most 100");
  }

  void check_price(std::size_t i, const std::string& path, std::int64_t micro) {
    if (micro < 0 || micro > kMostPriceMicro || micro % kFinest != 0)
      tell(i, path,
           "a price is between 0 and " + std::to_string(kMostPriceMicro / kMicro) +
               " an hour, with at most four decimals");
  }

  const PriceBook& book_;
  Zones zones_;
  std::vector<PriceMistake> mistakes_;
};

}  // namespace

const GpuPrice* PricePeriod::gpu(std::string_view model) const {
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const GpuPrice& one) { return one.model == model; });
  return found == gpus.end() ? nullptr : &*found;
}

const QuantityPrice* PricePeriod::quantity(std::string_view kind) const {
  const auto found =
      std::find_if(quantities.begin(), quantities.end(), [&](const QuantityPrice& one) { return one.kind == kind; });
  return found == quantities.end() ? nullptr : &*found;
}

const PricePeriod* PriceBook::at(Timestamp time) const {
  const auto after =
      std::find_if(periods.begin(), periods.end(), [&](const PricePeriod& one) { return one.valid_from > time; });
  return after == periods.begin() ? nullptr : &*std::prev(after);
}

const TimeZone* PriceBook::zone(std::string_view name) const {
  const auto found = std::find_if(zones.begin(), zones.end(), [&](const TimeZone& one) { return one.name == name; });
  return found == zones.end() ? nullptr : &*found;
}

const OffPeak* PriceBook::off_peak_at(const PricePeriod& period, Timestamp time) const {
  const auto found = std::find_if(period.off_peak.begin(), period.off_peak.end(), [&](const OffPeak& window) {
    const TimeZone* const clock = zone(window.zone);
    BERTH_CHECK(clock != nullptr);
    return lies_in(window, *clock, time);
  });
  return found == period.off_peak.end() ? nullptr : &*found;
}

std::vector<PriceMistake> mistakes_in(const PriceBook& book, Zones zones) { return BookCheck(book, zones).run(); }

Result<void> validate(const PriceBook& book) {
  const std::vector<PriceMistake> mistakes = mistakes_in(book);
  if (mistakes.empty()) return {};
  return invalid(mistakes.front().path + ": " + mistakes.front().message);
}

std::string money_text(std::int64_t micro) {
  const bool negative = micro < 0;
  const auto all = negative ? ~static_cast<std::uint64_t>(micro) + 1 : static_cast<std::uint64_t>(micro);
  std::string decimals = std::to_string(all % static_cast<std::uint64_t>(kMicro));
  decimals.insert(0, 6 - decimals.size(), '0');
  if (decimals.ends_with("00")) decimals.resize(4);
  return (negative ? "-" : "") + std::to_string(all / static_cast<std::uint64_t>(kMicro)) + "." + decimals;
}

}  // namespace berth
