#include "api/routes/new_budgets.h"

#include <doctest/doctest.h>

#include "api/routes/fake_service.h"

namespace berth::api {
namespace {

// A job of queue a has used 4 GPUs for an hour.
struct SpentQueue {
  FakeService service;

  SpentQueue() {
    set_up_cluster(service);
    const Client client(service);
    const char* job = R"({"queue":"a","gpus":4,"command":["true"]})";
    REQUIRE_EQ(client.call({.method = "POST", .target = "/v1/jobs", .body = job}).status, 201);
    service.now.ms += 3'600'000;
  }
  // Returns the configuration in force, changed in queue a.
  template <class Change>
  ClusterConfig with(Change&& change) const {
    ClusterConfig config = service.state.file_config();
    for (QueueConfig& queue : config.queues) {
      if (queue.path == "a") change(queue);
    }
    return config;
  }
  template <class Change>
  void apply(Change&& change) {
    REQUIRE(service.run(ApplyConfig{with(change), "op"}));
  }
  template <class Change>
  std::string refusal(Change&& change) {
    const auto checked = check_new_budgets(service, with(change));
    return checked ? "" : checked.error().message;
  }
  BudgetConfig grant(std::int64_t gpu_milli_hours, std::int64_t until_ms) const {
    return {0, gpu_milli_hours, BudgetAction::kStopStarting, month_at(service.now).begin, service.now + until_ms};
  }
};

BudgetConfig hours(std::int64_t milli, BudgetAction action = BudgetAction::kStopStarting) { return {0, milli, action}; }

}  // namespace

TEST_CASE("a new budget below what was used is refused, also where its queue is renamed with it") {
  SpentQueue spent;
  CHECK_EQ(spent.refusal([](QueueConfig& a) { a.budget = hours(5000); }), "");
  CHECK(spent.refusal([](QueueConfig& a) { a.budget = hours(1000); })
            .starts_with("queue 'a'.budget.gpu_hours: 1 is less than was used since "));
  const auto renamed = [](QueueConfig& a) {
    a.moved_from = a.path;
    a.path = "c";
    a.budget = hours(1000);
  };
  CHECK(spent.refusal(renamed).starts_with("queue 'c'.budget.gpu_hours: 1 is less than was used since "));
}

TEST_CASE("a budget that is used up may be loosened, and not be made stricter") {
  SpentQueue spent;
  spent.apply([](QueueConfig& a) { a.budget = hours(1000); });
  CHECK_EQ(spent.refusal([](QueueConfig& a) { a.budget = hours(1000, BudgetAction::kTell); }), "");
  CHECK_EQ(spent.refusal([](QueueConfig& a) { a.budget = hours(2000); }), "");
  CHECK_FALSE(spent.refusal([](QueueConfig& a) { a.budget = hours(900); }).empty());
  CHECK_FALSE(spent.refusal([&](QueueConfig& a) { a.grant = spent.grant(1000, 1000); }).empty());
  spent.apply([&](QueueConfig& a) { a.grant = spent.grant(1000, 60'000); });
  const BudgetConfig known = *spent.with([](QueueConfig& a) { a.weight += 1; }).queues[0].grant;
  BudgetConfig other = known;
  other.gpu_milli_hours = 2000;
  CHECK_EQ(spent.refusal([&](QueueConfig& a) { a.grant = other; }), "");
  other.until = other.until + 1;
  CHECK_FALSE(spent.refusal([&](QueueConfig& a) { a.grant = other; }).empty());
}

TEST_CASE("a new grant that has ended is refused, and one in force stays") {
  SpentQueue spent;
  const BudgetConfig ended = spent.grant(9000, 0);
  CHECK(spent.refusal([&](QueueConfig& a) { a.grant = ended; })
            .starts_with("queue 'a'.grant.until: it has ended already, at "));
  CHECK_EQ(spent.refusal([&](QueueConfig& a) { a.grant = spent.grant(9000, 1); }), "");
  spent.apply([&](QueueConfig& a) { a.grant = ended; });
  CHECK_EQ(spent.refusal([](QueueConfig& a) { a.weight += 1; }), "");
  CHECK_EQ(spent.refusal([](QueueConfig& a) { a.moved_from = "a", a.path = "c"; }), "");
  BudgetConfig other = ended;
  other.until = other.until + -1000;
  CHECK_FALSE(spent.refusal([&](QueueConfig& a) { a.grant = other; }).empty());
}

}  // namespace berth::api
