#pragma once
// The meter: usage as a fold over the events of the log, in exact integers, so that it can be recomputed and must come
// out the same. Two books are kept side by side.
//
//   rows    what jobs hold, by queue, user, GPU model, and guaranteed or borrowed: from the event that binds an attempt
//           (or a step of its growth) to the event that ends it, by what its placements name. CPUs and memory go to the
//           row of the task's first GPU, or to the row without a model when it has none.
//   fleet   every milli-GPU of every model is, at every instant, in exactly one of used (guaranteed or borrowed), idle
//           and down (P12). Down is what nobody uses on a GPU that is unhealthy or whose node is unknown or lost: a
//           task on a node that lost contact still counts as used, as its GPUs are not anybody else's.
//
// Times are the events' own. docs/usage.md says the same for users.

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
  std::string gpu_model;  // empty: tasks without GPUs
  bool borrowed = false;
  auto operator<=>(const Account&) const = default;
  static constexpr auto fields() {
    return field_list(field("queue", &Account::queue), field("user", &Account::user),
                      field("gpu_model", &Account::gpu_model), field("borrowed", &Account::borrowed));
  }
};

// Thousandths of a GPU times milliseconds are millionths of a GPU-second; 64 bits hold 290,000 GPU-years of them.
struct UsageRow {
  Account account;
  std::int64_t gpu_milli_ms = 0;
  Int128 cpu_milli_ms = 0;
  Int128 memory_mib_ms = 0;
};

// In gpu_milli_ms; capacity = used_guaranteed + used_borrowed + idle + down.
struct FleetRow {
  std::string gpu_model;
  std::int64_t capacity = 0;
  std::int64_t used_guaranteed = 0;
  std::int64_t used_borrowed = 0;
  std::int64_t idle = 0;
  std::int64_t down = 0;
};

struct Usage {
  Timestamp from;
  Timestamp to;
  std::vector<UsageRow> rows;   // by account; none is all zero
  std::vector<FleetRow> fleet;  // by model
  std::int64_t idle = 0;        // of all models, as the next two
  std::int64_t down = 0;
  std::int64_t capacity = 0;
};

class Meter {
 public:
  void apply(const EventRecord& record);

  Timestamp now() const { return now_; }  // of the last event
  Seq last_seq() const { return last_seq_; }

  Timestamp first_event() const { return first_; }

  // What was used in [from, to). Beyond the last event the present state is taken to go on, so the caller ends the
  // window at its own now. Where usage is only kept by the hour (more than kRecentHours before the last event), an edge
  // that is no full hour of UTC moves back to one: `from` and `to` of the result are the window that was counted.
  Usage usage(Timestamp from, Timestamp to) const;

  // P12 at this instant and summed from the beginning: the first account that does not add up, or nothing. Cheap
  // enough to ask after every event.
  std::optional<std::string> check() const;
  // The same, with what the running attempts hold counted again and every row added up.
  std::optional<std::string> check_from_scratch() const;

  std::string save() const;
  static Result<Meter> load(std::string_view bytes);

 private:
  struct GpuCount {
    std::string model;
    std::int64_t capacity_milli = 0;  // 1000, or 0 once the GPU is gone from its node
    std::int64_t used_milli = 0;
    bool healthy = true;
    static constexpr auto fields() {
      return field_list(field("model", &GpuCount::model), field("capacity_milli", &GpuCount::capacity_milli),
                        field("used_milli", &GpuCount::used_milli), field("healthy", &GpuCount::healthy));
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
    std::vector<Charge> charges;  // of the running attempt
    static constexpr auto fields() {
      return field_list(field("queue", &Job::queue), field("user", &Job::user), field("charges", &Job::charges));
    }
  };
  // One GPU model's accounts; each flows in kGpu alone.
  struct Fleet {
    Series capacity, used_guaranteed, used_borrowed, idle, down;
    static constexpr auto fields() {
      return field_list(field("capacity", &Fleet::capacity), field("used_guaranteed", &Fleet::used_guaranteed),
                        field("used_borrowed", &Fleet::used_borrowed), field("idle", &Fleet::idle),
                        field("down", &Fleet::down));
    }
  };

  void on(const NodeRegistered& event);
  void on(const NodeStatusChanged& event);
  void on(const GpuHealthChanged& event);
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
  std::map<JobId, Job> jobs_;     // that are not finished
  std::map<Account, Series> rows_;
  std::map<std::string, Fleet> fleet_;  // by GPU model
};

// "1234.500000": micro units as a decimal of whole ones, exactly.
std::string micro_text(Int128 micro);

}  // namespace berth::billing
