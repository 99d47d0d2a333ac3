// The properties that the DRF paper proves (Ghodsi et al., NSDI'11, section 3 and appendix), checked on whole cycles.
//
// The paper has a flat set of users with divisible demands and no guarantees. So the tests use queues directly below
// the root without guarantees, one node with one GPU shared in thousandths, and for each user more equal tasks than
// could ever run. A capacity is 1000 parts of each resource, and a task takes 0 or 4 to 16 of them. One step of filling
// is at most kStep of a share. The last steps may leave a rest, which the bounds below allow:
//
//  - Until a job is refused, two dominant shares (over weight) differ by one step at most, because the smallest is
//    always served next.
//  - A user refused for a resource leaves less of it than its own task takes. Positive demands differ by a factor of 4
//    at most, so another user of that resource gets at most 4 further tasks: four steps.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "support/fleet_fixture.h"
#include "support/random_rounds.h"

namespace berth {
namespace {

constexpr std::int64_t kParts = 1000;
constexpr std::int64_t kLeastDemand = 4;
constexpr std::int64_t kStep = 16;
constexpr std::size_t kResources = 3;  // GPU, CPU, memory

using Parts = std::array<std::int64_t, kResources>;  // of kParts

std::int64_t instances() { return random_rounds(100, 20'000); }

struct User {
  Parts demand{};
  std::int64_t weight = 1;
  std::int64_t tasks = kParts;  // how many it would like to run
};

std::int64_t dominant(const Parts& parts) { return *std::max_element(parts.begin(), parts.end()); }

Parts times(const Parts& parts, std::int64_t tasks) {
  Parts all = parts;
  for (std::int64_t& one : all) one *= tasks;
  return all;
}

// Returns how many tasks of the demand would run on these parts.
std::int64_t tasks_on(const Parts& parts, const Parts& demand) {
  std::int64_t tasks = kParts;
  for (std::size_t r = 0; r < kResources; ++r) {
    if (demand[r] > 0) tasks = std::min(tasks, parts[r] / demand[r]);
  }
  return tasks;
}

JobSpec task_of(const User& user, const std::string& queue) {
  JobSpec spec = FleetFixture::job(queue, 1, user.demand[0] > 0 ? 1 : 0);
  TaskRequest& request = spec.groups.front().request;
  if (user.demand[0] > 0) request.gpu_milli = static_cast<std::int32_t>(user.demand[0]);
  request.cpu_milli = user.demand[1];
  request.memory_mib = user.demand[2];
  return spec;
}

// One node whose capacity is kParts of each resource, and more tasks of each user than could run.
class Shared {
 public:
  // User i submits to leaves[i]; parents of leaves are among `queues`.
  Shared(const std::vector<QueueConfig>& queues, const std::vector<std::string>& leaves, std::vector<User> users)
      : users_(std::move(users)), leaves_(leaves) {
    fleet_.command(ApplyConfig{FleetFixture::config(queues), "op"});
    NodeSpec node = FleetFixture::node("n1", 1);
    node.cpu_milli = kParts;
    node.memory_mib = kParts;
    fleet_.command(RegisterNode{node});
    for (std::size_t i = 0; i < users_.size(); ++i) {
      const std::int64_t most = tasks_on({kParts, kParts, kParts}, users_[i].demand) + 1;
      for (std::int64_t t = 0; t < std::min(users_[i].tasks, most); ++t) submit(i);
    }
  }

  void cycle() { fleet_.cycle(); }

  std::vector<std::int64_t> running() const {
    std::vector<std::int64_t> running(users_.size(), 0);
    for (const JobId id : fleet_.state.running()) ++running[owner_.at(id)];
    return running;
  }

  // A task of the user ends, and another one is submitted.
  void replace_one(std::size_t user) {
    for (const JobId id : fleet_.state.running()) {
      if (owner_.at(id) != user) continue;
      fleet_.exit(id, 0);
      submit(user);
      return;
    }
  }

 private:
  void submit(std::size_t user) { owner_[fleet_.submit(task_of(users_[user], leaves_[user]))] = user; }

  FleetFixture fleet_;
  std::vector<User> users_;
  std::vector<std::string> leaves_;
  std::map<JobId, std::size_t> owner_;
};

// Returns how many tasks of each user run after one cycle of the product, with a queue below the root for each.
std::vector<std::int64_t> allocate(const std::vector<User>& users) {
  std::vector<QueueConfig> queues;
  std::vector<std::string> leaves;
  for (std::size_t i = 0; i < users.size(); ++i) {
    leaves.push_back("u" + std::to_string(i));
    queues.push_back(FleetFixture::queue(leaves.back()));
    queues.back().weight = users[i].weight;
  }
  Shared shared(queues, leaves, users);
  shared.cycle();
  return shared.running();
}

class Demands {
 public:
  explicit Demands(std::uint64_t seed) : random_(seed) {}

  std::int64_t one() { return random_.between(kLeastDemand, kStep); }
  std::size_t many() { return static_cast<std::size_t>(random_.between(2, 5)); }
  std::int64_t weight() { return random_.between(1, 3); }
  bool chance(std::uint32_t permille) { return random_.chance(permille); }

  User user() {
    User user;
    while (dominant(user.demand) == 0) {
      for (std::int64_t& part : user.demand) part = random_.chance(700) ? one() : 0;
    }
    return user;
  }
  std::vector<User> users() {
    std::vector<User> users(many());
    for (User& one : users) one = user();
    return users;
  }

 private:
  Random random_;
};

template <class Check>
void for_each_instance(Check&& check) {
  for (int seed = 1; seed <= instances(); ++seed) {
    CAPTURE(seed);
    check(Demands(static_cast<std::uint64_t>(seed)));
  }
}

std::vector<std::int64_t> shares(const std::vector<User>& users, const std::vector<std::int64_t>& running) {
  std::vector<std::int64_t> shares;
  for (std::size_t i = 0; i < users.size(); ++i) shares.push_back(dominant(users[i].demand) * running[i]);
  return shares;
}

}  // namespace

// "Each user should be better off sharing the cluster, than exclusively using her own partition of the cluster." When
// the first user is refused, some resource is full but for less than a step. So the dominant shares then sum to at
// least 1 - step, and no user is more than a step ahead of another's share over weight.
TEST_CASE("sharing incentive: nobody gets less than its weight's part of its dominant resource") {
  for_each_instance([](Demands demands) {
    std::vector<User> users = demands.users();
    std::int64_t weights = 0;
    for (User& user : users) {
      user.weight = demands.weight();
      weights += user.weight;
    }
    const auto got = shares(users, allocate(users));
    const auto many = static_cast<std::int64_t>(users.size());
    for (std::size_t i = 0; i < users.size(); ++i) {
      CAPTURE(i);
      CHECK_GE(got[i] * weights, users[i].weight * (kParts - (many + 1) * kStep));
    }
  });
}

// "Users should not be able to benefit by lying about their resource demands." The measure is how many true tasks the
// user could run on what its lie got it. A lie moves the others by a step each way, and each of them may then leave or
// take four more steps.
TEST_CASE("strategy-proofness: no lie about its demands gets a user more of its true tasks") {
  for_each_instance([](Demands demands) {
    std::vector<User> users = demands.users();
    const User truth = users.front();
    const std::int64_t honest = allocate(users).front();
    for (int lie = 0; lie < 3; ++lie) {
      users.front() = demands.user();
      if (lie == 0) {  // more of everything that it needs
        users.front().demand = truth.demand;
        for (std::int64_t& part : users.front().demand) part = part == 0 ? 0 : std::min(kStep, part + demands.one());
      }
      const Parts got = times(users.front().demand, allocate(users).front());
      const std::int64_t useful = tasks_on(got, truth.demand);
      const auto many = static_cast<std::int64_t>(users.size());
      CAPTURE(lie);
      CHECK_LE(useful * dominant(truth.demand), honest * dominant(truth.demand) + (many + 5) * kStep);
    }
  });
}

// "A user should not prefer the allocation of another user." The bound is one step while both were served, and four
// while only the other still was.
TEST_CASE("envy-freeness: nobody could run more of its tasks on what another has") {
  for_each_instance([](Demands demands) {
    const std::vector<User> users = demands.users();
    const auto running = allocate(users);
    for (std::size_t i = 0; i < users.size(); ++i) {
      for (std::size_t j = 0; j < users.size(); ++j) {
        CAPTURE(i);
        CAPTURE(j);
        const std::int64_t there = tasks_on(times(users[j].demand, running[j]), users[i].demand);
        CHECK_LE(there * dominant(users[i].demand), running[i] * dominant(users[i].demand) + 5 * kStep);
      }
    }
  });
}

// "It should not be possible to increase the allocation of a user without decreasing the allocation of at least another
// user." Exact: tasks are not divisible, so nothing is left to rounding.
TEST_CASE("Pareto efficiency: whoever waits lacks a resource that the others hold") {
  for_each_instance([](Demands demands) {
    std::vector<User> users = demands.users();
    for (User& user : users) {
      if (demands.chance(300)) user.tasks = demands.one();
    }
    const auto running = allocate(users);
    Parts left{kParts, kParts, kParts};
    for (std::size_t i = 0; i < users.size(); ++i) {
      for (std::size_t r = 0; r < kResources; ++r) left[r] -= users[i].demand[r] * running[i];
    }
    for (std::size_t i = 0; i < users.size(); ++i) {
      CAPTURE(i);
      if (running[i] < users[i].tasks) CHECK_EQ(tasks_on(left, users[i].demand), 0);
    }
  });
}

// "For a single resource, the solution should reduce to max-min fairness": a user that wants less than an equal part
// has all that it wants, and the others have equal parts over weight. The bound is two steps over weight: one of
// filling, one from the last task that still fitted.
TEST_CASE("single-resource fairness: with one resource it is max-min fairness") {
  for_each_instance([](Demands demands) {
    std::vector<User> users(demands.many());
    for (User& user : users) {
      user.demand[1] = demands.one();
      user.weight = demands.weight();
      if (demands.chance(300)) user.tasks = demands.one() / 2;
    }
    const auto running = allocate(users);
    const auto got = shares(users, running);
    for (std::size_t i = 0; i < users.size(); ++i) {
      if (running[i] == users[i].tasks) continue;
      for (std::size_t j = 0; j < users.size(); ++j) {
        CAPTURE(i);
        CAPTURE(j);
        CHECK_LE(got[j] * users[i].weight, got[i] * users[j].weight + 2 * kStep * 3);
      }
    }
  });
}

// "If there is one resource that is percent-wise demanded most of by every user, then the solution should reduce to
// max-min fairness for that resource."
TEST_CASE("bottleneck fairness: what everybody wants most is divided equally") {
  for_each_instance([](Demands demands) {
    std::vector<User> users = demands.users();
    for (User& user : users) user.demand[0] = kStep - (demands.chance(500) ? 0 : 1);
    for (User& user : users) user.demand[1] = std::min(user.demand[1], kStep - 2);
    for (User& user : users) user.demand[2] = std::min(user.demand[2], kStep - 2);
    const auto got = shares(users, allocate(users));
    const auto [least, most] = std::minmax_element(got.begin(), got.end());
    CHECK_LE(*most - *least, 2 * kStep);
    CHECK_GE(*least * static_cast<std::int64_t>(users.size()),
             kParts - (static_cast<std::int64_t>(users.size()) + 1) * kStep);
  });
}

// The hierarchical share guarantee of H-DRF (Bhattacharya et al., SoCC'13, 3.1): a leaf that always wants more gets, of
// its dominant resource, at least its part of what its parent is due. The order serves one step at a time, and each
// level adds its steps. Then tasks end and new ones come. This is when the naive hierarchy starves a leaf: freed
// resources go to the parent that seems to have less.
TEST_CASE("hierarchical share guarantee: no leaf of two levels is starved, also when tasks come and go") {
  for_each_instance([](Demands demands) {
    const auto tops = static_cast<std::int64_t>(demands.many() % 2 + 2);
    std::vector<QueueConfig> queues;
    std::vector<std::string> leaves;
    std::vector<std::int64_t> parts;  // the leaf is due one of so many parts
    for (std::int64_t t = 0; t < tops; ++t) {
      const std::string top = "t" + std::to_string(t);
      queues.push_back(FleetFixture::queue(top));
      const auto children = static_cast<std::int64_t>(demands.many() % 3 + 1);
      for (std::int64_t c = 0; c < children; ++c) {
        leaves.push_back(children == 1 ? top : top + "/" + std::to_string(c));
        if (children > 1) queues.push_back(FleetFixture::queue(leaves.back()));
        parts.push_back(tops * children);
      }
    }
    std::vector<User> users;
    while (users.size() < leaves.size()) users.push_back(demands.user());
    Shared shared(queues, leaves, users);
    const auto check = [&] {
      const auto got = shares(users, shared.running());
      for (std::size_t i = 0; i < users.size(); ++i) {
        CAPTURE(i);
        CHECK_GE(got[i] * parts[i], kParts - (parts[i] + tops + 1) * kStep);
      }
    };
    shared.cycle();
    check();
    for (int round = 0; round < 20; ++round) {
      for (std::size_t i = 0; i < users.size(); ++i) {
        // Frees as much at once as the largest task takes; otherwise small tasks would take it piece by piece.
        for (std::int64_t t = 0; t < kStep / kLeastDemand; ++t) shared.replace_one(i);
      }
      shared.cycle();
      check();
    }
  });
}

}  // namespace berth
