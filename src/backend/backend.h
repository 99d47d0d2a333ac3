#pragma once
// A backend runs tasks somewhere. The contract:
//
//  1. `perform` takes effects in order and returns at once; they happen later, on the backend's own thread or machines.
//  2. Every effect is idempotent by its TaskKey: a start of a known task changes nothing, a signal or kill of one that
//  is
//     over changes nothing.
//  3. What happens is told to the sink as Commands (reports), possibly repeated, never invented. A report is repeated
//  until
//     its effect (ForgetTask for an exit) comes back.
//  4. A start with was_running of a task that the backend does not know is answered by an exit (supervisor-lost), never
//  by
//     starting it again.
//  5. After start() the backend reports its nodes first.
//  6. A registration says how every GPU of the node is, and is believed: a GPU that has failed is registered as failed,
//     until it is well, whoever restarted or was out of contact meanwhile.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/command.h"
#include "model/effect.h"

namespace berth::backend {

// Takes reports from any thread; never blocks for long.
using ReportSink = std::function<void(Command)>;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Result<void> start(ReportSink sink) = 0;
  virtual void perform(std::span<const Effect> effects) = 0;
  virtual void stop() = 0;  // stops reporting; tasks go on
  virtual std::vector<std::string> warnings() const = 0;
};

}  // namespace berth::backend
