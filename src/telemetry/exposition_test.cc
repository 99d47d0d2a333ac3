#include "telemetry/exposition.h"

#include <doctest/doctest.h>

#include <array>

namespace berth::telemetry {

TEST_CASE("a decimal is printed as it is, without zeros behind it") {
  CHECK_EQ(text_of({8500, 3}), "8.5");
  CHECK_EQ(text_of({8000, 3}), "8");
  CHECK_EQ(text_of({1, 3}), "0.001");
  CHECK_EQ(text_of({-50, 3}), "-0.05");
  CHECK_EQ(text_of({0, 3}), "0");
  CHECK_EQ(text_of({0, 0}), "0");
  CHECK_EQ(text_of({1200, 0}), "1200");
  CHECK_EQ(text_of({604'800'000, 3}), "604800");
}

TEST_CASE("help and type stand once before the samples of a family") {
  Exposition out;
  out.begin("berth_gpus", MetricType::kGauge, "GPUs.");
  out.add({{"model", "H100"}, {"state", "idle"}}, {4500, 3});
  out.add({{"model", "A100"}, {"state", "idle"}}, {3, 0});
  out.add_single("berth_cycles_total", MetricType::kCounter, "Cycles.", {7, 0});
  CHECK_EQ(out.take(),
           "# HELP berth_gpus GPUs.\n"
           "# TYPE berth_gpus gauge\n"
           "berth_gpus{model=\"H100\",state=\"idle\"} 4.5\n"
           "berth_gpus{model=\"A100\",state=\"idle\"} 3\n"
           "# HELP berth_cycles_total Cycles.\n"
           "# TYPE berth_cycles_total counter\n"
           "berth_cycles_total 7\n");
}

TEST_CASE("what would end a label, a line or an escape early is escaped") {
  Exposition out;
  out.begin("berth_x", MetricType::kGauge, "A \"b\" \\ c\nd");
  out.add({{"queue", "a\"} 1\n\\b{x=\"y\"}"}}, {1, 0});
  CHECK_EQ(out.take(),
           "# HELP berth_x A \"b\" \\\\ c\\nd\n"
           "# TYPE berth_x gauge\n"
           "berth_x{queue=\"a\\\"} 1\\n\\\\b{x=\\\"y\\\"}\"} 1\n");
}

TEST_CASE("buckets are cumulative, a bound belongs to its own, and +Inf is the count") {
  constexpr std::array<std::int64_t, 3> kBounds = {500, 1000, 60'000};
  Histogram histogram(kBounds, 3);
  for (const std::int64_t ms : {0, 500, 501, 60'001}) histogram.observe(ms);
  Exposition out;
  out.begin("berth_wait_seconds", MetricType::kHistogram, "Waits.");
  out.add({{"queue", "a"}}, histogram);
  CHECK_EQ(out.take(),
           "# HELP berth_wait_seconds Waits.\n"
           "# TYPE berth_wait_seconds histogram\n"
           "berth_wait_seconds_bucket{queue=\"a\",le=\"0.5\"} 2\n"
           "berth_wait_seconds_bucket{queue=\"a\",le=\"1\"} 3\n"
           "berth_wait_seconds_bucket{queue=\"a\",le=\"60\"} 3\n"
           "berth_wait_seconds_bucket{queue=\"a\",le=\"+Inf\"} 4\n"
           "berth_wait_seconds_sum{queue=\"a\"} 61.002\n"
           "berth_wait_seconds_count{queue=\"a\"} 4\n");
}

}  // namespace berth::telemetry
