#include "daemon/price_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "control/money.h"
#include "model/month.h"

namespace berth::daemon {
namespace {

// The GPU models that were there at some time, or that a job used.
std::set<std::string> models_in(const billing::Meter& meter, Timestamp from, Timestamp to) {
  std::set<std::string> models;
  const billing::Usage usage = meter.usage(from, to);
  for (const billing::FleetRow& row : usage.fleet) {
    if (row.capacity != 0) models.insert(row.gpu_model);
  }
  for (const billing::UsageRow& row : usage.rows) {
    if (!row.account.gpu_model.empty()) models.insert(row.account.gpu_model);
  }
  return models;
}

}  // namespace

std::vector<PriceMistake> price_mistakes(const state::State& state, const billing::Meter& meter, const PriceBook& book,
                                         Timestamp now) {
  const bool used = meter.last_seq() != 0;
  std::vector<PriceMistake> mistakes =
      control::price_mistakes(state, book, now, used ? std::optional(meter.first_event()) : std::nullopt);
  if (!used) return mistakes;
  std::map<std::size_t, std::map<std::string, std::string>> missing;  // by entry and model: the first month
  for (Month month = month_at(meter.first_event()); month.begin < now; month = month_at(month.end)) {
    if (state.closed_months().contains(month.name)) continue;
    for (std::size_t p = 0; p < book.periods.size(); ++p) {
      const Timestamp from = std::max({month.begin, book.periods[p].valid_from, meter.first_event()});
      Timestamp to = std::min(month.end, now);
      if (p + 1 < book.periods.size()) to = std::min(to, book.periods[p + 1].valid_from);
      if (from >= to) continue;
      for (const std::string& model : models_in(meter, from, to)) {
        if (book.periods[p].gpu(model) == nullptr) missing[p].emplace(model, month.name);
      }
    }
  }
  for (const auto& [p, models] : missing) {
    const bool told = std::any_of(mistakes.begin(), mistakes.end(), [&, entry = p](const PriceMistake& one) {
      return one.period == entry && one.path == "gpus";
    });
    if (told) continue;
    for (const auto& [model, month] : models)
      mistakes.push_back({p, "gpus",
                          "GPUs of " + model + " were there in " + month + ", which is not closed, and these prices " +
                              "have none for it; add it under gpus"});
  }
  return mistakes;
}

}  // namespace berth::daemon
