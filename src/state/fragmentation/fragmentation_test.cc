#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "base/random.h"
#include "state/fragmentation/mix.h"
#include "state/fragmentation/next_states.h"
#include "state/fragmentation/node_table.h"
#include "state/fragmentation/node_value.h"
#include "state/fragmentation/shape.h"

namespace berth::state::fragmentation {
namespace {

NodeFree node_with(std::vector<std::int32_t> free, std::int64_t cpu, std::uint32_t model = 0) {
  NodeFree node{cpu, model, static_cast<std::uint32_t>(free.size()), {}};
  std::copy(free.begin(), free.end(), node.free.begin());
  return canonical(node);
}

Request share(std::int32_t milli, std::int64_t cpu = 1000) { return {cpu, 1, milli, kAnyModel}; }
Request whole(std::int32_t gpus, std::int64_t cpu = 1000) { return {cpu, gpus, kWholeGpu, kAnyModel}; }
Request bound(Request request, std::uint32_t model) {
  request.models = ModelMask{1} << model;
  return request;
}

Mix mix_of(std::vector<Group> groups) { return Mix::given(groups, 0); }

std::int64_t fill_of(const NodeFree& node, const Mix& mix) {
  return expected_fill(node, mix, futures_for(mix, node.model));
}

// Plays every request of every future, one by one, as the definition says it.
std::int64_t played_fill(const NodeFree& node, const Mix& mix) {
  const auto futures = futures_for(mix, node.model).groups;
  std::int64_t sum = 0;
  NodeFree filling = node;
  for (std::size_t drawn = 0; drawn < futures.size(); ++drawn) {
    if (drawn % kFutureLength == 0) filling = node;
    const Request& request = mix.groups()[futures[drawn]].request;
    if (slots(filling, request) == 0) continue;
    std::int32_t tightest = kWholeGpu;
    for (const auto milli : filling.free_gpus())
      tightest = milli < request.milli ? tightest : std::min(tightest, milli);
    filling = after(filling, request, tightest);
    sum += request.total_milli();
  }
  return sum;
}

}  // namespace

TEST_CASE(
    "slots are bounded by CPU, by the milli of each GPU, by whole GPUs "
    "and by the model") {
  const auto node = node_with({1000, 1000, 500}, 10'000, 2);
  CHECK(slots(node, share(300)) == 3 + 3 + 1);
  CHECK(slots(node, share(300, 4000)) == 2);
  CHECK(slots(node, whole(1)) == 2);
  CHECK(slots(node, whole(2)) == 1);
  CHECK(slots(node, whole(3)) == 0);
  CHECK(slots(node, {5000, 0, 0, kAnyModel}) == 2);
  CHECK(slots(node, bound(whole(1), 2)) == 2);
  CHECK(slots(node, bound(whole(1), 1)) == 0);
}

TEST_CASE("after takes from the named GPU, or from whole ones, and keeps the order") {
  const auto node = node_with({400, 1000, 1000}, 8000);
  CHECK(after(node, share(300), 400) == node_with({100, 1000, 1000}, 7000));
  CHECK(after(node, share(300), 1000) == node_with({400, 700, 1000}, 7000));
  CHECK(after(node, whole(2), kWholeGpu) == node_with({0, 0, 400}, 7000));
}

TEST_CASE("the gauge is the paper's F times the weight of the mix") {
  const auto node = node_with({1000, 400}, 8000);
  const auto of = [&](const Request& request) { return unusable_milli(node, mix_of({{request, 2}})) / 2000; };
  CHECK(of({1000, 0, 0, kAnyModel}) == 1400);  // asks for no GPU: it uses none of them
  CHECK(of(whole(2)) == 1400);                 // cannot run here
  CHECK(of(share(300, 9000)) == 1400);         // no CPU for it
  CHECK(of(share(500)) == 400);                // the second GPU is too small
  CHECK(of(share(300)) == 0);
  CHECK(unusable_milli(node, mix_of({{whole(2), 1}, {share(500), 3}})) == 1000 * (1400 + 3 * 400));
}

TEST_CASE("a future of one kind fills the node with as many as have a slot") {
  for (const auto& request : {share(300), share(700), whole(1), whole(2), share(500, 4000)}) {
    const auto node = node_with({1000, 1000, 600, 100}, 9000);
    CHECK(fill_of(node, mix_of({{request, 1}})) ==
          static_cast<std::int64_t>(kFutures) * slots(node, request) * request.total_milli());
  }
}

TEST_CASE("requests for CPU alone fill nothing and leave less for others") {
  const Request cpu_only{4000, 0, 0, kAnyModel};
  const auto node = node_with({1000, 1000}, 8000);
  CHECK(fill_of(node, mix_of({{cpu_only, 1}})) == 0);
  const auto alone = fill_of(node, mix_of({{whole(1, 4000), 1}}));
  CHECK(alone == static_cast<std::int64_t>(kFutures) * 2000);
  CHECK(fill_of(node, mix_of({{whole(1, 4000), 1}, {cpu_only, 1}})) < alone);
}

TEST_CASE("the fill is never more than what is idle") {
  Random random(5);
  const auto mix =
      mix_of({{share(810, 3152), 13}, {whole(1, 11'300), 20}, {share(470, 8000), 9}, {{12'500, 0, 0, kAnyModel}, 5}});
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int32_t> free;
    for (int gpu = 0; gpu < 4; ++gpu) free.push_back(static_cast<std::int32_t>(random.below(11)) * 100);
    const auto node = node_with(free, random.between(0, 64'000));
    const auto fill = fill_of(node, mix);
    CHECK(fill >= 0);
    CHECK(fill <= static_cast<std::int64_t>(kFutures) * node.idle_milli());
  }
}

TEST_CASE("the fill is that of playing each future request by request") {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<Group> groups;
    for (auto left = random.between(1, 12); left > 0; --left) {
      const std::int64_t cpu = random.between(0, 9) * 1000;
      const auto kind = random.below(8);
      groups.push_back({kind == 0  ? Request{cpu + 1000, 0, 0, kAnyModel}
                        : kind < 5 ? share(static_cast<std::int32_t>(random.between(1, 9)) * 100, cpu)
                                   : whole(std::int32_t{1} << random.below(4), cpu),
                        random.between(1, 20)});
    }
    std::vector<std::int32_t> free;
    for (auto left = random.between(0, 8); left > 0; --left) {
      free.push_back(static_cast<std::int32_t>(random.chance(500) ? 10 : random.below(11)) * 100);
    }
    const auto node = node_with(free, random.between(0, 64) * 1000);
    const auto mix = Mix::given(groups, 8);
    CHECK(fill_of(node, mix) == played_fill(node, mix));
  }
}

TEST_CASE(
    "a remainder that the mix can use is worth more than the same milli "
    "in pieces") {
  const auto mix = mix_of({{share(500), 1}, {whole(1), 1}});
  CHECK(fill_of(node_with({500, 500}, 64'000), mix) > fill_of(node_with({400, 600}, 64'000), mix));
}

TEST_CASE("futures use only what may run on the model, and are the same each time") {
  const auto mix = mix_of({{bound(whole(1), 0), 5}, {bound(share(500), 1), 5}});
  const auto futures = futures_for(mix, 1);
  REQUIRE(futures.groups.size() == kFutures * kFutureLength);
  CHECK(std::all_of(futures.groups.begin(), futures.groups.end(), [](auto group) { return group == 1; }));
  for (const auto positions : futures.ask_gpus) CHECK(std::popcount(positions) == kFutureLength);
  CHECK(futures == futures_for(mix, 1));
  CHECK(futures_for(mix, 7).groups.empty());
  CHECK(fill_of(node_with({1000}, 8000, 7), mix) == 0);
}

TEST_CASE(
    "a slot's price is its milli times the square of demand over supply, "
    "at most its milli") {
  const auto mix = mix_of({{whole(1), 3}, {bound(whole(1), 1), 1}});
  // 8 idle GPUs stand for 6 unbound and 2 bound requests.
  FleetSummary fleet{8000, {12, 4}};
  CHECK(scarcity_prices(fleet, mix) == std::vector<std::int64_t>{1000 * kPriceScale / 4, 1000 * kPriceScale / 4});
  fleet.slots = {6, 1};
  CHECK(scarcity_prices(fleet, mix) == std::vector<std::int64_t>{1000 * kPriceScale, 1000 * kPriceScale});
  fleet.slots = {24, 0};
  CHECK(scarcity_prices(fleet, mix) == std::vector<std::int64_t>{1000 * kPriceScale / 16, 1000 * kPriceScale});
}

TEST_CASE("the fleet's summary follows its nodes exactly") {
  FleetSummary fleet{0, {0, 0, 0}};
  const std::vector<Offer> two{{0, 3}, {2, 1}};
  fleet.add(node_with({1000, 500}, 8000), two, 2);
  CHECK(fleet.idle_milli == 3000);
  CHECK(fleet.slots == std::vector<std::int64_t>{6, 0, 2});
  fleet.add(node_with({1000, 500}, 8000), two, -1);
  CHECK(fleet.idle_milli == 1500);
  CHECK(fleet.slots == std::vector<std::int64_t>{3, 0, 1});
}

TEST_CASE("a node offers its slots for groups that ask for GPUs, and leaves out those for which it has none") {
  const auto mix = mix_of({{whole(2), 1}, {share(300), 1}, {{1000, 0, 0, kAnyModel}, 1}, {bound(share(500), 1), 1}});
  std::vector<Offer> offers{{9, 9}};
  append_offers(node_with({700, 1000}, 8000), mix, offers);
  CHECK(offers == std::vector<Offer>{{9, 9}, {1, 5}});
}

TEST_CASE("value falls as the price of what the node offers falls") {
  const std::vector<Offer> offers{{0, 2}};
  const std::vector<std::int64_t> prices{1000, 5000};
  CHECK(node_value(7, offers, prices) ==
        7 * kPriceScale + static_cast<std::int64_t>(kFutures) * kScarcityPercent * 2000 / 100);
  CHECK(node_value(7, offers, std::vector<std::int64_t>{900, 5000}) < node_value(7, offers, prices));
}

TEST_CASE("a learned mix holds what was seen, most frequent first, cut at 95 %") {
  Mix mix(0);
  for (int i = 0; i < 90; ++i) mix.observe(whole(1));
  for (int i = 0; i < 9; ++i) mix.observe(share(500));
  mix.observe(share(100));
  bool changed = false;
  while (!changed) changed = mix.observe(whole(1));
  REQUIRE(mix.groups().size() == 2);
  CHECK(mix.groups()[0].request == whole(1));
  CHECK(mix.groups()[1] == Group{share(500), 9000});
}

TEST_CASE("groups change only when the observations have grown by a quarter") {
  Mix mix(0);
  int changes = 0;
  for (int i = 0; i < 10'000; ++i) changes += mix.observe(whole(1 + i % 8)) ? 1 : 0;
  CHECK(changes > 20);
  CHECK(changes < 45);
}

TEST_CASE("a mix tracks a bounded number of requests and follows a change of users") {
  Mix mix(0);
  for (int i = 0; i < 5000; ++i) mix.observe(share(1 + i % 999, i));
  for (std::int64_t i = 0; i < 2 * Mix::kAgeAt; ++i) mix.observe(whole(1));
  CHECK(mix.groups().size() <= Mix::kGroups);
  CHECK(mix.groups()[0].request == whole(1));
  for (std::int64_t i = 0; i < 3 * Mix::kAgeAt; ++i) mix.observe(whole(2));
  CHECK(mix.groups()[0].request == whole(2));
}

TEST_CASE(
    "a mix always expects a whole node now and then, with the mean CPU "
    "per GPU") {
  const std::vector<Group> groups{{whole(1, 10'000), 900}, {{5000, 0, 0, kAnyModel}, 100}};
  const auto mix = Mix::given(groups, 8);
  REQUIRE(mix.groups().size() == 3);
  CHECK(mix.groups()[2] == Group{whole(8, 80'000), 6000});
  CHECK(mix.total_weight() == 1'006'000);
  CHECK(Mix::given({}, 8).groups().empty());
}

TEST_CASE("remembered values equal fresh ones, before and after the mix changes") {
  Random random(11);
  NodeTable kept{Mix(2)};
  const std::vector<Request> requests{whole(1, 6000), share(300, 2000), share(500, 4000), whole(2, 9000)};
  std::vector<NodeFree> nodes;
  for (int i = 0; i < 20; ++i) {
    nodes.push_back(node_with({static_cast<std::int32_t>(random.below(1001)), 1000}, random.between(0, 20'000)));
  }
  for (int step = 0; step < 60; ++step) {
    kept.observe(requests[random.below(requests.size())]);
    const std::vector<std::int64_t> prices(kept.mix().groups().size(), 77);
    for (const auto& node : nodes) {
      NodeTable fresh(kept.mix());
      CHECK(kept.value(kept.id_of(node), prices) == fresh.value(fresh.id_of(node), prices));
    }
  }
}

TEST_CASE("what is found under a key is what was put there, however many there are") {
  Random random(5);
  NextStates known;
  std::map<std::uint64_t, std::uint32_t> expected;
  CHECK(known.find(0) == nullptr);
  for (std::uint32_t id = 0; id < 5000; ++id) {
    const std::uint64_t key = random.below(20'000) << random.below(40);
    if (!expected.emplace(key, id).second) continue;
    known.insert(key, id);
  }
  CHECK(known.size() == expected.size());
  for (const auto& [key, id] : expected) {
    REQUIRE(known.find(key) != nullptr);
    CHECK(*known.find(key) == id);
    CHECK((known.find(key + 1) != nullptr) == expected.contains(key + 1));
  }
}

TEST_CASE(
    "options are the distinct fitting GPUs for a share, one for whole "
    "GPUs, none where nothing fits") {
  NodeTable table{mix_of({{whole(1), 1}})};
  const auto id = table.id_of(node_with({1000, 1000, 500, 200}, 8000));
  const auto spanned = table.options(id, table.id_of(share(300)));
  const std::vector<NodeTable::Option> shares(spanned.begin(), spanned.end());
  REQUIRE(shares.size() == 2);
  CHECK(shares[0].gpu_free == 500);
  CHECK(table.node(shares[0].after) == node_with({1000, 1000, 200, 200}, 7000));
  CHECK(shares[1].gpu_free == 1000);
  CHECK(table.options(id, table.id_of(whole(2))).size() == 1);
  CHECK(table.options(id, table.id_of(whole(3))).empty());
  CHECK(table.options(id, table.id_of(share(300, 9000))).empty());
}

}  // namespace berth::state::fragmentation
