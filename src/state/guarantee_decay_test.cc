#include "state/guarantee_decay.h"

#include <doctest/doctest.h>

#include <vector>

namespace berth::state {
namespace {

constexpr std::size_t kH100 = kDimFirstModel;
constexpr std::size_t kA100 = kDimFirstModel + 1;

Amounts of(std::size_t dim, std::int64_t amount) {
  Amounts amounts;
  amounts[dim] = amount;
  return amounts;
}

ResourceAmounts gpus(std::int64_t count) {
  ResourceAmounts amounts;
  amounts.gpu_milli = count * kMilli;
  return amounts;
}

QueueState with_guarantee(std::vector<std::pair<std::size_t, std::int64_t>> stated) {
  QueueState queue;
  for (const auto& [dim, amount] : stated) queue.configured.state(dim, amount);
  queue.guaranteed = queue.configured;
  queue.guarantee_decay_ms = 1000;
  return queue;
}

TEST_CASE("a queue is idle while it asks for no more than half") {
  const QueueState queue = with_guarantee({{kDimGpu, 8000}});
  CHECK(is_idle(queue, {}));
  CHECK(is_idle(queue, of(kDimGpu, 4000)));
  CHECK_FALSE(is_idle(queue, of(kDimGpu, 4001)));
}

TEST_CASE("who keeps its cores busy may hoard GPUs, and is judged by them alone") {
  const QueueState queue = with_guarantee({{kDimGpu, 8000}, {kDimCpu, 8000}});
  CHECK(is_idle(queue, of(kDimCpu, 8000)));
  CHECK(is_idle(with_guarantee({{kDimCpu, 8000}, {kDimMemory, 100}}), of(kDimCpu, 4000)));
  CHECK_FALSE(is_idle(with_guarantee({{kDimCpu, 8000}, {kDimMemory, 100}}), of(kDimMemory, 51)));
}

TEST_CASE("one kind of GPU in use is enough") {
  const QueueState queue = with_guarantee({{kH100, 4000}, {kA100, 4000}});
  CHECK_FALSE(is_idle(queue, of(kA100, 3000)));
  CHECK(is_idle(queue, of(kDimGpu, 8000)));  // a dimension that is not guaranteed
}

TEST_CASE("half of what it never asked for is lost, in whole GPUs and cores, and never what it uses") {
  QueueState queue = with_guarantee({{kDimGpu, 8000}, {kDimCpu, 15'000}, {kDimMemory, 101}});
  queue.guarantee_use.idle_peak[kDimGpu] = 1000;
  const QuotaAmounts left = guarantee_after_idling(queue);
  CHECK(left.amounts[kDimGpu] == 4000);  // 1 + 7 / 2
  CHECK(left.amounts[kDimCpu] == 7000);  // 15 / 2
  CHECK(left.amounts[kDimMemory] == 50);
  CHECK(left.stated == queue.configured.stated);
  queue.guarantee_use.idle_peak[kDimCpu] = 20'000;  // more than is guaranteed
  CHECK(guarantee_after_idling(queue).amounts[kDimCpu] == 15'000);
}

TEST_CASE("by halves it comes down to what is used and no lower") {
  QueueState queue = with_guarantee({{kDimGpu, 64'000}});
  queue.guarantee_use.idle_peak[kDimGpu] = 3500;
  std::vector<std::int64_t> left;
  for (int i = 0; i < 8; ++i) {
    queue.guaranteed = guarantee_after_idling(queue);
    left.push_back(queue.guaranteed.amounts[kDimGpu]);
  }
  CHECK(left == std::vector<std::int64_t>{33'500, 18'500, 10'500, 6500, 4500, 3500, 3500, 3500});
}

TEST_CASE("it wants more when it asks for more than is left, and only if something was lost") {
  QueueState queue = with_guarantee({{kDimGpu, 8000}});
  CHECK_FALSE(wants_more(queue, of(kDimGpu, 20'000)));
  queue.guaranteed.amounts[kDimGpu] = 4000;
  CHECK_FALSE(wants_more(queue, of(kDimGpu, 4000)));
  CHECK(wants_more(queue, of(kDimGpu, 4001)));
}

TEST_CASE("the guarantee changes a window after it became idle, or after it wanted more, and never for nothing") {
  QueueState queue = with_guarantee({{kDimGpu, 8000}});
  CHECK(guarantee_due(queue).at.is_never());
  queue.guarantee_use.idle_since = Timestamp{500};
  CHECK(guarantee_due(queue).at == Timestamp{1500});
  CHECK_FALSE(guarantee_due(queue).restored);
  queue.guaranteed.amounts[kDimGpu] = queue.guarantee_use.idle_peak[kDimGpu] = 4000;  // nothing to lose
  CHECK(guarantee_due(queue).at.is_never());
  queue.guarantee_use.wanting_since = Timestamp{700};
  CHECK(guarantee_due(queue).at == Timestamp{1700});
  CHECK(guarantee_due(queue).restored);
}

// --- a queue over time ---

struct Life {
  State state;
  std::uint64_t jobs = 0;
  std::uint64_t version = 0;

  explicit Life(std::int64_t guaranteed_gpus = 8) {
    configure(guaranteed_gpus);
    NodeRegistered node{NodeId(0), {}, 1};
    node.spec.name = "n1";
    node.spec.cpu_milli = 64'000;
    for (int g = 0; g < 8; ++g) node.spec.gpus.push_back({.uuid = "g" + std::to_string(g), .model = "H100"});
    apply(std::move(node));
  }

  void apply(Event event, std::int64_t at_s = 0) {
    state.apply({state.last_seq() + 1, std::max(state.now(), Timestamp{at_s * 1000}), std::move(event)});
  }
  void configure(std::int64_t guaranteed_gpus, std::int64_t at_s = 0) {
    ClusterConfig config = default_cluster_config();
    config.gpu_models = {{"H100", 1000, 81'920}};
    config.queues.clear();
    for (const char* path : {"owner", "owner/team"}) config.queues.emplace_back().path = path;
    config.queues.front().guaranteed.gpu_milli = guaranteed_gpus * kMilli;
    config.queues.front().guarantee_decay_s = 100;
    apply(ClusterConfigured{config, ++version, "op"}, at_s);
  }
  JobId submit(std::int32_t gpus, std::int64_t at_s) {
    JobSubmitted event;
    event.job = JobId(++jobs);
    event.spec.queue = "owner/team";
    event.spec.user = "ann";
    event.spec.groups.emplace_back().command = {"true"};
    event.spec.groups.front().request.gpus = gpus;
    apply(event, at_s);
    return event.job;
  }
  void start(JobId job, std::int64_t at_s) {
    AttemptStarted event;
    event.job = job;
    event.attempt = 1;
    event.placements.emplace_back().node = NodeId(0);
    const std::int32_t gpus = state.job(job)->spec.groups.front().request.gpus;
    for (std::int32_t g = 0; g < gpus; ++g) event.placements.front().gpus.push_back(static_cast<std::uint8_t>(g));
    event.placements.front().gpu_milli = static_cast<std::int32_t>(kMilli);
    event.within = 7;
    apply(event, at_s);
  }
  void cancel(JobId job, std::int64_t at_s) {
    apply(JobCancelRequested{job, "ann"}, at_s);
    apply(JobFinished{job, Outcome::kCancelled, 0, {}}, at_s);
  }
  const GuaranteeUse& use() const { return state.queue_at("owner")->guarantee_use; }
  std::int64_t due_s() const {
    return state.next_guarantee_change().is_never() ? -1 : state.next_guarantee_change().ms / 1000;
  }
};

TEST_CASE("what waits below counts as asked for, as what runs there does, and both only once") {
  Life life;
  CHECK(life.due_s() == 100);
  const JobId job = life.submit(5, 40);
  CHECK(life.due_s() == -1);  // jobs for five of eight GPUs are pending
  life.start(job, 50);
  CHECK(life.state.queue_at("owner")->demand.is_zero());
  CHECK(life.due_s() == -1);
  const JobId other = life.submit(1, 60);
  life.cancel(other, 70);
  CHECK(life.due_s() == -1);
}

TEST_CASE("idleness begins anew with every interruption, and remembers the most that was asked for in it") {
  Life life;
  const JobId busy = life.submit(6, 40);
  life.cancel(busy, 60);
  CHECK(life.due_s() == 160);
  const JobId some = life.submit(3, 80);
  life.cancel(some, 90);
  CHECK(life.due_s() == 160);
  CHECK(life.use().idle_peak[kDimGpu] == 3000);
  CHECK(guarantee_after_idling(*life.state.queue_at("owner")).amounts[kDimGpu] == 5000);  // 3 + 5 / 2
}

TEST_CASE("a change of the guarantee starts the next window, and a new configuration gives it back") {
  Life life;
  life.apply(GuaranteeChanged{"owner", gpus(8), gpus(4), false}, 100);
  CHECK(life.due_s() == 200);
  life.submit(5, 150);
  CHECK(life.due_s() == 250);  // the load is above the remaining guarantee
  life.configure(8, 160);      // the guarantee itself is unchanged
  CHECK(life.state.queue_at("owner")->guaranteed.amounts[kDimGpu] == 4000);
  CHECK(life.due_s() == 250);
  life.configure(9, 170);
  CHECK(life.state.queue_at("owner")->guaranteed.amounts[kDimGpu] == 9000);
  CHECK(life.due_s() == -1);
}

TEST_CASE("what was noted of use is in a checkpoint") {
  Life life;
  const JobId some = life.submit(3, 80);
  life.cancel(some, 90);
  auto loaded = State::load(life.state.save());
  REQUIRE(loaded);
  CHECK(loaded->next_guarantee_change() == life.state.next_guarantee_change());
  CHECK(loaded->queue_at("owner")->guarantee_use.idle_peak == life.use().idle_peak);
}

}  // namespace
}  // namespace berth::state
