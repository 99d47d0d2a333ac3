#include "model/price_book.h"

#include <algorithm>
#include <array>
#include <set>

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
  explicit BookCheck(const PriceBook& book) : book_(book) {}

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
      if (!well_formed_name(gpu.model)) tell(i, "gpus", "'" + gpu.model.substr(0, 80) + "': " + std::string(kNameRule));
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
  }

  void check_price(std::size_t i, const std::string& path, std::int64_t micro) {
    if (micro < 0 || micro > kMostPriceMicro || micro % kFinest != 0)
      tell(i, path,
           "a price is between 0 and " + std::to_string(kMostPriceMicro / kMicro) +
               " an hour, with at most four decimals");
  }

  const PriceBook& book_;
  std::vector<PriceMistake> mistakes_;
};

}  // namespace

const GpuPrice* PricePeriod::gpu(std::string_view model) const {
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const GpuPrice& one) { return one.model == model; });
  return found == gpus.end() ? nullptr : &*found;
}

const PricePeriod* PriceBook::at(Timestamp time) const {
  const auto after =
      std::find_if(periods.begin(), periods.end(), [&](const PricePeriod& one) { return one.valid_from > time; });
  return after == periods.begin() ? nullptr : &*std::prev(after);
}

std::vector<PriceMistake> mistakes_in(const PriceBook& book) { return BookCheck(book).run(); }

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
