#include "sim/simulate/policy_spec.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "model/document/renamed.h"
#include "model/name.h"
#include "sim/placement/policy.h"
#include "sim/trace/bytes.h"
#include "sim/trace/fields.h"
#include "sim/trace/plain_yaml.h"

namespace berth::sim {
namespace {

constexpr std::size_t kMostPolicyBytes = 64 * 1024;
constexpr std::int64_t kMostSeconds = 366LL * 86'400;

// Tiresias gives no fixed thresholds for three levels; these are one GPU-hour and ten.
const std::vector<std::int64_t> kDefaultThresholds = {3600, 36'000};

PolicySpec listed(std::string name, PolicyOrder order, std::string score, bool head_blocks) {
  PolicySpec spec;
  spec.name = std::move(name);
  spec.order = order;
  spec.score = std::move(score);
  spec.head_blocks = head_blocks;
  if (order == PolicyOrder::kAttainedService) spec.thresholds_gpu_s = kDefaultThresholds;
  return spec;
}

// "FirstFit, Random, ..."
std::string score_names() {
  std::string names = "FirstFit";
  for (const auto name : placement::policy_names()) names.append(", ").append(name);
  return names;
}

bool is_score(const std::string& name) {
  const auto known = placement::policy_names();
  return name == "FirstFit" || std::find(known.begin(), known.end(), name) != known.end();
}

struct OrderName {
  std::string_view word;
  PolicyOrder order;
};
constexpr OrderName kOrders[] = {{"berth", PolicyOrder::kBerth},
                                 {"fifo", PolicyOrder::kFifo},
                                 {"shortest", PolicyOrder::kShortest},
                                 {"attained-service", PolicyOrder::kAttainedService}};

// Reads one map whose every key must be known. The first fault stays.
class PolicyReader {
 public:
  PolicyReader(std::string file, const YAML::Node& root) : file_(std::move(file)), root_(root) {}

  Result<PolicySpec> read() {
    if (!root_.IsMap()) say("a policy is a map, with name and order at least; one file holds one policy");
    check_keys(root_, "the policy",
               {"name", "order", "score", "backfill", "preemption", "attained_service", "consolidation", "energy"});
    spec_.name = text("name").value_or("");
    if (root_.IsMap() && !root_["name"]) say("name is missing: reports tell policies apart by it");
    if (!well_formed_name(spec_.name)) say("name: " + std::string(kNameRule));
    read_order();
    read_score();
    read_backfill();
    read_preemption();
    read_attained_service();
    read_consolidation();
    read_energy();
    if (fault_) return invalid(file_ + ": " + *fault_);
    return spec_;
  }

 private:
  void say(const std::string& what) {
    if (!fault_) fault_ = what;
  }
  bool is_berth() const { return spec_.order == PolicyOrder::kBerth; }

  void say_unknown(const std::string& where, const std::string& key, const std::set<std::string>& known) {
    const std::vector<std::string_view> words(known.begin(), known.end());
    const auto now = document::renamed(key, words);
    say(where + (now ? ": \"" + key + "\" is now \"" + std::string(*now) : " has an unknown key \"" + key) + "\"");
  }
  void check_keys(const YAML::Node& map, const std::string& where, const std::set<std::string>& known) {
    if (!map.IsMap()) return say(where + " is not a map");
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      if (!known.contains(key)) say_unknown(where, key, known);
      if (!seen.insert(key).second) say(where + " has the key \"" + key + "\" twice");
    }
  }
  std::optional<std::string> text(const std::string& key) {
    if (!root_.IsMap() || !root_[key]) return std::nullopt;
    if (root_[key].IsScalar()) return root_[key].Scalar();
    say(key + " is not a plain value");
    return std::nullopt;
  }
  std::optional<std::int64_t> whole(const YAML::Node& node, const std::string& key, std::int64_t most) {
    const auto value = node.IsScalar() ? parse_whole(node.Scalar()) : std::nullopt;
    if (!value || *value > most) say(key + " is not a whole number up to " + std::to_string(most));
    return value;
  }
  bool truth(const YAML::Node& node, const std::string& key) {
    const std::string word = node.IsScalar() ? node.Scalar() : "";
    if (word != "true" && word != "false") say(key + " is neither true nor false");
    return word == "true";
  }

  void read_order() {
    const std::string word = text("order").value_or("");
    for (const OrderName& one : kOrders) {
      if (word != one.word) continue;
      spec_.order = one.order;
      return;
    }
    say(word.empty() ? "order is missing: fifo, shortest, attained-service or berth"
                     : "order is none of fifo, shortest, attained-service, berth");
  }
  void read_score() {
    const auto word = text("score");
    if (is_berth()) {
      if (word && *word != "berth" && *word != "BestFit")
        say("score: with order berth the product scores nodes itself; only berth and BestFit are possible");
      if (word) spec_.scheduling.score = *word == "BestFit" ? NodeScore::kBestFit : NodeScore::kFragmentation;
      spec_.score.clear();
    } else if (word) {
      spec_.score = *word;
      if (!is_score(*word)) say("score: there is none called \"" + *word + "\"; there are " + score_names());
    }
  }
  void read_backfill() {
    if (is_berth() && root_.IsMap() && root_["backfill"] && root_["backfill"].IsMap())
      return read_reservations(root_["backfill"]);
    const auto word = text("backfill");
    if (is_berth()) {
      if (word) read_reservations(*word);
    } else if (spec_.order == PolicyOrder::kAttainedService) {
      spec_.head_blocks = false;
      if (word.value_or("any") != "any") say("backfill: attained service always lets go first whoever fits");
    } else {
      spec_.head_blocks = word.value_or("none") == "none";
      if (word && *word != "none" && *word != "any") say("backfill is neither none nor any");
    }
  }
  void read_reservations(const YAML::Node& map) {
    check_keys(map, "backfill", {"backfill_reservations", "backfill_after_s"});
    if (const auto& most = map["backfill_reservations"]) read_reservations(most.IsScalar() ? most.Scalar() : "?");
    if (map["backfill_after_s"]) {
      spec_.scheduling.backfill_after_s =
          whole(map["backfill_after_s"], "backfill.backfill_after_s", kMostSeconds).value_or(0);
    }
  }
  // Without reservations any job that fits may start first; the product has no line whose head blocks all jobs.
  void read_reservations(const std::string& word) {
    constexpr std::int64_t kMostReservations = 1000;
    const auto holds = word == "any" ? std::optional<std::int64_t>(0) : parse_whole(word);
    if (!holds || *holds > kMostReservations) {
      say("backfill: with order berth it is how many blocked jobs hold nodes, up to " +
          std::to_string(kMostReservations) + ", or any, which is 0: whoever fits may go first");
    }
    spec_.scheduling.backfill_reservations = holds.value_or(0);
  }
  void read_preemption() {
    const bool stated = root_.IsMap() && root_["preemption"];
    const bool none = stated && root_["preemption"].IsScalar() && root_["preemption"].Scalar() == "none";
    if (is_berth()) {
      if (none) spec_.scheduling.reclaim = spec_.scheduling.preempt = false;
      if (stated && !none) read_berth_preemption(root_["preemption"]);
    } else if (spec_.order == PolicyOrder::kAttainedService) {
      spec_.thresholds_gpu_s = kDefaultThresholds;
      if (none) say("preemption: attained service without it is fifo; use that");
      if (stated && !none) read_thresholds(root_["preemption"], "preemption");
    } else if (stated && !none) {
      say("preemption: with orders fifo and shortest only none is possible; attained-service and berth stop jobs");
    }
  }
  void read_berth_preemption(const YAML::Node& map) {
    check_keys(map, "preemption", {"reclaim", "preempt", "min_runtime_s", "victims"});
    if (!map.IsMap()) return;
    if (map["reclaim"]) spec_.scheduling.reclaim = truth(map["reclaim"], "preemption.reclaim");
    if (map["preempt"]) spec_.scheduling.preempt = truth(map["preempt"], "preemption.preempt");
    if (map["min_runtime_s"]) {
      spec_.scheduling.min_runtime_s =
          whole(map["min_runtime_s"], "preemption.min_runtime_s", kMostSeconds).value_or(0);
    }
    if (!map["victims"]) return;
    const std::string word = map["victims"].IsScalar() ? map["victims"].Scalar() : "";
    if (word != "least-lost" && word != "newest") say("preemption.victims is neither least-lost nor newest");
    spec_.newest_victims = word == "newest";
  }
  void read_consolidation() {
    if (!root_.IsMap() || !root_["consolidation"]) return;
    const YAML::Node& map = root_["consolidation"];
    if (map.IsScalar() && map.Scalar() == "none") return;
    if (!is_berth() || !map.IsMap())
      return say("consolidation is none or, with order berth alone, which moves jobs, {consolidations_per_hour: 100}");
    check_keys(map, "consolidation", {"consolidations_per_hour"});
    if (!map["consolidations_per_hour"]) return say("consolidation says nothing: {consolidations_per_hour: 100}");
    spec_.scheduling.consolidations_per_hour =
        whole(map["consolidations_per_hour"], "consolidation.consolidations_per_hour", kMostEvictionsPerHour)
            .value_or(0);
  }
  void read_energy() {
    if (!root_.IsMap() || !root_["energy"]) return;
    const YAML::Node& map = root_["energy"];
    check_keys(map, "energy", {"prefer", "watts"});
    if (!map.IsMap()) return;
    if (map["prefer"]) {
      if (!is_berth()) return say("energy.prefer: only order berth chooses by energy; others measure it");
      spec_.scheduling.energy = truth(map["prefer"], "energy.prefer");
    }
    if (!map["watts"] || !map["watts"].IsMap() || map["watts"].size() == 0)
      return say("energy.watts states no model: {T4: {watts: 70, idle_watts: 10}}");
    for (const auto& entry : map["watts"]) {
      GpuModelConfig& model = spec_.watts.emplace_back();
      model.name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      const std::string where = "energy.watts." + model.name.substr(0, 80);
      check_keys(entry.second, where, {"watts", "idle_watts"});
      if (!entry.second.IsMap() || !entry.second["watts"]) return say(where + ".watts is missing");
      model.watts = whole(entry.second["watts"], where + ".watts", kMostWatts).value_or(0);
      if (entry.second["idle_watts"])
        model.idle_watts = whole(entry.second["idle_watts"], where + ".idle_watts", kMostWatts).value_or(0);
      if (model.watts < std::max<std::int64_t>(1, model.idle_watts))
        say(where + ".watts is 1 or more, and no less than idle_watts");
      const auto same = [&](const GpuModelConfig& other) { return other.name == model.name; };
      if (std::count_if(spec_.watts.begin(), spec_.watts.end(), same) > 1) say(where + " stands there twice");
    }
  }
  // The product's own attained service, in every queue of the workload.
  void read_attained_service() {
    if (!root_.IsMap() || !root_["attained_service"]) return;
    if (!is_berth()) return say("attained_service: it is how the product's queues order; only order berth has it");
    spec_.thresholds_gpu_s.clear();
    read_thresholds(root_["attained_service"], "attained_service");
    spec_.attained_service = AttainedServiceConfig{spec_.thresholds_gpu_s, spec_.promote_after_s};
  }
  void read_thresholds(const YAML::Node& map, const std::string& where) {
    check_keys(map, where, {"thresholds_gpu_s", "promote_after_s"});
    if (map.IsMap() && map["promote_after_s"]) {
      spec_.promote_after_s = whole(map["promote_after_s"], where + ".promote_after_s", kMostSeconds).value_or(0);
    }
    if (!map.IsMap() || !map["thresholds_gpu_s"] || !map["thresholds_gpu_s"].IsSequence()) {
      return say(where + ".thresholds_gpu_s is not a list");
    }
    spec_.thresholds_gpu_s.clear();
    for (const auto& one : map["thresholds_gpu_s"]) {
      spec_.thresholds_gpu_s.push_back(whole(one, where + ".thresholds_gpu_s", 1'000'000'000'000).value_or(0));
    }
    const auto& thresholds = spec_.thresholds_gpu_s;
    const auto no_rise = std::adjacent_find(thresholds.begin(), thresholds.end(), std::greater_equal<>());
    if (thresholds.empty() || no_rise != thresholds.end()) {
      say(where + ".thresholds_gpu_s must rise");
    }
  }

  std::string file_;
  const YAML::Node root_;
  PolicySpec spec_;
  std::optional<std::string> fault_;
};

std::vector<PolicySpec> make_built_in() {
  std::vector<PolicySpec> all;
  all.push_back(listed("berth", PolicyOrder::kBerth, "", false));
  all.push_back(listed("berth-best-fit", PolicyOrder::kBerth, "", false));
  all.back().scheduling.score = NodeScore::kBestFit;
  all.push_back(listed("fifo", PolicyOrder::kFifo, "FirstFit", true));
  all.push_back(listed("fifo-bestfit", PolicyOrder::kFifo, "BestFit", false));
  all.push_back(listed("sjf-oracle", PolicyOrder::kShortest, "FirstFit", true));
  all.push_back(listed("las", PolicyOrder::kAttainedService, "BestFit", false));
  for (const auto score : placement::policy_names()) {
    // `berth` is the product's whole cycle; its placement score alone, under the plain line, has another name.
    const std::string name = score == "berth" ? "berth-frag" : std::string(score);
    all.push_back(listed(name, PolicyOrder::kFifo, std::string(score), false));
  }
  return all;
}

}  // namespace

const std::vector<PolicySpec>& built_in_policies() {
  static const std::vector<PolicySpec> kAll = make_built_in();
  return kAll;
}

Result<PolicySpec> read_policy_text(const std::string& name, std::string_view text) {
  YamlLimits limits;
  limits.max_bytes = kMostPolicyBytes;
  limits.max_nodes = 1000;
  const auto root = load_plain_yaml(name, text, limits);
  if (!root) return root.error();
  return PolicyReader(name, *root).read();
}

Result<PolicySpec> find_policy(const std::string& name_or_file) {
  std::string known;
  for (const PolicySpec& spec : built_in_policies()) {
    if (spec.name == name_or_file) return spec;
    known += (known.empty() ? "" : ", ") + spec.name;
  }
  if (std::filesystem::is_directory(name_or_file)) return invalid(name_or_file + " is a folder, not a policy file");
  if (!std::filesystem::exists(name_or_file)) {
    return not_found("there is no policy and no file called \"" + name_or_file + "\"; built in are " + known);
  }
  const auto text = read_file(name_or_file, kMostPolicyBytes);
  if (!text) return text.error();
  return read_policy_text(name_or_file, *text);
}

}  // namespace berth::sim
