#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>

#include "slurm/array_spec.h"
#include "slurm/host_names.h"
#include "slurm/row_format.h"
#include "slurm/script.h"
#include "slurm/time_forms.h"

namespace berth::slurm {
namespace {

TEST_CASE("a time limit is read in each of Slurm's forms, as whole minutes") {
  CHECK(limit_minutes("90") == 90);
  CHECK(limit_minutes("0:01") == 1);
  CHECK(limit_minutes("90:30") == 91);
  CHECK(limit_minutes("1:30:00") == 90);
  CHECK(limit_minutes("2-12") == 3600);
  CHECK(limit_minutes("2-12:30") == 3630);
  CHECK(limit_minutes("2-12:30:30") == 3631);
  CHECK(limit_minutes("UNLIMITED") == kUnlimited);
  CHECK(limit_minutes("infinite") == kUnlimited);
  CHECK(limit_minutes("-1") == kUnlimited);
  CHECK(limit_minutes("0") == kUnlimited);
  for (const char* wrong : {"", "abc", "1:2:3:4", "1-", "-5", "1--2", "1.5", "1:", ":1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(limit_minutes(wrong).has_value());
  }
}

TEST_CASE("spans are written as squeue and as sacct write them") {
  CHECK(short_span(5) == "0:05");
  CHECK(short_span(5400) == "1:30:00");
  CHECK(short_span(217'800) == "2-12:30:00");
  CHECK(long_span(5) == "00:00:05");
  CHECK(long_span(217'800) == "2-12:30:00");
}

TEST_CASE("a begin is read in each of Slurm's forms") {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const Timestamp now = *from_iso8601("2026-11-29T12:00:00Z");
  const auto at = [&](std::string_view text) {
    const auto time = instant(text, now);
    return time ? local_time(*time) : std::string("none");
  };
  CHECK(at("now") == "2026-11-29T12:00:00");
  CHECK(at("now+90") == "2026-11-29T12:01:30");
  CHECK(at("now+1hour") == "2026-11-29T13:00:00");
  CHECK(at("now+2days") == "2026-12-01T12:00:00");
  CHECK(at("16:00") == "2026-11-29T16:00:00");
  CHECK(at("4pm") == "2026-11-29T16:00:00");
  CHECK(at("11:59") == "2026-11-30T11:59:00");
  CHECK(at("tomorrow") == "2026-11-30T00:00:00");
  CHECK(at("noon") == "2026-11-29T12:00:00");
  CHECK(at("2027-01-20") == "2027-01-20T00:00:00");
  CHECK(at("2027-01-20T16:00:30") == "2027-01-20T16:00:30");
  CHECK(at("01/20/27") == "2027-01-20T00:00:00");
  CHECK(at("01/20/27-08:00") == "2027-01-20T08:00:00");
  CHECK(at("012027") == "2027-01-20T00:00:00");
  CHECK(at("01.20.27") == "2027-01-20T00:00:00");
  CHECK(at("01/20") == "2027-01-20T00:00:00");  // the next one
  CHECK(at("11/29") == "2026-11-29T00:00:00");
  CHECK(at("1231-08:00") == "2026-12-31T08:00:00");
  for (const char* wrong : {"01202", "yesterday", "xx", "25:00", "now+x", "now+1eon", "2027-13-01", ""})
    CHECK(at(wrong) == "none");
}

TEST_CASE("a time of what is past is today's or the last one") {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const Timestamp now = *from_iso8601("2026-11-29T12:00:00Z");
  const auto at = [&](std::string_view text) { return local_time(*instant(text, now, Look::kBack)); };
  CHECK(at("08:00") == "2026-11-29T08:00:00");
  CHECK(at("23:59") == "2026-11-29T23:59:00");
  CHECK(at("12/31") == "2025-12-31T00:00:00");
  CHECK(at("11/29") == "2026-11-29T00:00:00");
  CHECK(at("01/20") == "2026-01-20T00:00:00");
  CHECK(at("01/20/27") == "2027-01-20T00:00:00");
}

TEST_CASE("the elements of an array are a set of numbers in order") {
  const auto spec = parse_array("9,1-5:2,3%2");
  REQUIRE(spec);
  CHECK(spec->count() == 4);
  CHECK(spec->running == 2);
  CHECK(spec->number(0) == 1);
  CHECK(spec->number(3) == 9);
  CHECK(spec->index_of(5) == 2);
  CHECK_FALSE(spec->index_of(2).has_value());
  CHECK(parse_array(spec->text())->count() == 4);
  CHECK(parse_array("0-999999")->count() == 1'000'000);
  for (const char* wrong : {"", "a", "5-2", "1-3:0", "3:2", "1,,2", "0-1000000", "1-3%x", "-1", "99999999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_array(wrong).has_value());
  }
}

TEST_CASE("a long list of elements is kept as ranges") {
  std::string text = "0";
  for (int i = 1; i < 200; ++i) text += "," + std::to_string(i);
  const auto spec = parse_array(text);
  REQUIRE(spec);
  CHECK(spec->text() == "0-199");
  CHECK(spec->count() == 200);
}

TEST_CASE("sets of elements are written as Slurm writes them") {
  CHECK(element_set({1, 3, 5, 9}) == "1,3,5,9");
  CHECK(element_set({3, 6, 9}) == "3,6,9");
  CHECK(element_set({0, 4, 8, 12, 16, 20}) == "0-20:4");
  CHECK(element_set({1, 2, 3, 5, 7, 8, 9}) == "1-3,5,7-9");
}

std::string printed(const RowFormat& format) {
  return row_line(format, [](std::size_t field) { return field == 0 ? "1234" : "running"; });
}

std::size_t two_letters(char letter) { return letter == 'i' ? 0 : letter == 'T' ? 1 : std::string::npos; }

TEST_CASE("format strings by letter keep width, side and the text around them") {
  CHECK(printed(parse_letters("%i|%.5T|%-10u|", two_letters)) == "1234|runni|%-10u|\n");
  CHECK(parse_letters("%i|%-10u", two_letters).unknown == std::vector<std::string>{"-"});
  CHECK(printed(parse_letters("%8i%.8i.", two_letters)) == "1234        1234.\n");
  CHECK(printed(parse_letters("a %i", two_letters)) == "a 1234\n");
  CHECK(printed(parse_letters("plain", two_letters)) == "plain\n");
  CHECK(printed(parse_letters("", two_letters)) == "\n");
  CHECK(printed(parse_letters("%i %.7 %T", two_letters)) == "1234 %.7 running\n");
}

TEST_CASE("format strings by name have twenty letters unless they say otherwise") {
  const auto find = [](const std::string& name) { return name == "id" ? 0 : name == "state" ? 1 : std::string::npos; };
  CHECK(printed(parse_names("id,state:5", find)) == "1234                runni\n");
  CHECK(printed(parse_names("id:.6,state: ", find)) == "  1234running \n");
  CHECK(parse_names("id ,state", find).unknown == std::vector<std::string>{"id "});
}

TEST_CASE("what a tenant typed cannot command a terminal or begin a line of its own") {
  const RowFormat format = parse_letters("%i|%.4T", two_letters);
  const auto shown = [&](const char* text) { return row_line(format, [&](std::size_t) { return std::string(text); }); };
  CHECK(shown("a\n7 root") == "a\\n7 root|a\\n7\n");
  CHECK(shown("\x1b[2J") == "\\x1b[2J|\\x1b\n");
  CHECK(shown("\u009b\u202e") == "\\x9b\\u202e|\\x9b\n");
  CHECK(shown("abc\u00e9") == "abc\u00e9| abc\n");  // not through a character
}

TEST_CASE("names of nodes are folded") {
  CHECK(host_list({"n1", "n2", "n3", "m5"}) == "n[1-3],m5");
  CHECK(host_list({"n1", "n3"}) == "n[1,3]");
  CHECK(host_list({"login"}) == "login");
  CHECK(host_list({"n01", "n02"}) == "n01,n02");
}

TEST_CASE("lists of nodes are unfolded") {
  using Names = std::vector<std::string>;
  CHECK(host_names("n1,m[3-5,9],k") == Names{"n1", "m3", "m4", "m5", "m9", "k"});
  CHECK(host_names("n[08-10]") == Names{"n08", "n09", "n10"});
  CHECK(host_names("r[1-2]n[1-2]x") == Names{"r1n1x", "r1n2x", "r2n1x", "r2n2x"});
  CHECK(host_names("") == Names{});
  CHECK(host_names("n[1-100000]")->size() == 100'000);
  for (const char* wrong : {"n[", "n]", "n[]", "n[3-1]", "n[a]", "n[1-2", "n[[1]]", "n[1-100001]", "a[1-1000]b[1-1000]",
                            "n[1-100000],m", "n[1-9999999999]"}) {
    CAPTURE(wrong);
    CHECK_FALSE(host_names(wrong).has_value());
  }
}

TEST_CASE("a script that sbatch does not take is told why") {
  CHECK(faults_of_script("") == std::vector<std::string>{"Batch script is empty!"});
  CHECK(faults_of_script(" \n") == std::vector<std::string>{"Batch script contains only whitespace!"});
  CHECK(faults_of_script("echo\n").size() == 3);
  CHECK(faults_of_script("#!/bin/sh\r\n").front() == "Batch script contains DOS line breaks (\\r\\n)");
  CHECK(faults_of_script("#!/bin/sh\n").empty());
}

TEST_CASE("options of a script end at the first command") {
  const auto words = directives_of(
      "#!/bin/sh\n#SBATCH --job-name=\"a b\"  # c\n# x\n\n#SBATCH -n 2 -c 3\n ##SBATCH -H\necho\n#SBATCH -J late\n");
  CHECK(words == std::vector<std::string>{"--job-name=a b", "-n", "2", "-c", "3"});
  CHECK(interpreter_of("#! /usr/bin/env python3 -u\nx").program == "/usr/bin/env");
  CHECK(interpreter_of("#! /usr/bin/env python3 -u\nx").argument == "python3 -u");
}

}  // namespace
}  // namespace berth::slurm
