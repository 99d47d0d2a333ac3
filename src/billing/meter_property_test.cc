// Compares the meter with a simple integrator that has no accounts, hours or series. It keeps the world after each
// event and adds up, for a window, what each GPU was in the meantime.

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "billing/meter.h"

namespace berth::billing {
namespace {

struct NaiveGpu {
  std::string model;
  bool healthy = true;
};
struct NaiveNode {
  std::vector<NaiveGpu> gpus;
  NodeStatus status = NodeStatus::kReady;
};
struct NaiveCharge {
  bool guaranteed = false;
  std::vector<TaskPlacement> placements;
};
struct NaiveJob {
  std::string queue;
  std::string user;
  std::vector<NaiveCharge> charges;
};
struct World {
  std::vector<NaiveNode> nodes;
  std::map<std::uint64_t, NaiveJob> jobs;

  std::int64_t used(std::size_t node, std::size_t gpu) const {
    std::int64_t milli = 0;
    for (const auto& [id, job] : jobs) {
      for (const NaiveCharge& charge : job.charges) {
        for (const TaskPlacement& task : charge.placements) {
          for (const std::uint8_t index : task.gpus)
            milli += task.node.index() == node && index == gpu ? task.gpu_milli : 0;
        }
      }
    }
    return milli;
  }
};

struct Naive {
  std::map<Account, Int128> used;
  std::map<std::string, Int128> idle, down, capacity;

  void add(const World& world, std::int64_t ms) {
    for (const auto& [id, job] : world.jobs) {
      for (const NaiveCharge& charge : job.charges) {
        for (const TaskPlacement& task : charge.placements) {
          for (const std::uint8_t gpu : task.gpus) {
            const std::string& model = world.nodes[task.node.index()].gpus[gpu].model;
            used[{job.queue, job.user, model, !charge.guaranteed}] += Int128{task.gpu_milli} * ms;
          }
        }
      }
    }
    for (std::size_t n = 0; n < world.nodes.size(); ++n) {
      for (std::size_t g = 0; g < world.nodes[n].gpus.size(); ++g) {
        const NaiveGpu& gpu = world.nodes[n].gpus[g];
        const bool up = gpu.healthy && world.nodes[n].status == NodeStatus::kReady;
        capacity[gpu.model] += Int128{1000} * ms;
        (up ? idle : down)[gpu.model] += Int128{1000 - world.used(n, g)} * ms;
      }
    }
  }
};

// Makes random events that the control plane could have written.
class Story {
 public:
  explicit Story(std::uint64_t seed) : random_(seed) {}

  void step() {
    now_ = now_ + (random_.chance(30) ? random_.between(0, 9 * kHourMs) : random_.between(0, kHourMs / 3));
    switch (random_.below(12)) {
      case 0:
        return register_node();
      case 1:
        return change_status();
      case 2:
        return change_health();
      case 3:
      case 4:
        return submit();
      case 5:
      case 6:
      case 7:
        return start_or_grow();
      case 8:
        return promote();
      default:
        return end();
    }
  }

  const Meter& meter() const { return meter_; }
  void reload() {
    auto loaded = Meter::load(meter_.save());
    REQUIRE(loaded.has_value());
    CHECK_EQ(loaded->save(), meter_.save());
    meter_ = std::move(*loaded);
  }
  Timestamp now() const { return now_; }

  Naive integrate(Timestamp from, Timestamp to) const {
    Naive sum;
    for (std::size_t i = 0; i < past_.size(); ++i) {
      const Timestamp begin = std::max(past_[i].first, from);
      const Timestamp end = std::min(i + 1 < past_.size() ? past_[i + 1].first : Timestamp::never(), to);
      if (begin < end) sum.add(past_[i].second, end - begin);
    }
    return sum;
  }

 private:
  void emit(Event event) {
    meter_.apply({++seq_, now_, std::move(event)});
    past_.emplace_back(now_, world_);
    CHECK_EQ(meter_.check().value_or(""), "");
  }

  void register_node() {
    const std::size_t n = random_.below(4);
    if (n > world_.nodes.size()) return;
    NodeRegistered event;
    event.node = NodeId(static_cast<std::uint32_t>(n));
    std::size_t gpus = random_.below(4) + 1;
    if (n == world_.nodes.size()) world_.nodes.emplace_back();
    NaiveNode& node = world_.nodes[n];
    for (std::size_t g = gpus; g < node.gpus.size(); ++g) {
      if (world_.used(n, g) > 0) gpus = std::max(gpus, g + 1);  // a GPU that is used does not vanish
    }
    node = {};
    for (std::size_t g = 0; g < gpus; ++g) {
      Gpu gpu;
      gpu.model = random_.chance(500) ? "H100" : "A100";
      gpu.healthy = random_.chance(900);
      node.gpus.push_back({gpu.model, gpu.healthy});
      event.spec.gpus.push_back(gpu);
    }
    emit(event);
  }
  void change_status() {
    if (world_.nodes.empty()) return;
    const std::size_t n = random_.below(world_.nodes.size());
    world_.nodes[n].status = static_cast<NodeStatus>(random_.below(3));
    emit(NodeStatusChanged{NodeId(static_cast<std::uint32_t>(n)), world_.nodes[n].status, ""});
  }
  void change_health() {
    if (world_.nodes.empty()) return;
    const std::size_t n = random_.below(world_.nodes.size());
    const std::size_t g = random_.below(world_.nodes[n].gpus.size());
    world_.nodes[n].gpus[g].healthy = random_.chance(500);
    emit(GpuHealthChanged{NodeId(static_cast<std::uint32_t>(n)), static_cast<std::uint8_t>(g),
                          world_.nodes[n].gpus[g].healthy, ""});
  }
  void submit() {
    JobSubmitted event;
    event.job = JobId(++last_job_);
    event.spec.queue = random_.chance(500) ? "a" : "b/c";
    event.spec.user = random_.chance(500) ? "ann" : "bob";
    world_.jobs[last_job_] = {event.spec.queue, event.spec.user, {}};
    emit(event);
  }
  std::uint64_t any_job() {
    auto job = world_.jobs.begin();
    std::advance(job, static_cast<std::ptrdiff_t>(random_.below(world_.jobs.size())));
    return job->first;
  }

  std::vector<TaskPlacement> free_places() {
    std::vector<TaskPlacement> places;
    for (std::size_t n = 0; n < world_.nodes.size(); ++n) {
      TaskPlacement place;
      place.node = NodeId(static_cast<std::uint32_t>(n));
      place.gpu_milli = random_.chance(700) ? 1000 : static_cast<std::int32_t>(random_.between(1, 600));
      for (std::size_t g = 0; g < world_.nodes[n].gpus.size(); ++g) {
        const bool fits = world_.used(n, g) + place.gpu_milli <= 1000 && random_.chance(400);
        if (fits && (place.gpu_milli == 1000 || place.gpus.empty())) place.gpus.push_back(static_cast<std::uint8_t>(g));
      }
      if (!place.gpus.empty()) places.push_back(place);
    }
    return places;
  }
  void start_or_grow() {
    if (world_.jobs.empty()) return;
    const auto places = free_places();
    const std::uint64_t id = any_job();
    NaiveJob& job = world_.jobs[id];
    const bool guaranteed = random_.chance(500);
    const bool starts = job.charges.empty();
    job.charges.push_back({guaranteed, places});
    if (starts) {
      emit(AttemptStarted{JobId(id), 1, places, 0, 0, guaranteed});
    } else {
      emit(AttemptGrown{JobId(id), 1, places, 0, guaranteed});
    }
  }
  void promote() {
    if (world_.jobs.empty()) return;
    const std::uint64_t id = any_job();
    NaiveJob& job = world_.jobs[id];
    if (job.charges.empty()) return;
    const std::size_t charge = random_.below(job.charges.size());
    job.charges[charge].guaranteed = true;
    emit(ChargePromoted{JobId(id), 1, static_cast<std::uint32_t>(charge), 1, true});
  }
  void end() {
    if (world_.jobs.empty()) return;
    const std::uint64_t id = any_job();
    if (!world_.jobs[id].charges.empty()) {
      world_.jobs[id].charges.clear();
      emit(AttemptEnded{JobId(id), 1, Outcome::kSucceeded, 0, ""});
    }
    if (random_.chance(500)) return;
    world_.jobs.erase(id);
    emit(JobFinished{JobId(id), Outcome::kSucceeded, 0, ""});
  }

  Random random_;
  Meter meter_;
  World world_;
  std::vector<std::pair<Timestamp, World>> past_;
  Timestamp now_{kHourMs / 7};
  Seq seq_ = 0;
  std::uint64_t last_job_ = 0;
};

void check_window(const Story& story, Timestamp from, Timestamp to) {
  const Usage usage = story.meter().usage(from, to);
  Naive naive = story.integrate(usage.from, usage.to);
  for (const UsageRow& row : usage.rows) {
    CHECK(Int128{row.gpu_milli_ms} == naive.used[row.account]);
    naive.used.erase(row.account);
  }
  for (const auto& [account, amount] : naive.used) CHECK(amount == 0);  // no row is missing
  for (const FleetRow& row : usage.fleet) {
    CHECK(Int128{row.capacity} == naive.capacity[row.gpu_model]);
    CHECK(Int128{row.idle} == naive.idle[row.gpu_model]);
    CHECK(Int128{row.down} == naive.down[row.gpu_model]);
    CHECK_EQ(row.used_guaranteed + row.used_borrowed + row.idle + row.down, row.capacity);
  }
}

}  // namespace

TEST_CASE("the meter agrees with a naive integrator on any window, and its accounts add up at every instant") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    Story story(seed);
    for (int i = 0; i < 400; ++i) {
      story.step();
      if (i % 100 == 50) story.reload();
      if (i % 20 == 0) CHECK_EQ(story.meter().check_from_scratch().value_or(""), "");
    }
    Random random(seed);
    check_window(story, {0}, story.now());
    for (int window = 0; window < 30; ++window) {
      const Timestamp from{random.between(0, story.now().ms)};
      check_window(story, from, {random.between(from.ms, story.now().ms + kHourMs)});
      const Timestamp recent{random.between(story.now().ms - 20 * kHourMs, story.now().ms)};
      const Usage usage = story.meter().usage(recent, story.now());
      CHECK_EQ(usage.from, recent);  // recent windows are exact to the millisecond
      check_window(story, recent, story.now());
    }
  }
}

}  // namespace berth::billing
