// Tiny random fleets against the exact solver: which jobs start, which are evicted, and what would help a pending job.

#include <map>
#include <set>

#include "base/random.h"
#include "explain/find_remedy.h"
#include "explain/pending_reason.h"
#include "sched/place/place.h"
#include "state/estimate.h"
#include "support/exact_solver.h"
#include "support/fleet_fixture.h"
#include "support/random_rounds.h"

namespace berth {
namespace {

using explain::Remedy;
using explain::RemedyKind;
using sched::exactly_can_start;
using sched::Imagined;

std::int64_t exact_instances() { return random_rounds(40'000, 1'000'000); }

void set_gpus(ResourceAmounts& amounts, std::int64_t gpus) { amounts.gpu_milli = gpus * kMilli; }

struct TinyFleet : FleetFixture {
  explicit TinyFleet(std::uint64_t seed)
      : random(seed),
        sockets(seed),
        bursts(seed + 5'000'000'000),
        agreed(seed + 7'000'000'000),
        knives(seed + 6'000'000'000),
        doors(seed + 8'000'000'000),
        zones(seed + 9'000'000'000),
        cut(knives.chance(150)) {
    command(ApplyConfig{random_config(), "op"});
    const std::int64_t nodes = random.between(1, 6);
    for (std::int64_t i = 0; i < nodes; ++i) {
      command(RegisterNode{random_node("n" + std::to_string(i))});
      if (random.chance(100)) command(CordonNode{"n" + std::to_string(i), true, false, "op"});
    }
    const std::int64_t jobs = random.between(2, 8);
    for (std::int64_t i = 0; i < jobs; ++i) {
      now = now + 1000;
      ids.push_back(submit(random_job()));
      if (random.chance(600)) reconcile_cycles();
    }
  }

  // Runs cycles until nothing more is decided. Keeps the decisions of the last cycle that evicted.
  void reconcile_cycles() {
    for (int i = 0; i < 10; ++i) {
      Plan plan = cycle();
      if (plan.decisions.empty()) return;
      check_evictions(plan);
    }
  }

  ClusterConfig random_config() {
    std::vector<QueueConfig> queues;
    const bool nested = random.chance(400);
    if (nested) queues.push_back(queue("org"));
    for (const char* leaf : {"a", "b", "c"}) {
      QueueConfig one = queue((nested && *leaf != 'c' ? "org/" : "") + std::string(leaf));
      if (random.chance(500)) set_gpus(one.guaranteed, random.between(0, 3));
      if (random.chance(400)) set_gpus(one.max, random.between(3, 8));
      if (random.chance(150)) one.max.cpu_milli = random.between(4, 20) * 1000;
      if (random.chance(100)) one.max.model_gpu_milli = {{"H100", random.between(0, 4) * kMilli}};
      if (one.guaranteed.gpu_milli && random.chance(300)) set_gpus(one.lending_limit, random.between(0, 2));
      one.weight = random.between(0, 3);
      leaves.push_back(one.path);
      queues.push_back(std::move(one));
    }
    if (nested) {
      set_gpus(queues.front().guaranteed, 6);
      if (random.chance(500)) set_gpus(queues.front().max, random.between(6, 10));
    }
    for (QueueConfig& one : queues) {
      const auto model = one.max.model_gpu_milli;
      if (!model.empty() && one.guaranteed.gpu_milli) one.max.model_gpu_milli.clear();
    }
    ClusterConfig config = FleetFixture::config(std::move(queues));
    if (random.chance(500)) config.topology_levels = {"block", "rack"};
    Random apart(random.below(1'000'000));
    if (apart.chance(200)) {
      for (QueueConfig& one : config.queues) {
        if (apart.chance(400)) one.trust_domain = apart.chance(500) ? "red" : "blue";
      }
    }
    if (apart.chance(200)) {
      const bool levels = !config.topology_levels.empty();
      config.pools = {{"default",
                       {},
                       {},
                       false,
                       !levels || apart.chance(300) ? "node"
                       : apart.chance(500)          ? "rack"
                                                    : "block"}};
    }
    if (config.pools.front().trust_domain_isolation.empty() && bursts.chance(250)) {
      config.pools = {{"default", {}, {}, false, ""}, {"rented", {}, {}, true, ""}};
      for (QueueConfig& one : config.queues) {
        const bool free = !one.guaranteed.gpu_milli && !one.max.gpu_milli && one.max.model_gpu_milli.empty();
        if (nested || !free || !bursts.chance(300)) continue;
        one.guaranteed.model_gpu_milli = {{"H100", bursts.between(1, 3) * kMilli}};
        one.lending_limit.model_gpu_milli = {{"H100", bursts.between(0, 1) * kMilli}};
      }
    }
    config.scheduling.min_runtime_s = random.chance(300) ? 5 : 0;
    if (cut) config.gpu_models.front().mig = "a100-40gb";
    config.scheduling.backfill_reservations = 0;  // the solver knows no backfill reservations
    choose_terms(config, agreed);
    return config;
  }

  // The solver need not know which jobs the terms of eviction protect: it judges whether the victims are enough, and
  // whether all are needed.
  static void choose_terms(ClusterConfig& config, Random& agreed) {
    if (!agreed.chance(250)) return;
    for (QueueConfig& one : config.queues) {
      if (agreed.chance(300)) one.eviction.min_runtime_s = agreed.between(0, 5);
      if (agreed.chance(300)) one.eviction.evictions_per_hour = agreed.between(1, 3);
    }
  }

  NodeSpec random_node(const std::string& name) {
    NodeSpec spec = node(name, static_cast<std::int32_t>(random.between(0, 4)), random.chance(700) ? "H100" : "A100");
    spec.cpu_milli = random.between(4, 12) * 1000;
    if (random.chance(900)) spec.topology.push_back(random.chance(500) ? "b0" : "b1");
    if (spec.topology.empty() || random.chance(500))
      spec.labels.emplace_back("rack", random.chance(500) ? "r0" : "r1");
    else
      spec.topology.push_back(random.chance(500) ? "r0" : "r1");
    if (random.chance(150)) spec.taints.push_back({"spot", ""});
    for (Gpu& gpu : spec.gpus) gpu.numa = static_cast<std::int32_t>(sockets.below(2));
    if (sockets.chance(500)) spec.labels.emplace_back("disk", "fast");
    if (zones.chance(600)) spec.labels.emplace_back("zone", std::to_string(zones.between(1, 3)));
    for (Taint& taint : spec.taints) {
      if (zones.chance(300)) taint.value = "a";
      if (zones.chance(300)) taint.effect = TaintEffect::kNoExecute;
    }
    if (state.has_burst_pools() && bursts.chance(300)) spec.pool = "rented";
    spec.containers = sockets.chance(500);
    spec.cuts_gpus = cut;
    return spec;
  }

  bool any_containers() const {
    return std::any_of(state.nodes().begin(), state.nodes().end(), [](const auto& one) { return one.spec.containers; });
  }

  NodeRule random_rule() {
    const std::vector<NodeExpression> some = {
        {"zone", NodeOperator::kIn, {"1", "2"}, false}, {"zone", NodeOperator::kNotIn, {"1"}, false},
        {"zone", NodeOperator::kGreater, {"1"}, false}, {"zone", NodeOperator::kLess, {"3"}, false},
        {"disk", NodeOperator::kExists, {}, false},     {"disk", NodeOperator::kDoesNotExist, {}, false},
        {"", NodeOperator::kNotIn, {"n0", "n3"}, true}};
    NodeRule rule{{{zones.pick(some)}}};
    if (zones.chance(300)) rule.terms.front().push_back(zones.pick(some));
    if (zones.chance(300)) rule.terms.push_back({zones.pick(some)});
    return rule;
  }

  std::string random_toleration() {
    return zones.pick(
        std::vector<std::string>{"*", "*:NoExecute", "spot:NoSchedule", "spot=a", "spot=", "spot=a:NoExecute"});
  }

  JobSpec random_job() {
    JobSpec spec = job(leaves[random.below(leaves.size())], static_cast<std::int32_t>(random.between(1, 4)),
                       static_cast<std::int32_t>(random.between(0, 3)));
    TaskGroup& group = spec.groups.front();
    group.request.cpu_milli = random.between(1, 4) * 1000;
    if (group.request.gpus == 1 && random.chance(300)) group.request.gpu_milli = 250 * (now.ms / 1000 % 3 != 0 ? 2 : 1);
    if (random.chance(200)) group.min_count = static_cast<std::int32_t>(random.between(1, group.count));
    if (random.chance(200)) group.request.gpu_models = {random.chance(500) ? "H100" : "A100"};
    if (random.chance(200)) group.tolerations = {"spot"};
    if (random.chance(100)) {
      TaskGroup second = group;
      second.name = "second";
      second.request.gpus = static_cast<std::int32_t>(sockets.between(1, 3));
      second.request.gpu_milli = kMilli;
      second.count = second.min_count = 1;
      spec.groups.push_back(second);
    }
    spec.exclusive = random.chance(40);
    if (cut) choose_instances(spec);
    const bool levels = !state.config().topology_levels.empty();
    const auto level = [&] { return levels && random.chance(700) ? random.chance(500) ? "rack" : "block" : "node"; };
    if (random.chance(250)) spec.topology.required = level();
    if (random.chance(100) && spec.topology.required != "node")
      spec.topology.preferred = levels && spec.topology.required != "rack" ? "rack" : "node";
    choose_for_affinity(spec);
    for (TaskGroup& one : spec.groups) {
      if (sockets.chance(250)) one.numa = static_cast<NumaPolicy>(sockets.below(4));
      if (sockets.chance(100)) one.node_selector = {{"disk", "fast"}};
      if (zones.chance(150)) one.node_rules = {random_rule()};
      if (zones.chance(150)) one.tolerations = {random_toleration()};
      if (any_containers() && sockets.chance(150)) one.image = "llama";
    }
    spec.priority_class = random.chance(300) ? "production" : "training";
    if (random.chance(300)) spec.time_limit_s = random.between(10, 100);
    return spec;
  }

  // Only for jobs of one group: how instances of several profiles limit each other is not tried in every way.
  void choose_instances(JobSpec& spec) {
    for (TaskGroup& group : spec.groups) {
      if (group.request.gpu_models == std::vector<std::string>{"A100"}) group.request.gpu_models.clear();
    }
    if (!knives.chance(500)) return;
    TaskRequest& request = spec.groups.front().request;
    request.gpus = 0;
    request.gpu_milli = static_cast<std::int32_t>(kMilli);
    request.gpu_models.clear();
    const std::vector<std::string> profiles{"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"};
    request.mig_profile = knives.pick(profiles);
    spec.exclusive = false;
  }

  void choose_for_affinity(JobSpec& spec) {
    const bool levels = !state.config().topology_levels.empty();
    const auto level = [&]() -> std::string {
      return !levels || random.chance(400) ? "node" : random.chance(600) ? "rack" : "block";
    };
    if (levels && spec.topology == TopologyConstraint() && random.chance(200)) {
      if (random.chance(300)) spec.topology.required = "block";
      for (TaskGroup& group : spec.groups) group.topology.required = level();
    }
    if (doors.chance(150))
      spec.ports = doors.chance(700) ? std::vector<std::int32_t>{8080} : std::vector<std::int32_t>{8080, 9090};
    if (!random.chance(300)) return;
    const auto app = [&] { return Labels{{"app", random.chance(500) ? "a" : "b"}}; };
    if (random.chance(700)) spec.labels = app();
    if (random.chance(250)) spec.affinity.push_back({app(), level(), random.chance(700)});
    if (random.chance(350)) spec.anti_affinity.push_back({app(), level(), random.chance(700)});
  }

  // Returns true for jobs for which placement finds a solution whenever there is one, on so few nodes. It does not in
  // three cases. Several models under a max of one model are judged model by model. A mix of burst pools and others
  // within a lending limit is not searched. Whole nodes are charged only after they are chosen.
  bool judged_exactly(const JobSpec& spec) const {
    const auto& queues = state.config().queues;
    const auto lends_less = [](const QueueConfig& one) {
      return one.lending_limit.gpu_milli || !one.lending_limit.model_gpu_milli.empty();
    };
    const bool lending = std::any_of(queues.begin(), queues.end(), lends_less);
    const bool one_task = spec.groups.size() == 1 && spec.groups.front().count == 1;
    if (one_task) return !spec.exclusive;
    if (lending && state.has_burst_pools()) return false;
    const bool several_models = std::any_of(spec.groups.begin(), spec.groups.end(),
                                            [](const auto& one) { return one.request.gpu_models.size() != 1; });
    const bool model_limits =
        std::any_of(queues.begin(), queues.end(), [](const auto& one) { return !one.max.model_gpu_milli.empty(); });
    return !spec.exclusive && !(several_models && model_limits);
  }
  // The same if other jobs leave: for a job that must be near others, more victims need not be better.
  bool judged_without_others(const JobSpec& spec) const { return judged_exactly(spec) && !needs_others(spec); }
  // Returns the fleet without other jobs and cordons, with unlimited quota.
  Imagined imagine_empty(const state::JobState& asks) const {
    Imagined empty{asks, state.running(), {}, {}, {}, {}};
    for (const state::NodeState& one : state.nodes()) empty.uncordoned.insert(one.id);
    for (const state::QueueState& one : state.queues()) {
      for (std::size_t dim = 0; dim < kDims; ++dim)
        empty.max[{one.id, dim}] = empty.lending[{one.id, dim}] = kUnlimited;
    }
    return empty;
  }
  static bool needs_others(const JobSpec& spec) {
    return std::any_of(spec.affinity.begin(), spec.affinity.end(),
                       [](const AffinityTerm& term) { return term.required; });
  }

  void check_evictions(const Plan& plan) {
    Imagined all;
    for (const Decision& decision : plan.decisions) {
      if (const auto* evict = std::get_if<EvictDecision>(&decision)) imagine_gone(all, *evict);
    }
    // An eviction decision counts only its own victims: those of earlier decisions are still there when it is made.
    for (const Decision& decision : plan.decisions) {
      const auto* evict = std::get_if<EvictDecision>(&decision);
      if (evict == nullptr) continue;
      ++evictions;
      Imagined imagined = all;
      imagined.job = *state.job(evict->preemptor);
      // A nomination ignores lending limits: siblings may lend more when the victims have left.
      Imagined nominated = imagined;
      for (const auto& queue : state.queues()) {
        if (queue.limits_lending) nominated.lending[{queue.id, kDimGpu}] = kUnlimited;
      }
      // Jobs that it must be near may leave for other jobs, or a job like it may start elsewhere meanwhile.
      const bool fits = needs_others(imagined.job.spec) || exactly_can_start(state, nominated);
      if (!fits) fault("victims leave and the claimant still does not fit");
      if (!judged_without_others(imagined.job.spec)) continue;
      imagined = {imagined.job, {}, {}, {}, {}, {}, false};
      imagine_gone(imagined, *evict);
      // A preemptor takes places that back guarantees, though with other victims some might be in burst pools.
      imagined.beside_burst = !state.burst_amounts_of(imagined.job.spec, evict->placements);
      keep_to_models(imagined.job.spec, *evict);
      check_least(*evict, imagined);
    }
  }

  static void imagine_gone(Imagined& imagined, const EvictDecision& evict) {
    for (std::size_t i = 0; i < evict.victims.size(); ++i) {
      if (evict.keeps[i] == 0)
        imagined.gone.insert(evict.victims[i]);
      else
        imagined.kept[evict.victims[i]] = evict.keeps[i];
    }
  }

  bool guarantees_models() const {
    const auto& queues = state.config().queues;
    return std::any_of(queues.begin(), queues.end(),
                       [](const auto& one) { return !one.guaranteed.model_gpu_milli.empty(); });
  }

  static bool reclaims(const EvictDecision& evict) {
    return std::find(evict.causes.begin(), evict.causes.end(), StopCause::kReclaim) != evict.causes.end();
  }

  // A reclaim by the guarantee of a model takes that model. With fewer victims another model might do, which the
  // guarantee does not cover. The solver knows what fits, and not which jobs may be evicted.
  void keep_to_models(JobSpec& spec, const EvictDecision& evict) const {
    if (!guarantees_models() || !reclaims(evict) || spec.groups.size() > 1) return;
    std::set<std::string> models;
    for (const TaskPlacement& one : evict.placements) {
      for (const std::uint8_t g : one.gpus) models.insert(state.node(one.node).spec.gpus[g].model);
    }
    spec.groups.front().request.gpu_models.assign(models.begin(), models.end());
  }

  // Returns true if the victim's leaving may put the preemptor within the guarantee of a model, and so allow the
  // reclaim from others.
  bool backs_reclaim(const EvictDecision& evict, std::size_t victim) const {
    return guarantees_models() && evict.causes[victim] == StopCause::kPreempt && reclaims(evict);
  }

  // Every victim is needed, and no gang could keep one more task.
  void check_least(const EvictDecision& evict, Imagined imagined) {
    for (std::size_t i = 0; i < evict.victims.size(); ++i) {
      const JobId spared = evict.victims[i];
      if (evict.keeps[i] == 0) {
        imagined.gone.erase(spared);
        if (!backs_reclaim(evict, i) && exactly_can_start(state, imagined))
          fault("a victim that could have been spared");
        imagined.gone.insert(spared);
      } else {
        ++shrinks;
        ++imagined.kept[spared];
        if (exactly_can_start(state, imagined)) fault("a gang that could have kept one task more");
        --imagined.kept[spared];
      }
    }
  }

  // Returns the known end of the job; never() if no time limit, estimate or stop says it. A job that runs longer than
  // its estimate still ends at some time.
  Timestamp known_end(const state::JobState& job) const {
    const bool known = job.attempt->stopping() || job.spec.time_limit_s > 0 || job.spec.estimate_s > 0;
    return known ? state::expected_end(state, job, now) : Timestamp::never();
  }

  Imagined imagine(JobId id, const Remedy& change) const {
    Imagined imagined{explain::changed(*state.job(id), change), {}, {}, {}, {}, {}, false};
    imagined.gone.insert(change.victims.begin(), change.victims.end());
    for (const explain::Shrink& shrink : change.shrinks) imagined.kept[shrink.job] = shrink.keep;
    imagined.uncordoned.insert(change.nodes.begin(), change.nodes.end());
    for (const explain::Raise& raise : change.raises) {
      (raise.lending ? imagined.lending : imagined.max)[{raise.queue, raise.dim}] = raise.to;
    }
    if (change.kind == RemedyKind::kWait) {
      for (const JobId other : state.running()) {
        const state::AttemptState& attempt = *state.job(other)->attempt;
        if (known_end(*state.job(other)) <= change.at)
          imagined.gone.insert(other);
        else if (attempt.shrinking() && std::max(now, attempt.stop->deadline) <= change.at)
          imagined.kept[other] = attempt.stop->keep;
      }
    }
    return imagined;
  }

  void fault(const std::string& what) { faults.push_back(what); }

  Random random;
  Random sockets;  // for NUMA domains and policies
  Random bursts;   // for burst pools
  Random agreed;   // for terms of eviction
  Random knives;   // for A100s cut into MIG instances
  Random doors;    // for ports
  Random zones;    // for node rules and effects of taints
  bool cut = false;
  std::vector<std::string> leaves;
  std::vector<JobId> ids;
  std::vector<std::string> faults;
  std::int64_t evictions = 0;
  std::int64_t shrinks = 0;
};

// Returns the remedies with one part left out or one unit less. None of them may be enough.
std::vector<Remedy> weaker(const Remedy& change) {
  std::vector<Remedy> all;
  const auto without = [&](auto parts) {
    for (std::size_t i = 0; i < (change.*parts).size(); ++i) {
      Remedy less = change;
      (less.*parts).erase((less.*parts).begin() + static_cast<std::ptrdiff_t>(i));
      all.push_back(less);
    }
  };
  without(&Remedy::victims);
  without(&Remedy::nodes);
  without(&Remedy::raises);
  without(&Remedy::shrinks);
  for (std::size_t i = 0; i < change.shrinks.size(); ++i) {
    all.push_back(change);
    if (++all.back().shrinks[i].keep == all.back().shrinks[i].tasks) all.pop_back();  // the same as without it
  }
  for (std::size_t i = 0; i < change.raises.size(); ++i) {
    all.push_back(change);
    --all.back().raises[i].to;
  }
  const bool counts = change.kind == RemedyKind::kTasks || change.kind == RemedyKind::kCpus ||
                      change.kind == RemedyKind::kMemory || change.kind == RemedyKind::kGpus;
  if (counts) {
    const std::int64_t unit = change.kind == RemedyKind::kGpus && change.from % kMilli == 0 ? kMilli : 1;
    all.push_back(change);
    all.back().to += unit;
  }
  if (change.kind == RemedyKind::kWait) {
    all.push_back(change);
    all.back().at.ms -= 1;
  }
  if (change.kind == RemedyKind::kProfile) {
    const MigGeometry& geometry = *mig_geometry("a100-40gb");
    for (const MigProfile& profile : geometry.profiles) {
      const std::int64_t milli = geometry.milli_of(profile);
      if (milli <= change.to || milli >= change.from) continue;
      all.push_back(change);
      all.back().name = profile.name;
      all.back().to = milli;
    }
  }
  return all;
}

bool lacks_a_fitting_fleet(ReasonCode code) { return is_room_reason(code) || code == ReasonCode::kNeverFits; }

}  // namespace

TEST_CASE("after a cycle nobody waits who could start, and no victim leaves in vain") {
  std::int64_t waiting = 0;
  std::int64_t missed = 0;
  std::int64_t told_never = 0;
  std::int64_t told_to_wait = 0;  // jobs told to wait that never fit
  std::int64_t shrinks = 0;
  std::int64_t evictions = 0;
  for (int i = 0; i < exact_instances(); ++i) {
    TinyFleet fleet(static_cast<std::uint64_t>(i));
    fleet.reconcile_cycles();
    evictions += fleet.evictions;
    shrinks += fleet.shrinks;
    for (const JobId id : fleet.ids) {
      const state::JobState* job = fleet.state.job(id);
      if (job == nullptr || job->attempt || job->nomination) continue;
      ++waiting;
      const bool could = exactly_can_start(fleet.state, {*job, {}, {}, {}, {}, {}, false});
      sched::SearchStats work;
      const auto why = explain::pending_reason(fleet.state, *job, fleet.now, work);
      const bool refused = why.has_value();
      if (refused && fleet.state.nominated().empty() && lacks_a_fitting_fleet(why->code)) {
        const bool never = is_never(why->code);
        const bool would = exactly_can_start(fleet.state, fleet.imagine_empty(*job));
        if (never && would) fleet.fault("a job that never starts would, if all left");
        told_never += never;
        told_to_wait += !never && !would && !fleet.needs_others(job->spec);
      }
      if (!refused && !could) fleet.fault("placement found what is not there");
      if (could && fleet.judged_exactly(job->spec)) fleet.fault("a job waits that could start");
      missed += could && !fleet.judged_exactly(job->spec);
    }
    if (fleet.state.audit()) fleet.fault(*fleet.state.audit());
    for (const std::string& fault : fleet.faults) FAIL_CHECK("instance " << i << ": " << fault);
    if (!fleet.faults.empty()) break;
  }
  CHECK(shrinks > 0);
  CHECK(told_never > exact_instances() / 10);
  CHECK(told_to_wait * 2500 < told_never);
  MESSAGE(waiting << " waiting jobs (" << told_never << " for ever, " << told_to_wait
                  << " told to wait though they never fit), " << shrinks << " shrunk gangs and " << evictions
                  << " evictions judged; under ceilings of several models, or of whole "
                  << "nodes, " << missed << " waited though a place existed");
  CHECK(waiting > exact_instances());
  CHECK(evictions > exact_instances() / 100);
}

TEST_CASE("what no fleet like this could ever hold is told so, whatever runs") {
  std::int64_t told_never = 0;
  std::int64_t of_several_groups = 0;
  for (int i = 0; i < exact_instances() / 2; ++i) {
    TinyFleet fleet(static_cast<std::uint64_t>(i) + 3'000'000'000);
    fleet.reconcile_cycles();
    if (!fleet.state.nominated().empty()) continue;
    sched::SearchStats work;
    std::map<JobId, ReasonCode> told;
    for (const JobId id : fleet.ids) {
      const state::JobState& job = *fleet.state.job(id);
      if (job.attempt) continue;
      if (const auto why = explain::pending_reason(fleet.state, job, fleet.now, work)) told[id] = why->code;
    }
    const std::set<JobId> running = fleet.state.running();
    for (const JobId id : running) fleet.exit(id, 0);
    for (const auto& [id, code] : told) {
      const state::JobState& job = *fleet.state.job(id);
      const bool never = is_never(sched::place(fleet.state, job, sched::kAllModels, work).why.code);
      told_never += never;
      of_several_groups += never && job.spec.groups.size() > 1;
      if (never && is_room_reason(code) && !fleet.needs_others(job.spec))
        fleet.fault("job " + std::to_string(id.value()) + " was told to wait");
    }
    for (const std::string& fault : fleet.faults) FAIL_CHECK("instance " << i << ": " << fault);
    if (!fleet.faults.empty()) break;
  }
  MESSAGE(told_never << " jobs for ever, " << of_several_groups << " of them of several groups");
  CHECK(of_several_groups > exact_instances() / 1000);
}

TEST_CASE("a change that is told starts the job, and with any part of it left out it does not start") {
  std::map<RemedyKind, std::int64_t> told;
  for (int i = 0; i < exact_instances() / 2; ++i) {
    TinyFleet fleet(static_cast<std::uint64_t>(i) + 1'000'000'000);
    fleet.reconcile_cycles();
    const std::uint64_t before = fleet.state.digest();
    for (const JobId id : fleet.ids) {
      const state::JobState* job = fleet.state.job(id);
      if (job == nullptr || job->attempt || job->nomination) continue;
      const auto changes = explain::smallest_remedies(fleet.state, id, fleet.now);
      const explain::Viewer everything = explain::Viewer::sees_all();
      bool evicting = false;
      for (const Remedy& change : changes) {
        ++told[change.kind];
        evicting = evicting || change.kind == RemedyKind::kEvict;
        const std::string text = std::string(name_of(change.kind)) + ": " +
                                 explain::remedy_text({fleet.state, everything, fleet.now}, *job, change);
        if (!exactly_can_start(fleet.state, fleet.imagine(id, change))) fleet.fault("does not start if " + text);
        for (const Remedy& less : weaker(change)) {
          if (explain::starts_with(fleet.state, id, fleet.now, less)) fleet.fault("less is enough than " + text);
          const bool exact =
              fleet.judged_without_others(job->spec) && fleet.judged_without_others(explain::changed(*job, less).spec);
          if (exact && exactly_can_start(fleet.state, fleet.imagine(id, less)))
            fleet.fault("exactly, less is enough than " + text);
        }
      }
      Remedy everybody;
      for (const JobId other : fleet.state.running()) {
        if (fleet.state.job(other)->phase == JobPhase::kRunning) everybody.victims.push_back(other);
      }
      const bool could = exactly_can_start(fleet.state, fleet.imagine(id, everybody));
      if (could && !evicting && changes.size() < 8 && fleet.judged_without_others(job->spec))
        fleet.fault("some set of victims would help, and none is told");
    }
    if (fleet.state.digest() != before) fleet.fault("the question has changed the state");
    for (const std::string& fault : fleet.faults) FAIL_CHECK("instance " << i << ": " << fault);
    if (!fleet.faults.empty()) break;
  }
  for (const RemedyKind kind :
       {RemedyKind::kWait, RemedyKind::kUncordon, RemedyKind::kModel, RemedyKind::kTolerate, RemedyKind::kShareNodes,
        RemedyKind::kGpus, RemedyKind::kTasks, RemedyKind::kCpus, RemedyKind::kQuota, RemedyKind::kEvict,
        RemedyKind::kGroupLevel, RemedyKind::kNoTerm, RemedyKind::kNuma, RemedyKind::kNoImage, RemedyKind::kProfile,
        RemedyKind::kOtherPorts, RemedyKind::kNoRule}) {
    CHECK_MESSAGE(told[kind] > 0, "no instance has told of " << name_of(kind));
  }
}

}  // namespace berth
