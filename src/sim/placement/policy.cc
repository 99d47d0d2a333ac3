#include "sim/placement/policy.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/random.h"
#include "sim/placement/berth_placement.h"
#include "sim/placement/published_scores.h"
#include "sim/placement/tie_order.h"

namespace berth::sim::placement {
namespace {

using ScoreFunction = std::function<Scored(const FleetNode&, const PodShape&)>;

// Scores every node once per shape and again only after the node changed.
class RememberedScore : public PlacementScore {
 public:
  RememberedScore(ScoreFunction score, const PolicySetup& setup) : score_(std::move(score)), version_(setup.nodes, 1) {
    order_ = tie_order(setup.nodes, setup.seed);
  }

  std::optional<Choice> pick(const Fleet& fleet, const PodShape& shape) override {
    const auto& row = current_row(fleet, shape);
    const auto best = best_of(row);
    if (!best) return std::nullopt;
    return Choice{*best, row[*best].scored.gpus};
  }

  void on_change(std::uint32_t node) override { ++version_[node]; }

 protected:
  struct Entry {
    std::uint32_t version = 0;
    bool feasible = false;
    Scored scored;
  };
  using Row = std::vector<Entry>;

  virtual std::optional<std::uint32_t> best_of(const Row& row) const {
    return highest(row, [](const Entry& entry) { return entry.scored.score; });
  }

  // The first node, in the order of this run, with the highest value.
  template <class Value>
  std::optional<std::uint32_t> highest(const Row& row, Value value_of) const {
    std::optional<std::uint32_t> best;
    std::int32_t best_value = 0;
    for (const auto node : order_) {
      if (!row[node].feasible) continue;
      const auto value = value_of(row[node]);
      if (best && value <= best_value) continue;
      best = node;
      best_value = value;
    }
    return best;
  }

 private:
  const Row& current_row(const Fleet& fleet, const PodShape& shape) {
    Row& row = rows_[shape];
    row.resize(version_.size());
    for (std::size_t node = 0; node < row.size(); ++node) {
      if (row[node].version == version_[node]) continue;
      row[node].version = version_[node];
      row[node].feasible = fits(fleet[node], shape);
      if (row[node].feasible) row[node].scored = score_(fleet[node], shape);
    }
    return row;
  }

  ScoreFunction score_;
  std::vector<std::uint32_t> version_;
  std::vector<std::uint32_t> order_;
  std::map<PodShape, Row> rows_;
};

// BestFit's scores are stretched to 0..100 over the feasible nodes, in integers, before the highest is taken.
class StretchedScore final : public RememberedScore {
 public:
  using RememberedScore::RememberedScore;

 private:
  std::optional<std::uint32_t> best_of(const Row& row) const override {
    std::int32_t low = std::numeric_limits<std::int32_t>::max();
    std::int32_t high = std::numeric_limits<std::int32_t>::min();
    for (const auto& entry : row) {
      if (!entry.feasible) continue;
      low = std::min(low, entry.scored.score);  // below 0 on nodes with more CPU than the paper's largest
      high = std::max(high, entry.scored.score);
    }
    const auto range = high < low ? 0 : high - low;
    return highest(row, [&](const Entry& entry) { return range <= 0 ? 0 : (entry.scored.score - low) * 100 / range; });
  }
};

class RandomPlacement final : public PlacementScore {
 public:
  explicit RandomPlacement(std::uint64_t seed) : random_(seed) {}

  std::optional<Choice> pick(const Fleet& fleet, const PodShape& shape) override {
    std::vector<std::uint32_t> feasible;
    for (std::size_t node = 0; node < fleet.size(); ++node) {
      if (fits(fleet[node], shape)) feasible.push_back(static_cast<std::uint32_t>(node));
    }
    if (feasible.empty()) return std::nullopt;
    const auto node = feasible[random_.below(feasible.size())];
    return Choice{node, random_gpus(fleet[node], shape)};
  }

  void on_change(std::uint32_t) override {}

 private:
  GpuList random_gpus(const FleetNode& node, const PodShape& shape) {
    std::vector<std::size_t> fitting;
    for (std::size_t gpu = 0; gpu < node.gpus; ++gpu) {
      if (shape.gpus > 0 && node.free[gpu] >= shape.milli) fitting.push_back(gpu);
    }
    GpuList list;
    for (std::int32_t taken = 0; taken < shape.gpus; ++taken) {
      const auto drawn = random_.below(fitting.size());
      list.add(fitting[drawn]);
      fitting.erase(fitting.begin() + static_cast<std::ptrdiff_t>(drawn));
    }
    return list;
  }

  Random random_;
};

using Policy = std::unique_ptr<PlacementScore>;
using Maker = Policy (*)(const PolicySetup&);

template <Scored (*score)(const FleetNode&, const PodShape&)>
Policy remembered(const PolicySetup& setup) {
  return std::make_unique<RememberedScore>(score, setup);
}

Policy fragmentation_descent(const PolicySetup& setup) {
  auto descent = std::make_shared<FragmentationDescent>(setup.mix);
  return std::make_unique<RememberedScore>(
      [descent](const FleetNode& node, const PodShape& shape) { return descent->score(node, shape); }, setup);
}

template <BerthPlacement::Knowledge knowledge>
Policy berth_score(const PolicySetup& setup) {
  return std::make_unique<BerthPlacement>(setup, knowledge);
}

constexpr std::pair<std::string_view, Maker> kPolicies[] = {
    {"Random", [](const PolicySetup& setup) -> Policy { return std::make_unique<RandomPlacement>(setup.seed); }},
    {"DotProd", remembered<score_dot_product>},
    {"GpuClustering", remembered<score_gpu_clustering>},
    {"GpuPacking", remembered<score_gpu_packing>},
    {"BestFit",
     [](const PolicySetup& setup) -> Policy { return std::make_unique<StretchedScore>(score_best_fit, setup); }},
    {"FGD", fragmentation_descent},
    {"berth", berth_score<BerthPlacement::Knowledge::kGiven>},
    {"berth-learned", berth_score<BerthPlacement::Knowledge::kLearned>},
};

}  // namespace

Result<std::unique_ptr<PlacementScore>> make_policy(std::string_view name, const PolicySetup& setup) {
  for (const auto& [known, make] : kPolicies) {
    if (known == name) return make(setup);
  }
  return not_found("no placement policy is called \"" + std::string(name) + "\"");
}

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const auto& policy : kPolicies) names.push_back(policy.first);
  return names;
}

}  // namespace berth::sim::placement
