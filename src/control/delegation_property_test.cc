// Property: whatever delegated admins change, and however they are refused, nothing outside the queues below their own
// node changes, guarantees keep within those above them and ceilings below those above them, also when leases end; and
// nobody grants more than its own role. The rules are checked here as docs/roles.md has them, and not by the code that
// refuses. 5,000 edits; 50,000 with BERTH_LONG.

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "control/hand_driven_fleet.h"
#include "control/queue_change.h"
#include "policy/authorize.h"
#include "support/random_rounds.h"

namespace berth::control {
namespace {

using policy::Subject;
using policy::Verb;

std::int64_t edits() { return random_rounds(5'000, 50'000); }

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

bool strictly_below(const std::string& path, const std::string& top) {
  return top.empty() || path.starts_with(top + "/");
}

constexpr const char* kKeys[] = {"guaranteed.gpus",
                                 "guaranteed.cpus",
                                 "guaranteed.gpus.H100",
                                 "max.gpus",
                                 "max.cpus",
                                 "lending_limit.gpus",
                                 "weight",
                                 "max_jobs_per_user",
                                 "eviction.grace",
                                 "eviction.min_runtime",
                                 "eviction.evictions_per_hour"};
constexpr const char* kNested[] = {"guaranteed.gpus", "guaranteed.cpus", "guaranteed.gpus.H100"};
constexpr const char* kCeilings[] = {"max.gpus", "max.cpus"};

// Two orgs of two teams of two projects, with guarantees and ceilings at most levels.
ClusterConfig tree() {
  ClusterConfig config = default_cluster_config();
  config.gpu_models = {{"H100", 1000, 81'920}};
  config.queues.clear();
  config.scheduling.default_grace_s = 120;
  const auto add = [&](const std::string& path, std::int64_t gpus, std::int64_t ceiling) {
    QueueConfig queue = HandDrivenFleet::queue(path, gpus);
    queue.guaranteed.cpu_milli = gpus * 10'000;
    queue.guaranteed.model_gpu_milli = {{"H100", gpus * 500}};
    if (ceiling > 0) queue.max.gpu_milli = ceiling * kMilli;
    config.queues.push_back(queue);
  };
  for (const std::string org : {"x", "y"}) {
    add(org, 100, 200);
    for (const std::string team : {"/a", "/b"}) {
      add(org + team, 40, team == "/a" ? 150 : 0);
      for (const std::string project : {"/p", "/q"}) add(org + team + project, 15, project == "/p" ? 60 : 0);
    }
  }
  return config;
}

class DelegatedEdits {
 public:
  explicit DelegatedEdits(std::uint64_t seed) : random_(seed) {
    ClusterConfig config = tree();
    config.roles = {{"user:root", Role::kAdmin, ""},     {"user:xa", Role::kOrgAdmin, "x/a"},
                    {"user:xlead", Role::kLead, "x/b"},  {"user:xo", Role::kOrgAdmin, "x"},
                    {"user:yb", Role::kOrgAdmin, "y/b"}, {"user:yo", Role::kOrgAdmin, "y"},
                    {"user:yview", Role::kViewer, "y/a"}};
    fleet_.command(ApplyConfig{config, "berth serve"});
    names_ = {"user:xa", "user:xlead", "user:xo", "user:yb", "user:yo", "user:yview", "user:new"};
  }

  void step() {
    if (random_.below(10) == 0) {
      fleet_.pass(static_cast<std::int64_t>(random_.below(4000)));
    } else if (random_.below(8) == 0) {
      bind();
    } else {
      edit();
    }
    check_tree();
  }

  int accepted = 0, refused = 0, denied = 0, bound = 0;

 private:
  HandDrivenFleet fleet_;
  Random random_;
  std::vector<std::string> names_;

  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[random_.below(all.size())];
  }

  Subject subject() {
    Subject subject{.name = one_of(names_)};
    subject.roles = policy::roles_of(fleet_.state.bindings(), subject.name);
    return subject;
  }

  std::string queue() { return one_of(fleet_.state.config().queues).path; }

  LimitSetting setting() {
    LimitSetting setting;
    setting.key = kKeys[random_.below(std::size(kKeys))];
    const bool large =
        setting.key.starts_with("guaranteed") || setting.key.starts_with("max.") || setting.key.starts_with("lending");
    setting.amount = static_cast<std::int64_t>(random_.below(large ? 60 : 200)) * (large ? 1000 : 1);
    if (setting.key.find("cpus") != std::string::npos) setting.amount *= 10;
    const auto how = random_.below(8);
    if (how < 4) {
      setting.how = LimitSetting::How::kBy;
      setting.amount = setting.amount / 4 * (random_.below(2) == 0 ? 1 : -1);
    } else if (how == 7) {
      setting.how = LimitSetting::How::kUnset;
    }
    return setting;
  }

  // As the route does it: authorized at the queue above, and then decided by the state.
  void edit() {
    const Subject who = subject();
    const std::string path = queue();
    const ClusterConfig before = fleet_.state.config();
    if (!policy::authorize(who, Verb::kChangeQueue, {parent(path)}).allowed) {
      ++denied;
      return;
    }
    Result<Reply> reply = Reply();
    if (random_.below(5) == 0) {
      reply = fleet_.try_command(UndoQueueChange{path, who.name, {}});
    } else {
      SetQueue command{path, {setting()}, Timestamp::never(), who.name, false, {}};
      if (random_.below(3) == 0) command.settings.push_back(setting());
      if (random_.below(3) == 0) command.until = fleet_.now + static_cast<std::int64_t>(1 + random_.below(9'000'000));
      reply = fleet_.try_command(command);
    }
    ++(reply ? accepted : refused);
    if (!reply) REQUIRE(fleet_.state.config() == before);
    check_outside(who, before);
    REQUIRE(fleet_.state.file_config().queues == tree().queues);
  }

  // Nothing changes but strictly below a node at which the subject is an org-admin.
  void check_outside(const Subject& who, const ClusterConfig& before) {
    const ClusterConfig& after = fleet_.state.config();
    REQUIRE_EQ(before.queues.size(), after.queues.size());
    for (std::size_t q = 0; q < after.queues.size(); ++q) {
      const bool own = std::any_of(who.roles.begin(), who.roles.end(), [&](const RoleBinding& role) {
        return role.role == Role::kOrgAdmin && strictly_below(after.queues[q].path, role.queue);
      });
      if (own) continue;
      CAPTURE(after.queues[q].path);
      REQUIRE(before.queues[q] == after.queues[q]);
    }
    ClusterConfig rest = after;
    rest.queues = before.queues;
    REQUIRE(rest == before);
  }

  void check_tree() {
    const ClusterConfig& config = fleet_.state.config();
    for (const char* key : kNested) {
      std::map<std::string, std::int64_t> sums;
      for (const QueueConfig& queue : config.queues) sums[parent(queue.path)] += limit_of(queue, key).value_or(0);
      for (const QueueConfig& queue : config.queues) {
        CAPTURE(queue.path);
        CAPTURE(key);
        REQUIRE(sums[queue.path] <= limit_of(queue, key).value_or(0));
      }
    }
    for (const char* key : kCeilings) {
      const std::string floor = "guaranteed." + std::string(key).substr(4);
      for (const QueueConfig& queue : config.queues) {
        for (std::string at = queue.path; !at.empty(); at = parent(at)) {
          const auto most = limit_of(*queue_named(config, at), key);
          if (!most) continue;
          CAPTURE(queue.path);
          CAPTURE(at);
          REQUIRE(limit_of(queue, key).value_or(0) <= *most);
          REQUIRE(limit_of(queue, floor).value_or(0) <= *most);
        }
      }
    }
    if (random_.below(50) == 0) {
      REQUIRE_FALSE(fleet_.state.audit());
      const auto loaded = state::State::load(fleet_.state.save());
      REQUIRE(loaded.has_value());
      REQUIRE_EQ(loaded->digest(), fleet_.state.digest());
    }
  }

  void bind() {
    const Subject who = subject();
    const RoleBinding binding{one_of(names_), static_cast<Role>(random_.below(8)),
                              random_.below(9) == 0 ? "" : queue()};
    const auto before = fleet_.state.granted();
    const bool grants = random_.below(2) == 0;
    if (!policy::may_bind(who, binding)) {
      ++denied;
      return;
    }
    // What the page of roles says of it: at or below a node of its own, and no role of the cluster's.
    const bool allowed = std::any_of(who.roles.begin(), who.roles.end(), [&](const RoleBinding& own) {
      if (binding.queue != own.queue && !strictly_below(binding.queue, own.queue)) return false;
      if (own.role == Role::kLead) return binding.role == Role::kMember || binding.role == Role::kViewer;
      return own.role == Role::kOrgAdmin && binding.role != Role::kOperator && binding.role != Role::kAdmin;
    });
    REQUIRE(allowed);
    if (fleet_.try_command(BindRole{binding, grants, who.name})) ++bound;
    auto changed = fleet_.state.granted();
    changed.erase(binding);
    auto others = before;
    others.erase(binding);
    REQUIRE(changed == others);
  }
};

}  // namespace

TEST_CASE("delegated edits break no guarantee, ceiling or role outside the queues of their editor") {
  const std::int64_t wanted = edits();
  DelegatedEdits run(33);
  int tried = 0;
  while (run.accepted + run.refused < wanted) {
    run.step();
    REQUIRE(++tried < 20 * wanted);
  }
  MESSAGE(run.accepted << " accepted, " << run.refused << " refused, " << run.denied << " denied, " << run.bound
                       << " roles");
  CHECK(run.accepted > wanted / 10);
  CHECK(run.refused > wanted / 10);
  CHECK(run.denied > wanted / 10);
  CHECK(run.bound > wanted / 200);
}

}  // namespace berth::control
