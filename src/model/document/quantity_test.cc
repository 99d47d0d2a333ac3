#include "model/document/quantity.h"

#include <doctest/doctest.h>

#include <vector>

#include "base/random.h"

namespace berth::document {
namespace {

template <class T>
std::string said(const Result<T>& result) {
  return result ? std::to_string(*result) : result.error().message;
}

}  // namespace

TEST_CASE("an amount is a decimal with at most three decimals") {
  CHECK_EQ(said(parse_milli("8")), "8000");
  CHECK_EQ(said(parse_milli("0.5")), "500");
  CHECK_EQ(said(parse_milli("0.125")), "125");
  CHECK_EQ(said(parse_milli("9223372036854775.807")), "9223372036854775807");
  CHECK_EQ(said(parse_milli("-1")), "-1 is negative; give 0 or more");
  CHECK_EQ(said(parse_milli("-.5")), "-.5 is negative; give 0 or more");
  CHECK_EQ(said(parse_milli("0.0005")), "0.0005 is finer than a thousandth; give at most three decimals");
  CHECK_EQ(said(parse_milli("9223372036854775.808")), "9223372036854775.808 is too large");
  CHECK_EQ(said(parse_milli("18446744073709551616")), "18446744073709551616 is too large");
  for (const char* text : {"", "x", "010", "00", "007.5", "1e3", "1.", ".5", "1,5", "0x10", "1_000", " 1", "1 ", "+1",
                           "nan", ".inf", "1k", "8GPU", "١"}) {
    CHECK_EQ(said(parse_milli(text)), "'" + std::string(text) + "' is not an amount; give a number such as 8 or 0.5");
  }
}

TEST_CASE("a size has a binary unit and whole MiB") {
  CHECK_EQ(said(parse_memory_mib("512MiB")), "512");
  CHECK_EQ(said(parse_memory_mib("64Gi")), "65536");
  CHECK_EQ(said(parse_memory_mib("1.5TiB")), "1572864");
  CHECK_EQ(said(parse_memory_mib("2048KiB")), "2");
  CHECK_EQ(said(parse_memory_mib("0")), "0");
  CHECK_EQ(said(parse_memory_mib("1024EiB")), "1125899906842624");
  CHECK_EQ(said(parse_memory_mib("1025EiB")), "1025EiB is too large");
  CHECK_EQ(said(parse_memory_mib("9223372036854775807EiB")), "9223372036854775807EiB is too large");
  CHECK_EQ(said(parse_memory_mib("512KiB")), "512KiB is not a whole number of MiB; round it");
  CHECK_EQ(said(parse_memory_mib("-1GiB")), "-1GiB is negative; give 0 or more");
  CHECK_EQ(said(parse_memory_mib("lots")), "'lots' is not a size; give one such as 64GiB");
  CHECK_EQ(said(parse_memory_mib("064GiB")), "'064GiB' is not a size; give one such as 64GiB");
  const std::string rule = " has no binary unit; give KiB, MiB, GiB, TiB or PiB, such as 64GiB";
  CHECK_EQ(said(parse_memory_mib("64")), "'64'" + rule);
  CHECK_EQ(said(parse_memory_mib("64GB")), "'64GB'" + rule + "; did you mean GiB?");
  CHECK_EQ(said(parse_memory_mib("1k")), "'1k'" + rule + "; did you mean KiB?");
  CHECK_EQ(said(parse_memory_mib("1e3")), "'1e3'" + rule + "; did you mean EiB?");
}

TEST_CASE("a time has units, longest first") {
  CHECK_EQ(said(parse_duration_s("90s")), "90");
  CHECK_EQ(said(parse_duration_s("10m")), "600");
  CHECK_EQ(said(parse_duration_s("3d")), "259200");
  CHECK_EQ(said(parse_duration_s("1h30m")), "5400");
  CHECK_EQ(said(parse_duration_s("1h05m")), "3900");
  CHECK_EQ(said(parse_duration_s("0")), "0");
  CHECK_EQ(said(parse_duration_s("-5m")), "-5m is negative; give a time such as 90s, 10m, 2h or 3d");
  CHECK_EQ(said(parse_duration_s("9223372036854775807d")), "9223372036854775807d is too long");
  CHECK_EQ(said(parse_duration_s("106751991167300d106751991167300h9223372036854775807s")),
           "106751991167300d106751991167300h9223372036854775807s is too long");
  for (const char* text : {"", "10", "10min", "1.5h", "30m1h", "1h1h", "h", "1 h", "1H", "500ms", "P1D"}) {
    CHECK_EQ(said(parse_duration_s(text)),
             "'" + std::string(text) + "' is not a time; give one such as 90s, 10m, 2h, 3d or 1h30m");
  }
}

TEST_CASE("an integer is decimal and in range") {
  CHECK_EQ(said(parse_integer("-2147483648", -2147483648, 2147483647)), "-2147483648");
  CHECK_EQ(said(parse_integer("2147483648", -2147483648, 2147483647)),
           "2147483648 is out of range; give -2147483648 to 2147483647");
  CHECK_EQ(said(parse_integer("9223372036854775808", 0, 5)), "9223372036854775808 is out of range; give 0 to 5");
  for (const char* text : {"", "-", "010", "0x1F", "1e3", "1.0", "1_000", "+1", "0o7", "--1"}) {
    CHECK_EQ(said(parse_integer(text, 0, 5)),
             "'" + std::string(text) + "' is not an integer; give decimal digits alone, without leading zeros");
  }
}

TEST_CASE("a signal has a name or a number, and a process can catch it") {
  CHECK_EQ(said(parse_signal("SIGUSR1")), "10");
  CHECK_EQ(said(parse_signal("TERM")), "15");
  CHECK_EQ(said(parse_signal("34")), "34");
  for (const char* text : {"SIGKILL", "9", "19", "STOP", "0", "65", "usr1"}) {
    CHECK_EQ(
        said(parse_signal(text)),
        "'" + std::string(text) + "' is not a signal that a process can catch; give one such as SIGTERM or SIGUSR1");
  }
}

TEST_CASE("what is printed reads back") {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<std::int64_t>(random.next() >> (14 + random.below(50)));
    CHECK_EQ(*parse_milli(milli_text(value)), value);
    CHECK_EQ(*parse_memory_mib(memory_text(value)), value);
    CHECK_EQ(*parse_duration_s(duration_text(value)), value);
  }
  for (std::int32_t signal = 1; signal <= 64; ++signal) {
    if (signal != 9 && signal != 19) CHECK_EQ(*parse_signal(signal_text(signal)), signal);
  }
}

}  // namespace berth::document
