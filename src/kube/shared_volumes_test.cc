#include "kube/shared_volumes.h"

#include <doctest/doctest.h>

namespace berth::kube {
namespace {

QueueConfig queue_of(const std::string& path, const std::string& domain) {
  QueueConfig queue;
  queue.path = path;
  queue.trust_domain = domain;
  return queue;
}

}  // namespace

TEST_CASE(
    "volumes: one that queues of two trust domains may write to is warned of, on Kubernetes with jobs of its own") {
  OwnPods own;
  own.space = "jobs";
  ClusterConfig config;
  config.queues = {queue_of("a", "red"), queue_of("a/x", ""), queue_of("b", "blue"), queue_of("c", "")};
  config.volumes = {{"set", VolumeKind::kNfs, "nas:/set", {}, "", true}};
  config.queues[0].volumes = {{"mine", VolumeKind::kClaim, "mine"}};
  CHECK(warnings_of_shared_volumes(config, own).empty());
  config.volumes.push_back({"scratch", VolumeKind::kNfs, "nas:/scratch"});
  REQUIRE_EQ(warnings_of_shared_volumes(config, own).size(), 1);
  CHECK(warnings_of_shared_volumes(config, own)[0].starts_with(
      "volume 'scratch' may be written from queues of 2 trust domains"));
  CHECK(warnings_of_shared_volumes(config, {}).empty());
  config.queues[2].volumes = {{"scratch", VolumeKind::kNfs, "nas:/scratch-b"}};
  CHECK(warnings_of_shared_volumes(config, own).empty());
}

TEST_CASE("volumes: a claim is another one in each namespace") {
  OwnPods own;
  own.space = "jobs";
  ClusterConfig config;
  config.queues = {queue_of("a", "red"), queue_of("b", "blue")};
  config.volumes = {{"scratch", VolumeKind::kClaim, "scratch"}};
  CHECK_EQ(warnings_of_shared_volumes(config, own).size(), 1);
  own.spaces = {{"b", "jobs-b"}};
  CHECK(warnings_of_shared_volumes(config, own).empty());
}

}  // namespace berth::kube
