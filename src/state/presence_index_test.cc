#include "state/presence_index.h"

#include <doctest/doctest.h>

namespace berth::state {
namespace {

JobSpec labelled(Labels labels, std::vector<AffinityTerm> excludes = {}) {
  JobSpec spec;
  spec.labels = std::move(labels);
  spec.anti_affinity = std::move(excludes);
  return spec;
}

const AffinityTerm kWeb{{{"app", "web"}}, "node", true};

}  // namespace

TEST_CASE("a term means the jobs that have all of its labels") {
  const AffinityTerm both{{{"app", "web"}, {"tier", "front"}}, "node", true};
  CHECK(matches(kWeb, {{"app", "web"}}));
  CHECK(matches(kWeb, {{"app", "web"}, {"tier", "back"}}));
  CHECK_FALSE(matches(kWeb, {{"app", "cache"}}));
  CHECK_FALSE(matches(kWeb, {}));
  CHECK(matches(both, {{"app", "web"}, {"tier", "front"}, {"x", "y"}}));
  CHECK_FALSE(matches(both, {{"tier", "front"}}));
}

TEST_CASE("what is bound and what is nominated are counted by node, and gone when both are none") {
  PresenceIndex index;
  const JobSpec web = labelled({{"app", "web"}, {"tier", "front"}});
  index.bind(QueueId(1), web, NodeId(3), +1);
  index.bind(QueueId(1), web, NodeId(3), +1);
  index.nominate(QueueId(1), web, NodeId(4), +1);
  REQUIRE_EQ(index.meant_by(kWeb).size(), 1);
  const PresenceIndex::Nodes expected{{NodeId(3), {2, 0}}, {NodeId(4), {0, 1}}};
  CHECK(index.meant_by(kWeb).front()->second == expected);
  CHECK(index.meant_by({{{"app", "cache"}}, "node", true}).empty());
  index.bind(QueueId(1), web, NodeId(3), -1);
  index.bind(QueueId(1), web, NodeId(3), -1);
  index.nominate(QueueId(1), web, NodeId(4), -1);
  CHECK(index.empty());
  CHECK(index.meant_by(kWeb).empty());
}

TEST_CASE("those without labels and required anti-affinity are not counted") {
  PresenceIndex index;
  index.bind(QueueId(1), labelled({}, {{{{"app", "web"}}, "node", false}}), NodeId(0), +1);
  CHECK(index.empty());
}

TEST_CASE("who keeps jobs away is found by the labels of those it means") {
  PresenceIndex index;
  index.bind(QueueId(1), labelled({}, {kWeb}), NodeId(0), +1);
  CHECK_EQ(index.excluding({{"app", "web"}, {"z", "z"}}).size(), 1);
  CHECK(index.excluding({{"app", "cache"}}).empty());
}

TEST_CASE("a node is forgotten with all that was on it") {
  PresenceIndex index;
  index.bind(QueueId(1), labelled({{"app", "web"}}), NodeId(0), +1);
  index.bind(QueueId(2), labelled({{"app", "web"}}), NodeId(0), +1);
  index.bind(QueueId(2), labelled({{"app", "web"}}), NodeId(1), +1);
  index.forget(NodeId(0));
  REQUIRE_EQ(index.meant_by(kWeb).size(), 1);
  CHECK_EQ(index.meant_by(kWeb).front()->first.queue, QueueId(2));
}

}  // namespace berth::state
