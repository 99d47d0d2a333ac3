#pragma once
// The price book as a file that lives in git; docs/billing.md has the syntax. Money is written with at most four
// decimals, and is read exactly.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/document/document.h"
#include "model/document/reading.h"
#include "model/price_book.h"

namespace berth::document {

inline constexpr std::int64_t kMostBudgetMicro = 1'000'000'000'000 * kMicro;

// Reads "2.5" as 2'500'000 micro units. Refuses a sign, more decimals (4 or 6) and more than `most`.
std::int64_t read_money(const Value& value, std::int64_t most, std::size_t most_decimals = 4);

// Returns the price book in `text`, which keeps all rules of mistakes_in(). An error has a line for each mistake,
// FILE:LINE:COLUMN: PATH: what is wrong; what would be right. `zones` knows the zones of off-peak windows; if it is
// null they are not looked up, and the book is good for no bill.
Result<PriceBook> read_prices(std::string_view text, std::string_view file, const ZoneSource& zones);
Checked<PriceBook> check_prices(const Node& document, const ZoneSource& zones);

// Returns the error that tells these mistakes of the book that `text` is, each with its place as read_prices() does.
// Requires: read_prices() accepts the text.
Error price_error(std::string_view text, std::string_view file, const std::vector<PriceMistake>& mistakes);

// Returns the document that reads back as `book`.
Node price_node(const PriceBook& book);
std::string prices_to_yaml(const PriceBook& book);

// Returns what applying `to` over `from` would change, one line for each change, sorted by path:
//   ~ 2026-11-01.gpus.H100.burst: 3.0000 -> 3.2000
std::vector<std::string> diff_prices(const PriceBook& from, const PriceBook& to);

}  // namespace berth::document
