#pragma once

#include <string>
#include <string_view>

namespace berth {

// Returns the text as HTML shows it, within elements and attributes. Control characters become spaces.
std::string escaped_html(std::string_view text);

}  // namespace berth
