#include "kube/quantity.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace berth::kube {

TEST_CASE("quantities are read as Kubernetes writes them, and rounded up") {
  const std::vector<std::pair<std::string, std::int64_t>> milli = {
      {"0", 0},  {"1", 1000},       {"500m", 500},      {"1.5", 1500},   {"0.1", 100}, {"+2", 2000}, {"100u", 1},
      {"1n", 1}, {"2k", 2'000'000}, {"1e3", 1'000'000}, {"15e-1", 1500}, {".5", 500},  {"2.", 2000}};
  for (const auto& [text, value] : milli) {
    INFO(text);
    const auto read = milli_of(text);
    REQUIRE(read);
    CHECK_EQ(*read, value);
  }
  const std::vector<std::pair<std::string, std::int64_t>> mib = {
      {"1Mi", 1},  {"1Gi", 1024},    {"1.5Gi", 1536},    {"1", 1},       {"1048576", 1}, {"1048577", 2},
      {"1G", 954}, {"1Ti", 1 << 20}, {"128974848", 123}, {"129e6", 124}, {"1024Ki", 1}};
  for (const auto& [text, value] : mib) {
    INFO(text);
    const auto read = mib_of(text);
    REQUIRE(read);
    CHECK_EQ(*read, value);
  }
}

TEST_CASE("quantities are the same if their values are, however they are written and however large they are") {
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {"1", "1000m"}, {"1Gi", "1024Mi"}, {"0", "0Mi"}, {"2Ti", "2048Gi"}, {"1e3", "1k"}, {"0.5", "500m"}})
    CHECK_MESSAGE(is_same_quantity(a, b), (a + " " + b));
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {"1", "1001m"}, {"1Gi", "1G"}, {"1Gi", "1073741823"}, {"", ""}, {"x", "x"}, {"-1", "-1"}, {"1", ""}})
    CHECK_FALSE_MESSAGE(is_same_quantity(a, b), (a + " " + b));
}

TEST_CASE("what is no quantity, negative or absurd is refused, and the error shows it") {
  for (const std::string text :
       {"", "-1", "abc", "1Q", "1mm", "m", ".", "1e", "1e999", "9999999999999999999999999999999999Ei", "99999999E",
        "1 ", " 1", "0x10", "1e-30", "NaN", "Infinity"}) {
    INFO(text);
    const auto read = milli_of(text);
    REQUIRE_FALSE(read);
    CHECK_NE(read.error().message.find("'" + text.substr(0, 40) + "'"), std::string::npos);
  }
  CHECK_FALSE(mib_of(std::string(100'000, '9')));
  CHECK_FALSE(whole_of("1500m"));
  CHECK_FALSE(whole_of("2000000"));
  CHECK_EQ(*whole_of("8"), 8);
  CHECK_EQ(*whole_of("8000m"), 8);
}

}  // namespace berth::kube
