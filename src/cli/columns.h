#pragma once
// Lists in columns that the user names: -o custom=ID:id,USER:user.
//
// A path names a member of an item as -o json shows it. Its dots go into objects; of a list it takes each item's. A
// member that has dots in its own name, as a label, is found first. What is not there is an empty cell.

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/options.h"

namespace berth::cli {

// "ID:id,USER:user", or "id,user" for headings that are the paths in capitals. An Error says what would be right.
Result<std::vector<ShownColumn>> parse_columns(std::string_view text);

// What stands there: lists joined by commas, labels as "run=7,team=vision"; empty for null and what is not there.
std::string column_text(const Json& item, std::string_view path);

// One line for each item under the headings of `show.columns`, as a table of that width or as CSV.
std::string in_columns(const boost::json::array& items, const ShowOptions& show, std::size_t width);

}  // namespace berth::cli
