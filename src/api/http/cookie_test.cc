#include "api/http/cookie.h"

#include <doctest/doctest.h>

namespace berth::http {

TEST_CASE("cookies: the value of a name, letter by letter") {
  CHECK_EQ(cookie_named("a=1; berth=2;c=3", "berth"), "2");
  CHECK_EQ(cookie_named("berth=x=y", "berth"), "x=y");
  for (const char* none : {"", "berth", "xberth=1", "Berth=1", "berth2=1", "; ;=;"}) {
    CAPTURE(none);
    CHECK_EQ(cookie_named(none, "berth"), "");
  }
}

TEST_CASE("cookies: a name that is given twice has no value") {
  CHECK_EQ(cookie_named("berth=1; berth=2", "berth"), "");
  CHECK_EQ(cookie_named("berth=1; berth=1", "berth"), "");
}

}  // namespace berth::http
