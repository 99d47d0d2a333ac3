#include "model/queue_edit.h"

#include <doctest/doctest.h>

#include "model/document/limit_setting.h"

namespace berth {
namespace {

ClusterConfig file_with(std::int64_t gpus, std::int64_t weight = 1) {
  ClusterConfig file = default_cluster_config();
  file.queues[0].path = "a";
  file.queues[0].guaranteed.gpu_milli = gpus * kMilli;
  file.queues[0].weight = weight;
  return file;
}

QueueEdit edit(std::uint64_t version, std::vector<LimitChange> limits) {
  return {version, "user:ada", Timestamp{1}, Timestamp::never(), std::move(limits)};
}

std::string told(const char* text) {
  const auto setting = document::read_limit_setting(text);
  return setting ? "" : setting.error().message;
}

}  // namespace

TEST_CASE("every key of a limit is read and written at its own place") {
  for (std::string key : limit_keys()) {
    CAPTURE(key);
    if (const std::size_t model = key.find("MODEL"); model != std::string::npos) key.replace(model, 5, "H100");
    REQUIRE(unit_of_limit(key).has_value());
    QueueConfig queue;
    const QueueConfig untouched = queue;
    set_limit(queue, key, 7);
    CHECK_EQ(limit_of(queue, key), 7);
    CHECK_FALSE(queue == untouched);
    for (const std::string& other : limit_keys()) {
      if (other != key && other.find("MODEL") == std::string::npos)
        CHECK_EQ(limit_of(queue, other), limit_of(untouched, other));
    }
    set_limit(queue, key, {});
    CHECK_EQ(queue, untouched);
  }
  for (const char* key : {"", "max", "max.", "max.gpus.", "max.disks", "path", "trust_domain", "eviction", "budget"})
    CHECK_FALSE(unit_of_limit(key).has_value());
}

TEST_CASE("changes lie over the file in their order; taking one out leaves what was below it") {
  const ClusterConfig file = file_with(8);
  QueueEdits edits;
  add_edit(edits, "a", edit(2, {{"guaranteed.gpus", 9000, 8000}, {"weight", 4, 1}}));
  add_edit(edits, "a", edit(3, {{"guaranteed.gpus", 5000, 9000}}));
  CHECK_EQ(with_edits(file, edits).queues[0].guaranteed.gpu_milli, 5000);
  const auto over = limits_over(file, edits);
  REQUIRE_EQ(over.size(), 1);
  CHECK(over[0].limits == std::vector<LimitChange>{{"guaranteed.gpus", 5000, 8000}, {"weight", 4, 1}});
  CHECK(remove_edit(edits, "a", 2));
  CHECK_FALSE(remove_edit(edits, "a", 2));
  CHECK_EQ(with_edits(file, edits).queues[0].guaranteed.gpu_milli, 5000);
  CHECK_EQ(with_edits(file, edits).queues[0].weight, 1);
  CHECK(remove_edit(edits, "a", 3));
  CHECK(edits.empty());
  CHECK_EQ(with_edits(file, edits), file);
}

TEST_CASE("another file takes over the limits that it changes") {
  QueueEdits edits;
  add_edit(edits, "a", edit(2, {{"guaranteed.gpus", 9000, 8000}, {"weight", 4, 1}}));
  CHECK(edits_after(edits, file_with(8), file_with(8), {}) == edits);
  const QueueEdits after = edits_after(edits, file_with(8), file_with(7), {});
  REQUIRE_EQ(after.at("a").size(), 1);
  CHECK(after.at("a")[0].limits == std::vector<LimitChange>{{"weight", 4, 1}});
  CHECK(edits_after(edits, file_with(8), file_with(7, 2), {}).empty());
  ClusterConfig renamed = file_with(8);
  renamed.queues[0].path = "b";
  CHECK(edits_after(edits, file_with(8), renamed, {{"a", "b"}}).contains("b"));
  CHECK(edits_after(edits, file_with(8), renamed, {}).empty());
}

TEST_CASE("a revision is another one whenever limits or changes are others") {
  const ClusterConfig file = file_with(8);
  QueueEdits edits;
  add_edit(edits, "a", edit(2, {{"weight", 1, 1}}));
  const std::string plain = revision_of(file.queues[0], nullptr);
  CHECK_EQ(plain.size(), 16);
  CHECK_EQ(plain, revision_of(file.queues[0], nullptr));
  CHECK(plain != revision_of(file_with(9).queues[0], nullptr));
  CHECK(plain != revision_of(file.queues[0], &edits.at("a")));
}

TEST_CASE("a limit is read as people write it, and a mistake is told with what would be right") {
  const auto gpus = document::read_limit_setting("guaranteed.gpus=+100").value();
  CHECK(gpus.how == LimitSetting::How::kBy);
  CHECK_EQ(gpus.amount, 100'000);
  CHECK_EQ(document::read_limit_setting("max.gpus.H100=-0.5").value().amount, -500);
  CHECK_EQ(document::read_limit_setting("max.memory=2TiB").value().amount, 2 * 1024 * 1024);
  CHECK_EQ(document::read_limit_setting("eviction.grace=90s").value().amount, 90);
  CHECK(document::read_limit_setting("max_jobs_per_user=none").value().how == LimitSetting::How::kUnset);
  CHECK(told("guaranteed.gpus").find("KEY=VALUE") != std::string::npos);
  CHECK(told("=3").find("KEY=VALUE") != std::string::npos);
  CHECK(told("guaranted.gpus=3").ends_with("did you mean 'guaranteed.gpus'?"));
  CHECK(told("trust_domain=x").find("max_gpus_per_user") != std::string::npos);
  CHECK(told("max.memory=64GB").starts_with("max.memory: "));
  CHECK(told("weight=++1").starts_with("weight: "));
  CHECK(told("weight=").starts_with("weight: "));
  CHECK(told("weight=1.5").starts_with("weight: "));
  CHECK_EQ(document::limit_text("guaranteed.gpus", -7500), "-7.5");
  CHECK_EQ(document::limit_text("eviction.grace", 5400), "1h30m");
  CHECK_EQ(document::limit_text("max.gpus", {}), "none");
}

}  // namespace berth
