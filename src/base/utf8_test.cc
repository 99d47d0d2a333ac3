#include "base/utf8.h"

#include <doctest/doctest.h>

#include <string>

namespace berth {

TEST_CASE("UTF-8 has no overlong forms, no surrogates, and ends at U+10FFFF") {
  for (const char* good : {"", "a", "é", "€", "😀", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    CHECK(is_utf8(good));
  }
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xed\xbf\xbf", "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3",
                          "\xe2\x82", "\xf0\x9f\x98", "\xc3\x28"}) {
    CHECK_FALSE(is_utf8(bad));
    CHECK_EQ(first_not_utf8(std::string("ok") + bad), 2);
  }
}

}  // namespace berth
