#pragma once
// A fake fleet in virtual time. Its nodes run tasks by script, lose and regain contact, die and boot again. It performs
// the same effects and makes the same reports as a real backend. It also knows which tasks really run where, which the
// control plane can never see. If that knowledge shows that an invariant is broken (P9, I1, I13), it is noted in
// `violation`.
//
// 1. An execution is one life of one task, named by its TaskKey. Effects are idempotent by that key.
// 2. Reports are delayed, repeated and reordered as the current faults say. Reports about nodes keep their order. A
//    report that was lost with the control plane is made again by `reconnect`, until a ForgetTask for its exit has
//    come.
// 3. A node without contact holds its reports back, and effects wait for it. After `unknown_after_ms` the backend
//    reports it unknown. After `lease_ms` without contact its supervisor kills all tasks and reports them as lost with
//    the node. `kill_margin_ms` later the tasks are certainly dead: the node is reported lost, and the waiting effects
//    are dropped.
// 4. The tasks of a dead node are dead at once, even if the control plane does not know it. If the node boots within
//    its lease, its supervisor reports them as lost with the node.
// 5. A node knows the health of its GPUs and its images; a start pulls no image. It reports each change while in
//    contact, and everything when it registers. A failed GPU stays failed until it is set healthy, through restarts and
//    silence.
// 6. A supervisor that hangs obeys no signal, keeps no time limit and reports nothing, and its task does not end, until
//    a kill or the end of the node ends both.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/timestamp.h"
#include "model/command.h"
#include "model/effect.h"

namespace berth::backend {

// What one execution does. Times count from its start, or from the signal; a negative time means never.
struct TaskScript {
  std::int64_t start_delay_ms = 100;
  bool starts = true;            // false: the executor cannot start it
  std::int64_t run_ms = 60'000;  // how long it runs before it exits with `exit_code`
  std::int32_t exit_code = 0;
  std::int64_t save_every_ms = -1;
  std::int64_t ack_after_ms = -1;      // from the signal to the acknowledged checkpoint
  std::int64_t leave_after_ms = 1000;  // from the signal to its own exit with `leave_code`
  std::int32_t leave_code = 143;
  std::int64_t die_after_ms = 50;  // from the kill to the exit
};

struct FakeTimes {
  std::int64_t unknown_after_ms = 10'000;
  std::int64_t lease_ms = 60'000;
  std::int64_t kill_margin_ms = 15'000;
};

struct ReportFaults {
  std::uint64_t repeated_per_mille = 0;
  std::uint64_t delayed_per_mille = 0;
  std::int64_t longest_delay_ms = 0;
};

struct Execution {
  enum class Phase { kStarting, kLive, kOver };
  TaskKey key;
  std::uint32_t node = 0;
  Phase phase = Phase::kStarting;
  std::vector<std::uint8_t> gpus;
  std::int32_t gpu_milli = 1000;
  TaskScript script;
  std::int64_t time_limit_ms = 0;
  std::int64_t grace_ms = 0;
  bool speaks = false;
  bool hung = false;  // its supervisor hangs
  bool signalled = false;
  bool killed = false;
  Timestamp live_since;
  Timestamp leaves_at = Timestamp::never();
  std::uint64_t plan = 0;  // number of the planned exit; exits with an older number are void
  ExitReason reason = ExitReason::kExited;
  std::int32_t code = 0;
};

class FakeBackend {
 public:
  using ScriptFor = std::function<TaskScript(const StartTask&)>;

  FakeBackend(std::uint64_t seed, ScriptFor script_for);

  void add_node(const NodeSpec& spec, Timestamp now);
  void perform(const Effect& effect, Timestamp now);
  // Performs everything that is due by `now`.
  void advance(Timestamp now);
  // Returns the reports that have arrived, in order.
  std::vector<Command> take_reports();
  // Returns when the next thing happens, or never().
  Timestamp next_due() const;
  bool has_reports() const { return !arrived_.empty(); }
  // Reports the status of each node and all tasks that are not forgotten, for a control plane that has restarted.
  void reconnect(Timestamp now);

  // Faults.
  void lose_contact(const std::string& node, Timestamp now);
  void regain_contact(const std::string& node, Timestamp now);  // does nothing for a dead node
  void kill_node(const std::string& node, Timestamp now);
  void boot_node(const std::string& node, Timestamp now);
  // The machine registers under another name; its tasks run on. The earlier name still finds it. Requires contact.
  void rename_node(const std::string& node, const std::string& fresh, Timestamp now);
  // An operator has switched the node off and is about to fence it. The node is given up, and the effects that wait for
  // it are dropped, so that they do not reach it when it boots.
  void fence_node(const std::string& node, Timestamp now);
  // The machine is switched off and taken out of the fleet for good, as a cloud does with one that is scaled down. A
  // machine of that name may be booted later.
  void remove_node(const std::string& node, Timestamp now);
  // Returns false if the GPU has that health already, or if the node has no such GPU.
  bool set_gpu_health(const std::string& node, std::uint8_t gpu, bool healthy, Timestamp now);
  // Sets all that others use of the node. Returns false if nothing changes.
  bool set_foreign(const std::string& node, ForeignReport use, Timestamp now);
  const ForeignReport& foreign_of(const std::string& node) const { return nodes_[index_of(node)].foreign; }
  // Sets all images of the node, sorted. Returns false if nothing changes.
  bool set_images(const std::string& node, std::vector<std::string> images, Timestamp now);
  // Ends every live execution of a job as if the program had exited by itself. Returns false if there is none.
  bool exit_job(JobId job, std::int32_t code, Timestamp now);
  // Hangs the supervisor of each live execution of the job.
  void hang_supervisors(JobId job);
  void set_report_faults(ReportFaults faults) { faults_ = faults; }
  void set_times(FakeTimes times) { times_ = times; }

  // What really runs, and where.
  const std::map<TaskKey, Execution>& executions() const { return executions_; }
  const std::string& node_name(std::uint32_t node) const { return nodes_[node].spec.name; }
  bool has_node(const std::string& node) const { return names_.contains(node); }
  const std::vector<Gpu>& gpus_of(const std::string& node) const { return nodes_[index_of(node)].spec.gpus; }
  const NodeSpec& spec_of(const std::string& node) const { return nodes_[index_of(node)].spec; }
  bool node_alive(const std::string& node) const { return nodes_[index_of(node)].alive; }
  bool node_in_contact(const std::string& node) const { return nodes_[index_of(node)].in_contact; }
  std::uint64_t live_count() const { return live_; }
  const std::optional<std::string>& violation() const { return violation_; }

 private:
  enum class Standing { kReady, kUnknown, kLost };
  struct Node {
    NodeSpec spec;
    ForeignReport foreign;
    bool alive = true;
    bool removed = false;
    bool in_contact = true;
    Standing standing = Standing::kReady;
    std::uint64_t silence = 0;  // number of the last loss of contact; deadlines of earlier ones are void
    std::vector<std::int32_t> live_milli;
    std::vector<Command> withheld;
    std::vector<Effect> waiting;
  };
  enum class What { kStart, kExit, kAcknowledge, kSave, kTimeLimit, kDeliver, kUnknown, kLeaseOver, kLost };
  struct Due {
    Timestamp when;
    std::uint64_t order = 0;
    What what = What::kStart;
    TaskKey key;
    std::uint32_t node = 0;
    std::uint64_t plan = 0;    // kExit: number of the planned exit; node deadlines: number of the silence
    std::uint64_t letter = 0;  // kDeliver
  };
  struct Later {
    bool operator()(const Due& a, const Due& b) const { return a.when != b.when ? a.when > b.when : a.order > b.order; }
  };

  std::uint32_t index_of(const std::string& node) const;
  void schedule(Due due);
  void happen(const Due& due);
  void do_effect(const StartTask& start, Timestamp now);
  void do_effect(const SignalTask& signal, Timestamp now);
  void do_effect(const KillTask& kill, Timestamp now);
  void do_effect(const ForgetTask& forget, Timestamp now);
  void become_live(Execution& execution, Timestamp now);
  void signal(Execution& execution, Timestamp now);
  void plan_exit(Execution& execution, Timestamp when, ExitReason reason, std::int32_t code);
  void finish(Execution& execution, Timestamp now, ExitReason reason, std::int32_t code);
  void end_all_on(std::uint32_t node, Timestamp now, ExitReason reason);
  void report(std::uint32_t node, Command command, Timestamp now);
  void report_exit(const Execution& execution, Timestamp now);
  void fall_silent(std::uint32_t node, Timestamp now);
  void speak_again(std::uint32_t node, Timestamp now);
  void post(Command command, Timestamp when);
  void breach(std::string what);

  Random random_;
  ScriptFor script_for_;
  FakeTimes times_;
  ReportFaults faults_;
  std::vector<Node> nodes_;
  std::map<std::string, std::uint32_t, std::less<>> names_;
  std::map<TaskKey, Execution> executions_;
  std::priority_queue<Due, std::vector<Due>, Later> agenda_;
  std::uint64_t next_order_ = 0;
  std::map<std::uint64_t, Command> letters_;
  std::uint64_t next_letter_ = 0;
  std::vector<Command> arrived_;
  std::uint64_t live_ = 0;
  std::optional<std::string> violation_;
};

}  // namespace berth::backend
