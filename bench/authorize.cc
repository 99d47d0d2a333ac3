// What a decision costs beside many roles: 5,000 users in 300 teams, with 10,000 bindings. A decision is what a request
// pays for: the roles of a user and its two groups are looked up, and one verb on one job is authorized.
// bench/identity.py starts it; it prints one JSON object.

#include "policy/authorize.h"

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/random.h"
#include "daemon/access_table.h"
#include "identity/claims.h"

namespace berth {
namespace {

constexpr int kTeams = 300;
constexpr int kUsers = 5'000;
constexpr int kBindings = 10'000;
constexpr int kDecisions = 2'000'000;

std::string team(int number) { return "team-" + std::to_string(number % kTeams); }
std::string queue_of(int number) { return "org-" + std::to_string(number % 10) + "/" + team(number); }
std::string user(int number) { return "corp:user-" + std::to_string(number % kUsers); }

// A group of each team, each user by name, and further roles of users at other teams.
std::vector<RoleBinding> bindings() {
  std::vector<RoleBinding> all;
  for (int i = 0; i < kTeams; ++i) all.push_back({"group:corp:" + team(i), Role::kMember, queue_of(i)});
  for (int i = 0; i < kUsers; ++i) all.push_back({"user:" + user(i), Role::kViewer, queue_of(i + 1)});
  for (int i = 0; static_cast<int>(all.size()) < kBindings; ++i)
    all.push_back({"user:" + user(i), Role::kLead, queue_of(i + 2)});
  return all;
}

// Of the processor, so that what else runs on the machine does not count.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

int run() {
  daemon::AccessTable access{state::State()};
  ClusterConfigured configured;
  configured.config.roles = bindings();
  access.on(configured);
  Random random(1);
  std::vector<identity::Identity> identities;
  for (int i = 0; i < kUsers; ++i) {
    identity::Identity identity;
    identity.user = user(i);
    identity.groups = {"corp:" + team(i), "corp:everybody"};
    identities.push_back(std::move(identity));
  }
  std::vector<std::string> queues;
  for (int i = 0; i < kTeams; ++i) queues.push_back(queue_of(i));
  const std::size_t verbs = EnumNames<policy::Verb>::kNames.size();
  std::uint64_t allowed = 0;
  const double begin = processor_seconds();
  for (int i = 0; i < kDecisions; ++i) {
    const identity::Identity& one = identities[random.below(identities.size())];
    const auto subject = access.subject_of(one);
    const auto verb = static_cast<policy::Verb>(random.below(verbs));
    const std::string& queue = queues[random.below(queues.size())];
    allowed += policy::authorize(*subject, verb, {queue, one.user}).allowed ? 1U : 0U;
  }
  const double with_lookup_s = processor_seconds() - begin;
  const auto subject = access.subject_of(identities[17]);
  const double pure_begin = processor_seconds();
  for (int i = 0; i < kDecisions; ++i) {
    const auto verb = static_cast<policy::Verb>(random.below(verbs));
    allowed += policy::authorize(*subject, verb, {queues[random.below(queues.size())], "ann"}).allowed ? 1U : 0U;
  }
  const double pure_s = processor_seconds() - pure_begin;
  std::printf("{\"authorize_ns\": %.0f, \"authorize_alone_ns\": %.0f, \"allowed\": %llu}\n",
              with_lookup_s * 1e9 / kDecisions, pure_s * 1e9 / kDecisions, static_cast<unsigned long long>(allowed));
  return 0;
}

}  // namespace
}  // namespace berth

int main() { return berth::run(); }
