#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "control/hand_driven_fleet.h"
#include "control/iteration.h"
#include "policy/audit.h"

namespace berth::control {
namespace {

struct AskedFleet : HandDrivenFleet {
  AskedFleet() {
    configure({queue("a"), queue("b")});
    command(RegisterNode{node("n1")});
  }

  // The records of one iteration in which each command is asked for by request r-1, r-2 and so on.
  std::vector<EventRecord> records_of(const std::vector<Command>& commands) {
    std::vector<Origin> origins;
    for (std::size_t i = 1; i <= commands.size(); ++i)
      origins.push_back({"token:ci", "token", "10.0.0.7", "r-" + std::to_string(i)});
    IterationMemory memory;
    const auto no_cycle = [](state::State&, Timestamp) { return Plan(); };
    return run_iteration(state, now, commands, memory, no_cycle, {}, origins).records;
  }
  static std::string requests_in(const std::vector<EventRecord>& records) {
    std::string text;
    for (const EventRecord& record : records)
      text += std::string(text.empty() ? "" : " ") + std::string(kind_name(record.event)) + ":" + record.by.request;
    return text;
  }
};

TEST_CASE("the first event of a command has its origin, and what follows from it has none") {
  AskedFleet fleet;
  JobSpec array = HandDrivenFleet::job("a", 1);
  array.kind = JobKind::kArray;
  array.array_size = 3;
  const JobId id = fleet.submit(array);
  const auto records = fleet.records_of({HoldJob{id, true, "ann"}});
  REQUIRE_GE(records.size(), 1);
  CHECK_EQ(records.front().by.request, "r-1");
  CHECK_EQ(records.front().by.queue, "a");
  CHECK_EQ(std::count_if(records.begin(), records.end(), [](const auto& one) { return !one.by.empty(); }), 1);
}

TEST_CASE("a change of an array is one entry of the audit, and those of its elements follow from it") {
  AskedFleet fleet;
  JobSpec array = HandDrivenFleet::job("a", 1);
  array.kind = JobKind::kArray;
  array.array_size = 3;
  const JobId id = fleet.submit(array);
  REQUIRE_GE(fleet.state.children().at(id).size(), 1);
  const auto entries_of = [&](const Command& command) {
    std::vector<policy::AuditEntry> entries;
    std::size_t events = 0;
    for (const EventRecord& record : fleet.records_of({command})) {
      ++events;
      if (auto entry = policy::audit_entry(record)) entries.push_back(std::move(*entry));
    }
    CHECK_GE(events, 2);
    return entries;
  };
  for (const Command& command : {Command(PrioritizeJob{id, 7, "ann"}), Command(HoldJob{id, true, "ann"})}) {
    const auto entries = entries_of(command);
    REQUIRE_EQ(entries.size(), 1);
    CHECK_EQ(entries.front().job, id);
    CHECK_EQ(entries.front().queue, "a");
    CHECK_EQ(entries.front().by.subject, "token:ci");
  }
  const auto again = entries_of(PrioritizeJob{id, 9, "ann"});
  REQUIRE_EQ(again.size(), 1);
  CHECK_EQ(again.front().changes.front().before, "7");
}

TEST_CASE("a command that is refused or changes nothing leaves its origin to no other") {
  AskedFleet fleet;
  const auto records =
      fleet.records_of({CancelJob{JobId(99), "ann"}, RevokeToken{"none", "ann"}, CordonNode{"n1", true, false, "ops"}});
  CHECK_EQ(AskedFleet::requests_in(records), "node-cordoned:r-3");
  CHECK_EQ(records.front().by.node, "n1");
  CHECK(fleet.records_of({CordonNode{"n1", true, false, "ops"}}).empty());
}

TEST_CASE("a new token has the origin, and not the tokens that it clears away") {
  AskedFleet fleet;
  TokenCreated token;
  token.name = "old";
  token.digest = std::string(64, '1');
  token.as_user = "old";
  token.expires = fleet.now + 1000;
  fleet.command(CreateToken{token});
  fleet.now = fleet.now + 2000;
  token.name = "new";
  token.digest = std::string(64, '2');
  token.as_user = "new";
  token.expires = fleet.now + 1000;
  CHECK_EQ(AskedFleet::requests_in(fleet.records_of({CreateToken{token}})), "token-revoked: token-created:r-1");
}

TEST_CASE("what is denied, read and signed in is written as it came, and starts no cycle") {
  AskedFleet fleet;
  const auto before = fleet.state.opportunity();
  AccessDenied denied;
  denied.subject = "token:x";
  denied.verb = "submit";
  denied.count = 3;
  const auto records =
      fleet.records_of({NoteDenials{{denied, denied}}, NoteLogRead{{JobId(5), "a", "ann", "user:ops", "why not"}},
                        NoteSignIns{{{"user:corp:ada", "issuer", "10.0.0.7"}}}});
  CHECK_EQ(AskedFleet::requests_in(records), "access-denied:r-1 access-denied: log-read:r-2 signed-in:r-3");
  CHECK_EQ(fleet.state.opportunity(), before);
}

TEST_CASE("the state keeps the last reads by break-glass, some of each job, and a checkpoint has them") {
  AskedFleet fleet;
  const auto read = [&](std::uint64_t job, const std::string& reason) {
    fleet.command(NoteLogRead{{JobId(job), "a", "ann", "user:ops", reason}});
  };
  read(1, "");  // by a role: nothing is kept
  CHECK(fleet.state.broken_glass().empty());
  const std::size_t most = state::State::kMostBrokenGlass;
  for (std::size_t i = 0; i < 2 * state::State::kMostBrokenGlassOfJob; ++i) read(1, "reason " + std::to_string(i));
  REQUIRE_EQ(fleet.state.broken_glass().size(), state::State::kMostBrokenGlassOfJob);
  CHECK_EQ(fleet.state.broken_glass().back().reason, "reason 19");
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded.has_value());
  CHECK(loaded->broken_glass() == fleet.state.broken_glass());
  for (std::uint64_t job = 2; job < 2 + most; ++job) read(job, "why");
  CHECK_EQ(fleet.state.broken_glass().size(), most);
  CHECK_EQ(fleet.state.broken_glass().front().job.value(), 2);
}

}  // namespace
}  // namespace berth::control
