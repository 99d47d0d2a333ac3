#pragma once
// The meter: a fold over durable events that accounts for every millisecond of every GPU (P12). Each thousandth of a
// GPU is at any instant in exactly one account: used by (queue, user, model, within or borrowed), idle, or down
// (unhealthy, or its node lost). What is bound counts from the event that binds it to the event that ends the attempt,
// start-up, checkpointing and unknown included, because nobody else could have it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "billing/step_series.h"
#include "model/event.h"

namespace berth::billing {

struct Account {
  std::string queue;
  std::string user;
  std::string gpu_model;
  bool borrowed = false;
  auto operator<=>(const Account&) const = default;
  static constexpr auto fields() {
    return std::tuple(field("queue", &Account::queue), field("user", &Account::user),
                      field("gpu_model", &Account::gpu_model), field("borrowed", &Account::borrowed));
  }
};

struct UsageRow {
  Account account;
  std::int64_t gpu_milli_ms = 0;  // thousandths of a GPU times milliseconds
};

struct Usage {
  Timestamp from;
  Timestamp to;
  std::vector<UsageRow> rows;  // sorted by account; none is zero
  std::int64_t idle = 0;       // in gpu_milli_ms, as all of these
  std::int64_t down = 0;
  std::int64_t capacity = 0;  // rows + idle + down, counted on its own
};

class Meter {
 public:
  void apply(const EventRecord& record);

  // The window [from, to); `to` may lie in the future of the last event, the rates of now go on until then.
  Usage usage(Timestamp from, Timestamp to) const;
  Timestamp first_event() const { return first_; }

  // The first account that does not add up, or nothing.
  std::optional<std::string> check() const;

  std::string save() const;
  static Result<Meter> load(std::string_view bytes);

 private:
  struct MeteredGpu {
    std::string model;
    std::int64_t bound_milli = 0;
    bool healthy = true;
    static constexpr auto fields() {
      return std::tuple(field("model", &MeteredGpu::model), field("bound_milli", &MeteredGpu::bound_milli),
                        field("healthy", &MeteredGpu::healthy));
    }
  };
  struct MeteredNode {
    std::vector<MeteredGpu> gpus;
    bool lost = false;
    static constexpr auto fields() {
      return std::tuple(field("gpus", &MeteredNode::gpus), field("lost", &MeteredNode::lost));
    }
  };
  struct MeteredCharge {
    std::vector<TaskPlacement> placements;
    bool guaranteed = false;
    static constexpr auto fields() {
      return std::tuple(field("placements", &MeteredCharge::placements),
                        field("guaranteed", &MeteredCharge::guaranteed));
    }
  };
  struct MeteredJob {
    std::uint64_t id = 0;
    std::string queue;
    std::string user;
    std::vector<MeteredCharge> charges;
    static constexpr auto fields() {
      return std::tuple(field("id", &MeteredJob::id), field("queue", &MeteredJob::queue),
                        field("user", &MeteredJob::user), field("charges", &MeteredJob::charges));
    }
  };

  void bind(const MeteredJob& job, const MeteredCharge& charge, int sign);
  void count_used(const MeteredJob& job, const MeteredCharge& charge, int sign);
  void count_gpu(const MeteredNode& node, const MeteredGpu& gpu, int sign);
  MeteredJob& job(JobId id);

  void on(const NodeRegistered& event);
  void on(const NodeStatusChanged& event);
  void on(const GpuHealthChanged& event);
  void on(const JobSubmitted& event);
  void on(const AttemptStarted& event);
  void on(const AttemptGrown& event);
  void on(const ChargePromoted& event);
  void on(const AttemptEnded& event);
  void on(const JobFinished& event);
  template <class Other>
  void on(const Other&) {}

  Timestamp now_;
  Timestamp first_;
  bool any_ = false;
  std::vector<MeteredNode> nodes_;
  std::map<std::uint64_t, MeteredJob> jobs_;
  std::map<Account, StepSeries> accounts_;
  StepSeries idle_;
  StepSeries down_;
  StepSeries capacity_;
};

}  // namespace berth::billing
