#include "model/document/price_document.h"

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "model/document/quantity.h"

namespace berth::document {
namespace {

constexpr std::size_t kMoneyDecimals = 4;

// Returns the amount of digits with at most four decimals, in micro units; nothing if the text is something else or
// does not fit.
std::optional<std::int64_t> micro_of(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string decimals(point < text.size() ? text.substr(point + 1) : std::string_view());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (whole.empty() || whole.size() > 18 || decimals.size() > kMoneyDecimals ||
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

PricePeriod read_period(const Value& body) {
  PricePeriod period;
  body.map({
      {"valid_from", [&](const Value& v) { period.valid_from = v.time().value_or(Timestamp{}); }},
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
  });
  if (body.node().find("valid_from") == nullptr)
    body.refuse("prices need the day from which they count, such as valid_from: 2026-11-01");
  std::sort(period.gpus.begin(), period.gpus.end(), [](const auto& a, const auto& b) { return a.model < b.model; });
  std::sort(period.adjustments.begin(), period.adjustments.end(),
            [](const auto& a, const auto& b) { return a.cause < b.cause; });
  return period;
}

const Node* node_at(const Node* node, std::string_view path) {
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    // A MIG profile has a dot in its name, so the whole rest is tried first.
    if (const Node* whole = node->find(path)) return whole;
    node = node->find(path.substr(0, dot));
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
  return body;
}

using PriceLines = std::map<std::string, std::string>;

void flatten_prices(const Node& node, const std::string& path, PriceLines& lines) {
  if (node.kind == NodeKind::kScalar) lines[path] = node.text;
  for (const Entry& entry : node.entries) flatten_prices(entry.value, path + "." + entry.key, lines);
}

PriceLines price_lines(const PriceBook& book) {
  PriceLines lines;
  if (!book.currency.empty()) lines["currency"] = book.currency;
  for (const PricePeriod& period : book.periods)
    flatten_prices(period_node(period), to_iso8601(period.valid_from).substr(0, 10), lines);
  return lines;
}

}  // namespace

std::int64_t read_money(const Value& value, std::int64_t most) {
  const std::string text = value.string();
  const auto micro = micro_of(text);
  const std::string range = "between 0 and " + std::to_string(most / kMicro);
  if (!micro && text.starts_with('-'))
    value.refuse("'" + text.substr(0, 80) + "' is negative; give an amount " + range);
  else if (!micro || *micro > most)
    value.refuse("'" + text.substr(0, 80) + "' is no amount of money " + range +
                 " with at most four decimals; write it as 2.5");
  return micro && *micro <= most ? *micro : 0;
}

Checked<PriceBook> check_prices(const Node& document) {
  PriceBook book;
  Reading reading;
  const Value root(reading, document, "");
  root.map({
      {"currency", [&](const Value& v) { book.currency = v.string(); }},
      {"prices",
       [&](const Value& v) { v.each_item([&](const Value& one) { book.periods.push_back(read_period(one)); }); }},
  });
  if (reading.mistakes().empty()) {
    for (const PriceMistake& mistake : mistakes_in(book)) place_mistake(mistake, document, reading);
  }
  if (!reading.mistakes().empty()) return {std::nullopt, reading.take_mistakes()};
  return {std::move(book)};
}

Result<PriceBook> read_prices(std::string_view text, std::string_view file) {
  const auto tree = parse(text, file);
  if (!tree) return tree.error();
  return result_of(file, check_prices(*tree));
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
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.substr(2) < b.substr(2); });
  return changes;
}

}  // namespace berth::document
