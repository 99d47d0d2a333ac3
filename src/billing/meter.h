#pragma once
// The meter: usage as a fold over the events of the log, in exact integers. It can be recomputed and must come out the
// same. It keeps two accounts side by side:
//
// - rows: the usage of jobs by queue, user, GPU model, and guaranteed or borrowed. It runs from the event that binds an
//   attempt (or a scale-up) to the event that ends it, by the amounts of the placements. CPUs and memory are in the row
//   of the task's first GPU, or in the row without a model if it has none.
// - fleet: at each instant, each milli-GPU of each model is in exactly one of used (guaranteed or borrowed), idle,
//   foreign or down (P12). Down is the unused part of a GPU that is unhealthy, or whose node is unknown or lost;
//   foreign is that of a GPU that others use (ForeignUse). A task on a node without contact still counts as used,
//   because no other job can use its GPUs.
//
// Times are the times of the events. docs/usage.md says the same for users.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "billing/series.h"
#include "model/event.h"

namespace berth::billing {

struct Account {
  std::string queue;
  std::string user;
  std::string gpu_model;  // empty for tasks without GPUs
  bool borrowed = false;
  auto operator<=>(const Account&) const = default;
  static constexpr auto fields() {
    return field_list(field("queue", &Account::queue), field("user", &Account::user),
                      field("gpu_model", &Account::gpu_model), field("borrowed", &Account::borrowed));
  }
};

// gpu_milli_ms is in milli-GPUs times milliseconds, which are millionths of a GPU-second. 64 bits hold 290,000
// GPU-years of them.
struct UsageRow {
  Account account;
  std::int64_t gpu_milli_ms = 0;
  Int128 cpu_milli_ms = 0;
  Int128 memory_mib_ms = 0;
};

// In gpu_milli_ms; capacity = used_guaranteed + used_borrowed + idle + foreign + down.
struct FleetRow {
  std::string gpu_model;
  std::int64_t capacity = 0;
  std::int64_t used_guaranteed = 0;
  std::int64_t used_borrowed = 0;
  std::int64_t idle = 0;
  std::int64_t down = 0;
  std::int64_t foreign = 0;
};

struct Usage {
  Timestamp from;
  Timestamp to;
  std::vector<UsageRow> rows;   // by account; rows that are all zero are left out
  std::vector<FleetRow> fleet;  // by model
  std::int64_t idle = 0;        // idle, down, capacity and foreign of all models together
  std::int64_t down = 0;
  std::int64_t capacity = 0;
  std::int64_t foreign = 0;
};

class Meter {
 public:
  void apply(const EventRecord& record);

  Timestamp now() const { return now_; }  // time of the last event
  Seq last_seq() const { return last_seq_; }

  Timestamp first_event() const { return first_; }

  // Returns the usage in [from, to). After the last event the present state is taken to go on, so the caller ends the
  // window at its own now. Usage is exact for the last kRecentHours before the last event. Earlier usage is kept by the
  // hour: an edge there moves back to a full hour of UTC. `from` and `to` of the result are the window that was
  // counted.
  Usage usage(Timestamp from, Timestamp to) const;

  // Checks P12 for this instant. Returns the first GPU model whose accounts do not add up, or nothing. It is cheap
  // enough to call after each event.
  std::optional<std::string> check() const;
  // As check(), and also adds up the sums since the beginning and counts the running attempts again.
  std::optional<std::string> check_from_scratch() const;

  std::string save() const;
  static Result<Meter> load(std::string_view bytes);

 private:
  struct GpuCount {
    std::string model;
    std::int64_t capacity_milli = 0;  // 1000, or 0 once the GPU is gone from its node
    std::int64_t used_milli = 0;
    bool healthy = true;
    bool foreign = false;
    static constexpr auto fields() {
      return field_list(field("model", &GpuCount::model), field("capacity_milli", &GpuCount::capacity_milli),
                        field("used_milli", &GpuCount::used_milli), field("healthy", &GpuCount::healthy),
                        field_if_set("foreign", &GpuCount::foreign));
    }
  };
  struct NodeCount {
    std::vector<GpuCount> gpus;
    NodeStatus status = NodeStatus::kReady;
    static constexpr auto fields() {
      return field_list(field("gpus", &NodeCount::gpus), field("status", &NodeCount::status));
    }
  };
  struct Charge {
    bool guaranteed = false;
    std::vector<TaskPlacement> placements;
    static constexpr auto fields() {
      return field_list(field("guaranteed", &Charge::guaranteed), field("placements", &Charge::placements));
    }
  };
  struct Job {
    std::string queue;
    std::string user;
    std::vector<Charge> charges;  // charges of the running attempt
    static constexpr auto fields() {
      return field_list(field("queue", &Job::queue), field("user", &Job::user), field("charges", &Job::charges));
    }
  };
  // The accounts of one GPU model. Each uses only the kGpu part of a Series.
  struct Fleet {
    Series capacity, used_guaranteed, used_borrowed, idle, down, foreign;
    static constexpr auto fields() {
      return field_list(field("capacity", &Fleet::capacity), field("used_guaranteed", &Fleet::used_guaranteed),
                        field("used_borrowed", &Fleet::used_borrowed), field("idle", &Fleet::idle),
                        field("down", &Fleet::down), field_if_set("foreign", &Fleet::foreign));
    }
  };

  void on(const NodeRegistered& event);
  void on(const NodeStatusChanged& event);
  void on(const NodeRemoved& event);
  void on(const GpuHealthChanged& event);
  void on(const ForeignUseChanged& event);
  void on(const ClusterConfigured& event);
  void on(const JobSubmitted& event);
  void on(const AttemptStarted& event);
  void on(const AttemptGrown& event);
  void on(const ChargePromoted& event);
  void on(const AttemptShrunk& event);
  void on(const AttemptEnded& event);
  void on(const JobFinished& event);

  void begin_hour(Timestamp now);
  Job& job(JobId id);
  void count_charge(const Job& job, const Charge& charge, int sign);
  void count_task(const Job& job, bool guaranteed, const TaskPlacement& task, int sign);
  void count_gpu(const NodeCount& node, const GpuCount& gpu, int sign);
  template <class Visitor>
  void for_each_charge_on(NodeId node, Visitor&& visit);
  Timestamp exact_edge(Timestamp edge) const;

  Timestamp now_;
  Timestamp first_;
  Seq last_seq_ = 0;
  std::vector<NodeCount> nodes_;  // by NodeId
  std::map<JobId, Job> jobs_;     // live jobs
  std::map<Account, Series> rows_;
  std::map<std::string, Fleet> fleet_;  // by GPU model
};

// Returns micro units as an exact decimal of whole units: "1234.500000".
std::string micro_text(Int128 micro);

}  // namespace berth::billing
