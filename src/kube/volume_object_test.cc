#include "kube/volume_object.h"

#include <doctest/doctest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "kube/json_reading.h"

namespace berth::kube {
namespace {

boost::json::object object_in(const std::string& text) { return boost::json::parse(text).as_object(); }

const Labels kNodeLabels{{"cores", "16"}, {"kubernetes.io/hostname", "n1"}, {"zone", "z1"}};

}  // namespace

TEST_CASE("a volume allows the nodes of its node affinity, and without one all") {
  const auto volume = read_volume(object_in(
      R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["z1"]}]}]}}}})"));
  REQUIRE(volume.rule);
  CHECK(allows(*volume.rule, "n", kNodeLabels));
  CHECK_FALSE(allows(*volume.rule, "n", {{"zone", "z2"}}));
  CHECK_FALSE(read_volume(object_in(R"({"spec":{"capacity":{"storage":"1Gi"}}})")).rule);
}

TEST_CASE("the topologies that a class allows are a rule") {
  const auto storage_class = read_storage_class(
      object_in(R"({"provisioner":"csi.example.com","volumeBindingMode":"WaitForFirstConsumer","allowedTopologies":[)"
                R"({"matchLabelExpressions":[{"key":"zone","values":["z3","z1"]}]}]})"));
  CHECK(storage_class.waits_for_consumer);
  CHECK(storage_class.provisions);
  REQUIRE(storage_class.rule);
  CHECK(allows(*storage_class.rule, "n", kNodeLabels));
  CHECK_FALSE(allows(*storage_class.rule, "n", {{"zone", "z2"}}));
  const auto plain = read_storage_class(object_in(R"({"provisioner":"kubernetes.io/no-provisioner"})"));
  CHECK_FALSE(plain.waits_for_consumer);
  CHECK_FALSE(plain.provisions);
  CHECK_FALSE(plain.rule);
}

TEST_CASE("the claims of a pod are those of its volumes, and those made for it") {
  const auto claims = claims_of(object_in(
      R"({"metadata":{"name":"p"},"spec":{"volumes":[{"name":"z","persistentVolumeClaim":{"claimName":"train"}},)"
      R"({"name":"scratch","ephemeral":{"volumeClaimTemplate":{}}},{"name":"again","persistentVolumeClaim":)"
      R"({"claimName":"train"}},{"name":"c","configMap":{"name":"x"}}]}})"));
  CHECK(claims == std::vector<PodClaim>{{"p-scratch", true}, {"train", false}});
}

TEST_CASE("what a claim lets its pod do") {
  const ClaimObject bound = read_claim(object_in(
      R"({"metadata":{"uid":"c"},"spec":{"volumeName":"v","storageClassName":"s"},"status":{"phase":"Bound"}})"));
  const ClaimObject open =
      read_claim(object_in(R"({"metadata":{"uid":"c"},"spec":{"storageClassName":"s"},"status":{"phase":"Pending"}})"));
  ClaimObject without_class = open;
  without_class.storage_class.clear();
  ClaimObject named = open;
  named.volume = "v";
  ClaimObject lost = open;
  lost.lost = true;
  ClaimObject leaving = bound;
  leaving.leaving = true;
  const VolumeObject volume{NodeRule{{{{"zone", NodeOperator::kIn, {"z1"}, false}}}}, "team/x"};
  const StorageClassObject immediate{false, true, {}};
  const StorageClassObject waits{true, true, NodeRule{{{{"zone", NodeOperator::kIn, {"z2"}, false}}}}};
  const StorageClassObject by_hand{true, false, {}};
  struct Row {
    const ClaimObject* claim;
    const VolumeObject* volume;
    const StorageClassObject* storage_class;
    ClaimStage stage;
    const char* why;
  };
  const Row rows[] = {
      {nullptr, nullptr, nullptr, ClaimStage::kWaits, "claim x does not exist"},
      {&leaving, &volume, &immediate, ClaimStage::kWaits, "claim x is being deleted"},
      {&lost, nullptr, &immediate, ClaimStage::kWaits, "claim x has lost its volume"},
      {&bound, &volume, nullptr, ClaimStage::kReady, ""},
      {&bound, nullptr, &immediate, ClaimStage::kWaits, "claim x: its volume v does not exist"},
      {&open, nullptr, &immediate, ClaimStage::kWaits, "claim x is not bound yet"},
      {&without_class, nullptr, nullptr, ClaimStage::kWaits, "claim x is not bound yet"},
      {&open, nullptr, nullptr, ClaimStage::kWaits, "claim x is not bound yet: its StorageClass s does not exist"},
      {&open, nullptr, &waits, ClaimStage::kChoosesNode, ""},
      {&named, &volume, &waits, ClaimStage::kWaits, "claim x is not bound yet"},
      {&open, nullptr, &by_hand, ClaimStage::kWaits,
       "claim x is not bound yet: its StorageClass s makes no volumes, and berth chooses none of those that there are; "
       "name one in spec.volumeName"},
  };
  for (const Row& row : rows) {
    const ClaimVerdict verdict = judge({"x", false}, "p", row.claim, row.volume, row.storage_class);
    CHECK_EQ(verdict.why, row.why);
    CHECK(verdict.stage == row.stage);
  }
  CHECK(judge({"x", false}, "p", &bound, &volume, nullptr).rule == volume.rule);
  CHECK(judge({"x", false}, "p", &open, nullptr, &waits).rule == waits.rule);
  CHECK_EQ(judge({"p-v", true}, "p", &bound, &volume, nullptr).why, "claim p-v was not made for this pod");
  ClaimObject made = bound;
  made.owner_uid = "p";
  CHECK(judge({"p-v", true}, "p", &made, &volume, nullptr).stage == ClaimStage::kReady);
}

TEST_CASE("the chosen node is written into the very claim that was seen") {
  ClaimObject claim;
  claim.uid = "u";
  claim.version = "7";
  const auto patch = object_in(select_node_patch(claim, "n1"));
  CHECK_EQ(text_at(patch, {"metadata", "uid"}), "u");
  CHECK_EQ(text_at(patch, {"metadata", "resourceVersion"}), "7");
  CHECK_EQ(text_at(patch, {"metadata", "annotations", kSelectedNode}), "n1");
}

}  // namespace berth::kube
