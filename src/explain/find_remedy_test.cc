#include "explain/find_remedy.h"

#include <algorithm>

#include "explain/queue_position.h"
#include "explain/why.h"
#include "support/fleet_fixture.h"

namespace berth {

using explain::RemedyKind;

TEST_CASE_FIXTURE(FleetFixture, "a held job would start if it were released") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node("n1", 8)});
  JobSpec spec = job("a", 1, 8);
  spec.held = true;
  const JobId held = submit(spec);
  const auto changes = explain::smallest_remedies(state, held, now);
  REQUIRE_EQ(changes.size(), 1);
  CHECK(changes[0].kind == RemedyKind::kRelease);
  const explain::Viewer everything = explain::Viewer::sees_all();
  CHECK_EQ(explain::remedy_text({state, everything, now}, *state.job(held), changes[0]), "its hold were released");
}

TEST_CASE_FIXTURE(FleetFixture, "behind the head of a strict queue the least priority that passes it is told") {
  QueueConfig strict = queue("a");
  strict.policy = QueuePolicy::kStrict;
  command(ApplyConfig{config({strict}), "op"});
  command(RegisterNode{node("n1", 8)});
  submit(job("a", 1, 6));
  cycle();
  submit(job("a", 1, 8));
  now = now + 1000;
  const JobId second = submit(job("a", 1, 1));
  cycle();
  const auto changes = explain::smallest_remedies(state, second, now);
  REQUIRE_EQ(changes.size(), 1);
  CHECK(changes[0].kind == RemedyKind::kPriority);
  CHECK_EQ(changes[0].to, state.job(second)->priority + 1);
  CHECK_EQ(explain::remedy_patch(*state.job(second), changes[0]),
           "{\n  \"priority\": " + std::to_string(changes[0].to) + "\n}\n");
}

TEST_CASE_FIXTURE(FleetFixture, "what a remedy changes in the document of the job is a merge patch") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node("n1", 8)});
  JobSpec spec = job("a", 1, 8);
  spec.exclusive = true;
  spec.time_limit_s = 7200;
  const state::JobState& pending = *state.job(submit(spec));
  const auto patch = [&](RemedyKind kind, std::int64_t to = 0) {
    explain::Remedy change;
    change.kind = kind;
    change.to = to;
    return explain::remedy_patch(pending, change);
  };
  CHECK_EQ(patch(RemedyKind::kGpus, 4000), "{\n  \"gpus\": 4\n}\n");
  CHECK_EQ(patch(RemedyKind::kShareNodes), "{\n  \"exclusive\": null\n}\n");
  CHECK_EQ(patch(RemedyKind::kTimeLimit, 3600), "{\n  \"time_limit\": \"1h\"\n}\n");
  CHECK_EQ(patch(RemedyKind::kRelease), "");  // a held job is released; its document says hold only to begin
  CHECK_EQ(patch(RemedyKind::kQuota), "");    // not the owner's to change
  CHECK_EQ(patch(RemedyKind::kOtherPorts), "");
}

TEST_CASE_FIXTURE(FleetFixture, "a job that waits for its earliest start would start then") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node("n1", 8)});
  JobSpec spec = job("a", 1, 8);
  spec.earliest_start = now + 60'000;
  const auto changes = explain::smallest_remedies(state, submit(spec), now);
  REQUIRE_EQ(changes.size(), 1);
  CHECK(changes[0].kind == RemedyKind::kWait);
  CHECK_EQ(changes[0].at.ms, now.ms + 60'000);
}

TEST_CASE_FIXTURE(FleetFixture, "what would start now needs no change, and nothing is told when effort has run out") {
  command(ApplyConfig{config({queue("a")}), "op"});
  command(RegisterNode{node("n1", 8)});
  const JobId first = submit(job("a", 1, 8));
  CHECK(explain::smallest_remedies(state, first, now).empty());
  cycle();
  const JobId second = submit(job("a", 1, 8));
  CHECK_FALSE(explain::smallest_remedies(state, second, now).empty());
  CHECK(explain::smallest_remedies(state, second, now, {2, 1'000'000, 8}).empty());
}

// n1 alone would do but for its NUMA domains; what closes n2 runs on n3, which holds no task of the job.
TEST_CASE_FIXTURE(FleetFixture, "who closes a node from beside it is told, though another rule refuses") {
  ClusterConfig two_domains = config({queue("a"), queue("b")});
  two_domains.queues[0].trust_domain = "red";
  two_domains.queues[1].trust_domain = "blue";
  two_domains.topology_levels = {"block"};
  two_domains.pools = {{"default", {}, {}, false, "block"}};
  command(ApplyConfig{two_domains, "op"});
  NodeSpec uneven = node("n1", 4);
  NodeSpec closed = node("n2", 2);
  NodeSpec beside = node("n3", 0);
  for (std::size_t i = 1; i < 4; ++i) uneven.gpus[i].numa = 1;
  uneven.topology = {"b0"};
  beside.labels = {{"head", ""}};
  closed.topology = beside.topology = {"b1"};
  for (const NodeSpec& one : {uneven, closed, beside}) command(RegisterNode{one});
  JobSpec blue = job("b", 1, 0);
  blue.groups[0].request.cpu_milli = 64'000;
  blue.groups[0].node_selector = {{"head", ""}};
  const JobId neighbour = submit(blue);
  cycle();
  REQUIRE(state.job(neighbour)->attempt);
  JobSpec red = job("a", 2, 2);
  red.groups[0].numa = NumaPolicy::kSingleNumaNode;
  const JobId waiting = submit(red);
  cycle();
  const auto changes = explain::smallest_remedies(state, waiting, now);
  const auto evict = std::find_if(changes.begin(), changes.end(),
                                  [](const explain::Remedy& change) { return change.kind == RemedyKind::kEvict; });
  REQUIRE(evict != changes.end());
  CHECK_EQ(evict->victims, std::vector{neighbour});
}

TEST_CASE_FIXTURE(FleetFixture, "the arithmetic of a share adds up to what the order uses") {
  QueueConfig a = queue("a");
  a.guaranteed.gpu_milli = 6000;
  a.lending_limit.gpu_milli = 1000;
  a.weight = 2;
  command(ApplyConfig{config({a, queue("b")}), "op"});
  command(RegisterNode{node("n1", 8)});
  submit(job("a", 1, 4));
  cycle();
  const auto lines = explain::explain_share(state, *state.queue_at("a"), now);
  CHECK_EQ(lines[0], "gpu-equivalents: 4 of 8 used = 50 %, over weight 2 = 25 % (dominant)");
  CHECK_EQ(lines[3], "gpus: guaranteed 6, 4 used within, 0 borrowed, 2 idle (1 may be lent, 1 kept back)");
  CHECK_EQ(lines.back(), "1 of 2 queues of the cluster has a smaller dominant share per unit of weight");
}

TEST_CASE_FIXTURE(FleetFixture, "a job is told its place in line, and by which criterion others go first") {
  QueueConfig a = queue("a");
  a.guaranteed.gpu_milli = 4000;
  command(ApplyConfig{config({a, queue("b")}), "op"});
  command(RegisterNode{node("n1", 8)});
  const JobId borrows = submit(job("b", 1, 1));
  const JobId within = submit(job("a", 1, 1));
  const explain::Viewer everything = explain::Viewer::sees_all();
  const explain::Words words(state, everything, now);
  const auto line = explain::place_in_line(words, *state.job(borrows));
  REQUIRE(line);
  CHECK_EQ(line->number, 2);
  CHECK_EQ(line->can_start_before, 1);
  CHECK_EQ(line->text, "queue a goes first: that queue would stay within its guarantee, queue b would borrow");
  CHECK_EQ(explain::place_in_line(words, *state.job(within)).value().number, 1);
}

TEST_CASE_FIXTURE(FleetFixture,
                  "behind the head of a strict queue the criterion is the one by which its head was compared") {
  QueueConfig strict = queue("a");
  strict.guaranteed.gpu_milli = 1000;
  strict.policy = QueuePolicy::kStrict;
  command(ApplyConfig{config({strict, queue("b")}), "op"});
  command(RegisterNode{node("n1", 8)});
  submit(job("b", 1, 2));
  const JobId head = submit(job("a", 1, 3));
  const JobId small = submit(job("a", 1, 1));
  const explain::Viewer everything = explain::Viewer::sees_all();
  const explain::Words words(state, everything, now);
  const std::string equal = "queue b stands equal, and its job goes first (submitted earlier)";
  CHECK_EQ(explain::place_in_line(words, *state.job(head)).value().text, equal);
  const auto line = explain::place_in_line(words, *state.job(small)).value();
  CHECK_EQ(line.number, 3);
  CHECK_EQ(line.text, equal + "; 1 job of its own queue goes first (submitted earlier)");
}

}  // namespace berth
