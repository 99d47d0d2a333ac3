#include "model/document/price_document.h"

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "model/document/quantity.h"

namespace berth::document {
namespace {

constexpr std::size_t kMoneyDecimals = 4;

// Returns the amount of digits with at most so many decimals, in micro units; nothing if the text is something else or
// does not fit.
std::optional<std::int64_t> micro_of(std::string_view text, std::size_t most_decimals) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string decimals(point < text.size() ? text.substr(point + 1) : std::string_view());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (whole.empty() || whole.size() > 18 || decimals.size() > most_decimals ||
      (point < text.size() && decimals.empty()))
    return std::nullopt;
  if (!std::all_of(whole.begin(), whole.end(), is_digit) || !std::all_of(decimals.begin(), decimals.end(), is_digit))
    return std::nullopt;
  decimals.append(6 - decimals.size(), '0');
  const auto scaled = try_multiply(std::stoll(std::string(whole)), kMicro);
  return scaled ? try_add(*scaled, std::stoll(decimals)) : std::nullopt;
}

std::int64_t read_price(const Value& value) { return read_money(value, kMostPriceMicro); }

GpuPrice read_gpu(const std::string& model, const Value& body) {
  GpuPrice price{model, 0, 0, {}};
  body.map({
      {"floor", [&](const Value& v) { price.floor_micro = read_price(v); }},
      {"burst", [&](const Value& v) { price.burst_micro = read_price(v); }},
      {"mig",
       [&](const Value& v) {
         v.each_entry(
             [&](const Entry& entry, const Value& one) { price.mig_micro.emplace_back(entry.key, read_price(one)); });
       }},
  });
  for (const char* key : {"floor", "burst"}) {
    if (body.node().find(key) == nullptr)
      body.refuse("a GPU model needs a price for holding it and one for using it beyond: {floor: 2.5, burst: 3}");
  }
  std::sort(price.mig_micro.begin(), price.mig_micro.end());
  return price;
}

void read_adjustment(const Entry& entry, const Value& value, PricePeriod& period) {
  const auto cause = enum_from_name<AdjustmentCause>(entry.key);
  if (!cause) {
    std::string known;
    for (const std::string_view name : EnumNames<AdjustmentCause>::kNames)
      known += (known.empty() ? "" : ", ") + std::string(name);
    value.reading().refuse(entry.at, value.path(),
                           "'" + entry.key.substr(0, 80) + "' changes no price; known are " + known);
    return;
  }
  period.adjustments.push_back({*cause, value.integer(-100, kMostAdjustmentPercent)});
}

// Returns "20:00" as minutes after midnight. Refuses what no clock shows; only the end of a day is 24:00.
std::int64_t read_clock(const Value& value, std::int64_t most) {
  const std::string text = value.string();
  const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '9' ? text[at] - '0' : 99; };
  if (text.size() == 5 && text[2] == ':') {
    const std::int64_t hours = digit(0) * 10 + digit(1);
    const std::int64_t minutes = digit(3) * 10 + digit(4);
    if (minutes < 60 && hours * 60 + minutes <= most) return hours * 60 + minutes;
  }
  value.refuse("'" + text.substr(0, 80) + "' is no time of day; give hours and minutes from 00:00 to " +
               clock_time(most) + ", such as 20:00");
  return 0;
}

void read_days(const Value& value, OffPeak& window) {
  value.each_item([&](const Value& item) {
    const auto day = item.word<Weekday>();
    if (std::find(window.days.begin(), window.days.end(), day) != window.days.end())
      item.refuse("the day is listed twice");
    window.days.push_back(day);
  });
  if (window.days.empty()) value.refuse("no day is listed; leave days out for all of them");
  std::sort(window.days.begin(), window.days.end());
}

OffPeak read_off_peak(const Value& body) {
  OffPeak window{{}, 0, kDayMinutes, "", 0};
  body.map({
      {"days", [&](const Value& v) { read_days(v, window); }},
      {"from", [&](const Value& v) { window.from_min = read_clock(v, kDayMinutes - 1); }},
      {"to", [&](const Value& v) { window.to_min = read_clock(v, kDayMinutes); }},
      {"zone", [&](const Value& v) { window.zone = v.string(); }},
      {"discount", [&](const Value& v) { window.discount_percent = v.integer(1, 100); }},
  });
  for (const char* key : {"zone", "discount"}) {
    if (body.node().find(key) == nullptr)
      body.refuse(std::string(key) + " is missing; write {from: 20:00, to: 08:00, zone: Europe/Paris, discount: 30}");
  }
  return window;
}

QuantityPrice read_quantity(const std::string& kind, const Value& body) {
  QuantityPrice price{kind, "", 0};
  body.map({
      {"unit", [&](const Value& v) { price.unit = v.string(); }},
      {"price", [&](const Value& v) { price.price_micro = read_money(v, kMostQuantityPriceMicro, 6); }},
  });
  for (const char* key : {"unit", "price"}) {
    if (body.node().find(key) == nullptr)
      body.refuse(std::string(key) + " is missing; write {unit: GiB-hours, price: 0.0001}");
  }
  return price;
}

Timestamp read_day(const Value& value) {
  const std::string text = value.string();
  const auto day = from_iso8601(text);
  if (!day || day->is_never()) value.refuse("'" + text.substr(0, 80) + "' is not a day; give one such as 2026-11-21");
  return day.value_or(Timestamp{});
}

PricePeriod read_period(const Value& body) {
  PricePeriod period;
  body.map({
      {"valid_from", [&](const Value& v) { period.valid_from = read_day(v); }},
      {"gpus",
       [&](const Value& v) {
         v.each_entry([&](const Entry& entry, const Value& one) { period.gpus.push_back(read_gpu(entry.key, one)); });
       }},
      {"cpu_core", [&](const Value& v) { period.cpu_micro = read_price(v); }},
      {"memory_gib", [&](const Value& v) { period.memory_micro = read_price(v); }},
      {"lending_credit", [&](const Value& v) { period.lending_credit_percent = v.integer(0, 100); }},
      {"adjustments",
       [&](const Value& v) {
         v.each_entry([&](const Entry& entry, const Value& one) { read_adjustment(entry, one, period); });
       }},
      {"off_peak",
       [&](const Value& v) { v.each_item([&](const Value& one) { period.off_peak.push_back(read_off_peak(one)); }); }},
      {"quantities",
       [&](const Value& v) {
         v.each_entry(
             [&](const Entry& entry, const Value& one) { period.quantities.push_back(read_quantity(entry.key, one)); });
       }},
  });
  if (body.node().find("valid_from") == nullptr)
    body.refuse("prices need the day from which they count, such as valid_from: 2026-11-01");
  std::sort(period.gpus.begin(), period.gpus.end(), [](const auto& a, const auto& b) { return a.model < b.model; });
  std::sort(period.adjustments.begin(), period.adjustments.end(),
            [](const auto& a, const auto& b) { return a.cause < b.cause; });
  std::sort(period.quantities.begin(), period.quantities.end(),
            [](const auto& a, const auto& b) { return a.kind < b.kind; });
  return period;
}

// Returns what `step` names, such as floor or off_peak[1]; null if there is none.
const Node* item_of(const Node& node, std::string_view step) {
  const std::size_t bracket = step.find('[');
  const Node* found = node.find(step.substr(0, bracket));
  if (found == nullptr || bracket == std::string_view::npos) return found;
  const auto index = std::stoul(std::string(step.substr(bracket + 1)));
  return index < found->items.size() ? &found->items[index] : nullptr;
}

const Node* node_at(const Node* node, std::string_view path) {
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    // A MIG profile has a dot in its name, so the whole rest is tried first.
    if (const Node* whole = node->find(path)) return whole;
    node = item_of(*node, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

// Tells a rule that the book breaks at the place of what breaks it, or of the nearest thing around it.
void place_mistake(const PriceMistake& mistake, const Node& document, Reading& reading) {
  const Node* prices = document.find("prices");
  const bool of_period = prices != nullptr && mistake.period < prices->items.size();
  const Node& around = of_period ? prices->items[mistake.period] : document;
  const Node* node = node_at(&around, mistake.path);
  const std::string path = (of_period ? "prices[" + std::to_string(mistake.period) + "]." : "") + mistake.path;
  reading.refuse(node == nullptr ? around.at : node->at, path, mistake.message);
}

Node off_peak_node(const OffPeak& window) {
  Node one = map_node();
  Node days = list_node();
  for (const Weekday day : window.days) days.items.push_back(string_node(std::string(name_of(day))));
  if (!window.days.empty()) one.set("days", std::move(days));
  one.set("from", string_node(clock_time(window.from_min)));
  one.set("to", string_node(clock_time(window.to_min)));
  one.set("zone", string_node(window.zone));
  one.set("discount", integer_node(window.discount_percent));
  return one;
}

Node period_node(const PricePeriod& period) {
  Node body = map_node();
  body.set("valid_from", plain_node(to_iso8601(period.valid_from).substr(0, 10)));
  Node gpus = map_node();
  for (const GpuPrice& gpu : period.gpus) {
    Node one = map_node();
    one.set("floor", plain_node(money_text(gpu.floor_micro)));
    one.set("burst", plain_node(money_text(gpu.burst_micro)));
    Node mig = map_node();
    for (const auto& [profile, micro] : gpu.mig_micro) mig.set(profile, plain_node(money_text(micro)));
    if (!gpu.mig_micro.empty()) one.set("mig", std::move(mig));
    gpus.set(gpu.model, std::move(one));
  }
  body.set("gpus", std::move(gpus));
  if (period.cpu_micro != 0) body.set("cpu_core", plain_node(money_text(period.cpu_micro)));
  if (period.memory_micro != 0) body.set("memory_gib", plain_node(money_text(period.memory_micro)));
  if (period.lending_credit_percent != 0) body.set("lending_credit", integer_node(period.lending_credit_percent));
  Node adjustments = map_node();
  for (const PriceAdjustment& one : period.adjustments) adjustments.set(name_of(one.cause), integer_node(one.percent));
  if (!period.adjustments.empty()) body.set("adjustments", std::move(adjustments));
  Node off_peak = list_node();
  for (const OffPeak& window : period.off_peak) off_peak.items.push_back(off_peak_node(window));
  if (!period.off_peak.empty()) body.set("off_peak", std::move(off_peak));
  Node quantities = map_node();
  for (const QuantityPrice& price : period.quantities) {
    Node one = map_node();
    one.set("unit", string_node(price.unit));
    one.set("price", plain_node(money_text(price.price_micro)));
    quantities.set(price.kind, std::move(one));
  }
  if (!period.quantities.empty()) body.set("quantities", std::move(quantities));
  return body;
}

using PriceLines = std::map<std::string, std::string>;

void flatten_prices(const Node& node, const std::string& path, PriceLines& lines) {
  if (node.kind == NodeKind::kScalar) lines[path] = node.text;
  for (const Entry& entry : node.entries) flatten_prices(entry.value, path + "." + entry.key, lines);
  for (std::size_t i = 0; i < node.items.size(); ++i)
    flatten_prices(node.items[i], path + "[" + std::to_string(i) + "]", lines);
}

PriceLines price_lines(const PriceBook& book) {
  PriceLines lines;
  if (!book.currency.empty()) lines["currency"] = book.currency;
  for (const PricePeriod& period : book.periods)
    flatten_prices(period_node(period), to_iso8601(period.valid_from).substr(0, 10), lines);
  return lines;
}

// Adds the zones of the windows to the book.
void look_up_zones(PriceBook& book, const ZoneSource& zones) {
  for (const PricePeriod& period : book.periods) {
    for (const OffPeak& window : period.off_peak) {
      if (book.zone(window.zone) != nullptr) continue;
      if (auto zone = zones(window.zone)) book.zones.push_back(std::move(*zone));
    }
  }
  std::sort(book.zones.begin(), book.zones.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

// What the clocks of a zone do differently in the later book.
std::vector<std::string> zone_changes(const PriceBook& from, const PriceBook& to) {
  std::vector<std::string> changes;
  for (const TimeZone& before : from.zones) {
    const TimeZone* after = to.zone(before.name);
    if (after == nullptr || *after == before) continue;
    const auto [one, other] =
        std::mismatch(before.changes.begin(), before.changes.end(), after->changes.begin(), after->changes.end());
    Timestamp first = Timestamp::never();
    if (one != before.changes.end()) first = std::min(first, one->from);
    if (other != after->changes.end()) first = std::min(first, other->from);
    changes.push_back("~ zones." + before.name + ": the clocks change otherwise from " + to_iso8601(first) + " on");
  }
  return changes;
}

}  // namespace

std::int64_t read_money(const Value& value, std::int64_t most, std::size_t most_decimals) {
  const std::string text = value.string();
  const auto micro = micro_of(text, most_decimals);
  const std::string range = "between 0 and " + std::to_string(most / kMicro);
  if (!micro && text.starts_with('-'))
    value.refuse("'" + text.substr(0, 80) + "' is negative; give an amount " + range);
  else if (!micro || *micro > most)
    value.refuse("'" + text.substr(0, 80) + "' is no amount of money " + range + " with at most " +
                 (most_decimals == kMoneyDecimals ? "four" : "six") + " decimals; write it as 2.5");
  return micro && *micro <= most ? *micro : 0;
}

Checked<PriceBook> check_prices(const Node& document, const ZoneSource& zones) {
  PriceBook book;
  Reading reading;
  const Value root(reading, document, "");
  root.map({
      {"currency", [&](const Value& v) { book.currency = v.string(); }},
      {"prices",
       [&](const Value& v) { v.each_item([&](const Value& one) { book.periods.push_back(read_period(one)); }); }},
  });
  if (reading.mistakes().empty()) {
    if (zones) look_up_zones(book, zones);
    for (const PriceMistake& mistake : mistakes_in(book, zones ? Zones::kKnown : Zones::kNotLookedUp))
      place_mistake(mistake, document, reading);
  }
  if (!reading.mistakes().empty()) return {std::nullopt, reading.take_mistakes()};
  return {std::move(book)};
}

Result<PriceBook> read_prices(std::string_view text, std::string_view file, const ZoneSource& zones) {
  const auto tree = parse(text, file);
  if (!tree) return tree.error();
  return result_of(file, check_prices(*tree, zones));
}

Error price_error(std::string_view text, std::string_view file, const std::vector<PriceMistake>& mistakes) {
  const auto tree = parse(text, file);
  if (!tree) return tree.error();
  Reading reading;
  for (const PriceMistake& mistake : mistakes) place_mistake(mistake, *tree, reading);
  return result_of(file, Checked<PriceBook>{std::nullopt, reading.take_mistakes()}).error();
}

Node price_node(const PriceBook& book) {
  Node document = map_node();
  document.set("currency", string_node(book.currency));
  Node prices = list_node();
  for (const PricePeriod& period : book.periods) prices.items.push_back(period_node(period));
  document.set("prices", std::move(prices));
  return document;
}

std::string prices_to_yaml(const PriceBook& book) { return to_yaml(price_node(book)); }

std::vector<std::string> diff_prices(const PriceBook& from, const PriceBook& to) {
  const PriceLines before = price_lines(from);
  PriceLines after = price_lines(to);
  std::vector<std::string> changes;
  for (const auto& [path, text] : before) {
    const auto now = after.find(path);
    if (now == after.end()) {
      changes.push_back("- " + path + ": " + text);
    } else {
      if (now->second != text) changes.push_back("~ " + path + ": " + text + " -> " + now->second);
      after.erase(now);
    }
  }
  for (const auto& [path, text] : after) changes.push_back("+ " + path + ": " + text);
  for (std::string& change : zone_changes(from, to)) changes.push_back(std::move(change));
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.substr(2) < b.substr(2); });
  return changes;
}

}  // namespace berth::document
