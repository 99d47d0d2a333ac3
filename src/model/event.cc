#include "model/event.h"

#include <array>

namespace berth {

ClusterConfig config_after(const ClusterConfigured& event) {
  ClusterConfig config = event.config;
  for (const LimitsOfQueue& over : event.kept) put_limits(config, over.queue, over.limits);
  return config;
}

std::string_view kind_name(const Event& event) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"cluster-configured",  "node-registered",      "node-status-changed",
                                       "node-cordoned",       "gpu-health-changed",   "job-submitted",
                                       "job-hold-changed",    "job-priority-changed", "job-cancel-requested",
                                       "nominated",           "nomination-dropped",   "attempt-started",
                                       "attempt-grown",       "charge-promoted",      "task-started",
                                       "task-exited",         "stop-began",           "stop-cancelled",
                                       "stop-forced",         "checkpoint-reported",  "attempt-ended",
                                       "job-requeued",        "job-finished",         "cycle-ran",
                                       "fragmentation-alarm", "attempt-shrunk",       "reservation-made",
                                       "reservation-dropped", "starts-sought",        "service-updated",
                                       "guarantee-changed",   "maintenance-planned",  "maintenance-began",
                                       "maintenance-ended",   "move-nominated",       "move-ordered",
                                       "node-images-changed", "clock-confirmed",      "token-created",
                                       "token-revoked",       "prices-applied",       "month-closed",
                                       "bill-corrected",      "budget-marked",        "queue-changed",
                                       "queue-change-ended",  "role-bound",           "subject-blocked",
                                       "rules-set",           "access-denied",        "log-read",
                                       "signed-in",           "quantity-reported",    "job-signalled",
                                       "foreign-use-changed", "node-removed",         "log-restored",
                                       "node-blamed",         "shell-opened",         "shell-ended"});
  static_assert(kNames.size() == std::variant_size_v<Event>);
  return kNames[event.index()];
}

NodeId node_of(const Event& event) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.node; }) {
          return one.node;
        } else {
          return NodeId::none();
        }
      },
      event);
}

JobId job_of(const Event& event) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.job; }) {
          return one.job;
        } else {
          return JobId::none();
        }
      },
      event);
}

}  // namespace berth
