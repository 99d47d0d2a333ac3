// The published fragmentation experiment (Weng et al., USENIX ATC'23, section 6) with berth's reproduction of its
// policies: per list and policy the GPU allocation at 100 % and 130 % arrived and the fragmentation at 130 %, as the
// mean over the seeds, beside the published mean. docs/lab/fragmentation.md explains the table.
//
//   openb_placement --traces DIR [--list NAME]... [--policy NAME]... [--seeds A-B] [--tie-orders K] [--resample]

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "openb_input.h"
#include "sim/placement/policy.h"

namespace {

using namespace berth;
using sim::placement::Fleet;
using sim::placement::PodShape;

struct Cell {
  double sum = 0.0;
  int samples = 0;
  void add(double value) { sum += value, ++samples; }
  double mean() const { return samples == 0 ? 0.0 : sum / samples; }
};

struct Outcome {
  Cell allocation_at_100, allocation_at_130, fragmentation_at_130;
  int refused = 0;
};

struct Spread {
  std::vector<double> values;
  double mean() const {
    double sum = 0.0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  double deviation() const {
    double sum = 0.0;
    for (const double value : values) sum += (value - mean()) * (value - mean());
    return std::sqrt(sum / static_cast<double>(values.size()));
  }
};

std::int64_t capacity_of(const Fleet& fleet) {
  std::int64_t sum = 0;
  for (const auto& node : fleet) sum += std::int64_t{node.gpus} * sim::placement::kWholeGpu;
  return sum;
}

// One run: every pod is tried once and dropped if it fits nowhere; a sample is taken after each arrival.
class Run {
 public:
  Run(Fleet fleet, const std::vector<sim::placement::TypicalPod>& mix, sim::placement::PlacementScore& policy)
      : fleet_(std::move(fleet)), mix_(mix), policy_(policy), capacity_(capacity_of(fleet_)) {
    for (const auto& node : fleet_) node_fragmentation_.push_back(sim::placement::fragmentation(node, mix_));
    for (const double value : node_fragmentation_) fragmentation_ += value;
  }

  Outcome play(const std::vector<PodShape>& pods, const std::vector<std::size_t>& order) {
    for (const auto index : order) {
      arrive(pods[index]);
      sample();
    }
    return outcome_;
  }

 private:
  void arrive(const PodShape& pod) {
    arrived_ += pod.total_milli();
    const auto choice = policy_.pick(fleet_, pod);
    if (!choice) {
      ++outcome_.refused;
      return;
    }
    auto& node = fleet_[choice->node];
    sim::placement::place(node, pod, choice->gpus);
    policy_.on_change(choice->node);
    allocated_ += pod.total_milli();
    fragmentation_ -= node_fragmentation_[choice->node];
    node_fragmentation_[choice->node] = sim::placement::fragmentation(node, mix_);
    fragmentation_ += node_fragmentation_[choice->node];
  }

  void sample() {
    const auto percent = (arrived_ * 200 + capacity_) / (2 * capacity_);
    const double allocation = 100.0 * static_cast<double>(allocated_) / static_cast<double>(capacity_);
    if (percent == 100) outcome_.allocation_at_100.add(allocation);
    if (percent != 130) return;
    outcome_.allocation_at_130.add(allocation);
    outcome_.fragmentation_at_130.add(100.0 * fragmentation_ / static_cast<double>(capacity_));
  }

  Fleet fleet_;
  const std::vector<sim::placement::TypicalPod>& mix_;
  sim::placement::PlacementScore& policy_;
  std::int64_t capacity_;
  std::int64_t arrived_ = 0;
  std::int64_t allocated_ = 0;
  std::vector<double> node_fragmentation_;
  double fragmentation_ = 0.0;
  Outcome outcome_;
};

struct Options {
  std::string traces;
  std::vector<std::string> lists{std::begin(bench::kOpenbLists), std::end(bench::kOpenbLists)};
  std::vector<std::string> policies;
  std::uint64_t first_seed = 42;
  std::uint64_t last_seed = 51;
  bool resample = false;         // draw the arrivals here instead of taking the published ones
  std::uint64_t tie_orders = 1;  // how many orders of the nodes, for ties, each seed is run with
};

struct Published {
  std::map<std::pair<std::string, std::string>, double> at_100, at_130, fragmentation_at_130;
};

struct Row {
  Spread at_100, at_130, fragmentation_at_130, seconds, refused;
};

// Arrivals drawn as the published ones are, from other random numbers: the list shuffled, then pods with replacement
// until the requests reach 130 % of the capacity.
std::vector<std::size_t> drawn_arrivals(const std::vector<PodShape>& pods, std::int64_t capacity, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::size_t> order(pods.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  std::int64_t asked = 0;
  std::size_t kept = 0;
  for (; kept < order.size() && asked * 100 < capacity * 130; ++kept) asked += pods[order[kept]].total_milli();
  order.resize(kept);
  for (; asked * 100 < capacity * 130; asked += pods[order.back()].total_milli()) {
    order.push_back(random.below(pods.size()));
  }
  return order;
}

std::map<std::uint64_t, std::vector<std::size_t>> arrivals_of(const std::string& list, const bench::OpenbInput& input,
                                                              const bench::OpenbPods& pods, const Fleet& fleet,
                                                              const Options& options) {
  if (!options.resample) return input.arrivals(list, pods);
  std::map<std::uint64_t, std::vector<std::size_t>> by_seed;
  for (auto seed = options.first_seed; seed <= options.last_seed; ++seed) {
    by_seed[seed] = drawn_arrivals(pods.shapes, capacity_of(fleet), seed);
  }
  return by_seed;
}

Row run_seeds(const std::string& list, const std::string& policy_name, const Options& options) {
  bench::OpenbInput input(options.traces);
  const Fleet fleet = input.gpu_nodes();
  const auto pods = input.pods(list);
  const auto mix = sim::placement::typical_pods(pods.shapes);
  Row row;
  for (const auto& [seed, order] : arrivals_of(list, input, pods, fleet, options)) {
    if (seed < options.first_seed || seed > options.last_seed) continue;
    for (std::uint64_t tie_order = 0; tie_order < options.tie_orders; ++tie_order) {
      auto policy = sim::placement::make_policy(policy_name, {fleet.size(), mix, seed + 1000 * tie_order});
      const auto start = std::chrono::steady_clock::now();
      const auto outcome = Run(fleet, mix, **policy).play(pods.shapes, order);
      row.seconds.values.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      row.at_100.values.push_back(outcome.allocation_at_100.mean());
      row.at_130.values.push_back(outcome.allocation_at_130.mean());
      row.fragmentation_at_130.values.push_back(outcome.fragmentation_at_130.mean());
      row.refused.values.push_back(outcome.refused);
    }
  }
  return row;
}

void print_row(const std::string& list, const std::string& policy, const Row& row, const Published& published) {
  const auto beside = [&](const auto& table, const Spread& ours) {
    auto found = table.find({list, policy});
    if (found == table.end()) found = table.find({list, "FGD"});  // berth stands beside the published FGD
    if (found == table.end())
      std::printf(" %6.2f±%.2f       -      -", ours.mean(), ours.deviation());
    else
      std::printf(" %6.2f±%.2f %7.2f %+6.2f", ours.mean(), ours.deviation(), found->second,
                  ours.mean() - found->second);
  };
  std::printf("%-10s %-13s", list.c_str(), policy.c_str());
  beside(published.at_100, row.at_100);
  std::printf(" |");
  beside(published.at_130, row.at_130);
  std::printf(" |");
  beside(published.fragmentation_at_130, row.fragmentation_at_130);
  std::printf(" | %6.0f %6.2f\n", row.refused.mean(), row.seconds.mean());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (const auto name : sim::placement::policy_names()) options.policies.emplace_back(name);
  std::string seeds;
  CLI::App app{"The published openb placement experiment"};
  app.add_option("--traces", options.traces, "Folder with the openb traces")->required();
  app.add_option("--list", options.lists, "Pod lists (default: all nine)");
  app.add_option("--policy", options.policies, "Policies (default: all)");
  app.add_option("--seeds", seeds, "First and last seed, e.g. 42-51");
  app.add_option("--tie-orders", options.tie_orders, "Orders of the nodes to average over, for ties between scores");
  app.add_flag("--resample", options.resample, "Draw arrivals from the lists anew, with these seeds");
  CLI11_PARSE(app, argc, argv);
  if (const auto dash = seeds.find('-'); dash != std::string::npos) {
    options.first_seed = std::stoull(seeds.substr(0, dash));
    options.last_seed = std::stoull(seeds.substr(dash + 1));
  }

  bench::OpenbInput input(options.traces);
  const Published published{input.published("allo", 100), input.published("allo", 130), input.published("frag", 130)};
  std::printf(
      "list       policy        |  allocated at 100 %% arrived | at 130 %% arrived          | fragmented at 130 %%    "
      "    | refused  s/run\n                          ours        publ.   diff |   ours        publ.   diff |   ours "
      "       publ.   diff\n");
  for (const auto& list : options.lists) {
    for (const auto& policy : options.policies) {
      if (!sim::placement::make_policy(policy, {})) {
        std::fprintf(stderr, "no policy \"%s\"\n", policy.c_str());
        return 2;
      }
      print_row(list, policy, run_seeds(list, policy, options), published);
    }
  }
  return 0;
}
