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

TEST_CASE("a plain line has something visible in it, and nothing that breaks or turns it") {
  for (const char* good :
       {"a", " a ", "n3 reports ECC errors", "é", "機材の故障", "עברית", "a\u00a0b", "a\u200bb", "😀"}) {
    CAPTURE(good);
    CHECK(is_plain_line(good));
  }
  for (const char* blank : {"",       " ",      "   ",    "\u00a0", "\u00ad", "\u200b", "\u200f",
                            "\u2000", "\u200a", "\u202f", "\u205f", "\u2060", "\u2064", "\u2800",
                            "\u3000", "\u3164", "\ufeff", "\u115f", "\u1160", "\uffa0", " \u200b \u2800"}) {
    CAPTURE(blank);
    CHECK_FALSE(is_plain_line(blank));
  }
  for (const char* broken : {"a\nb", "a\tb", "a\x7f", "a\u0085b", "a\u2028b", "a\u2029", "\u202aa", "a\u202eb",
                             "a\u2066b", "a\u2069", "a\xff", "\x1b[31ma"}) {
    CAPTURE(broken);
    CHECK_FALSE(is_plain_line(broken));
  }
  CHECK_FALSE(is_plain_line(std::string("a\0b", 3)));
}

}  // namespace berth
