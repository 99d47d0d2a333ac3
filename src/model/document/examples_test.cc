// Reads the example files that the manual names, so that they stay valid.

#include <doctest/doctest.h>

#include <tuple>

#include "model/document/config_document.h"
#include "model/document/job_document.h"
#include "model/queue_volumes.h"
#include "support/file_text.h"

namespace berth::document {
namespace {

// Returns the YAML blocks of a page.
std::vector<std::string> blocks(const char* page) {
  const std::string text = text_of_file(page);
  const std::string opening = "```yaml\n";
  std::vector<std::string> found;
  for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at)) {
    at += opening.size();
    found.push_back(text.substr(at, text.find("```", at) - at));
  }
  return found;
}

}  // namespace

TEST_CASE("the example configurations are valid") {
  for (const char* path : {"examples/cluster.yaml", "examples/cluster-r30.yaml", "examples/data-cluster.yaml"}) {
    const auto config = read_config(text_of_file(path), path);
    CHECK_MESSAGE(config.has_value(), config.error().message);
  }
}

TEST_CASE("the worked tree has the guarantees and ceilings of its teams") {
  const auto config = read_config(text_of_file("examples/cluster-r30.yaml"), "cluster-r30.yaml");
  REQUIRE(config.has_value());
  const std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> rows = {
      {"research/nlp", 8000, 15'000},
      {"research/vision", 12'000, 18'000},
      {"product/ads", 15'000, 22'000},
      {"product/search", 10'000, 16'000},
  };
  for (const auto& row : rows) {
    const auto& path = std::get<0>(row);
    CAPTURE(path);
    for (const QueueConfig& queue : config->queues) {
      if (queue.path != path) continue;
      CHECK_EQ(queue.guaranteed.gpu_milli, std::get<1>(row) * 1000);
      CHECK_EQ(queue.max.gpu_milli, std::get<2>(row) * 1000);
    }
  }
  CHECK_EQ(config->queues[0].guaranteed.gpu_milli, 20'000'000);
  CHECK_EQ(config->queues[3].guaranteed.gpu_milli, 25'000'000);
}

TEST_CASE("the example job with data mounts what its queue has in the example configuration") {
  const auto config = read_config(text_of_file("examples/data-cluster.yaml"), "data-cluster.yaml");
  const auto job = read_job(text_of_file("examples/data-job.yaml"), "data-job.yaml");
  REQUIRE(config.has_value());
  REQUIRE_MESSAGE(job.has_value(), job.error().message);
  CHECK(volume_of(*config, job->queue, job->mounts.front().name) != nullptr);
  CHECK(volume_of(*config, job->queue, job->checkpoint.place.volume) != nullptr);
  CHECK(secret_of(*config, job->queue, job->secrets.front().name) != nullptr);
}

TEST_CASE("the example job is valid") {
  const auto job = read_job(text_of_file("examples/job.yaml"), "job.yaml");
  REQUIRE_MESSAGE(job.has_value(), job.error().message);
  CHECK_EQ(job->groups[0].request.gpus, 4);
  CHECK_EQ(job->checkpoint.signal, 10);
}

TEST_CASE("what the pages show is accepted") {
  const auto configurations = blocks("docs/configuration.md");
  REQUIRE_EQ(configurations.size(), 2);
  for (const std::string& text : configurations) {
    const auto config = read_config(text, "configuration.md");
    CHECK_MESSAGE(config.has_value(), config.error().message);
  }
  const auto jobs = blocks("docs/jobs.md");
  REQUIRE_EQ(jobs.size(), 6);
  for (const std::string& text : jobs) {
    const auto job = read_job(text, "jobs.md");
    CHECK_MESSAGE(job.has_value(), job.error().message);
  }
}

}  // namespace berth::document
