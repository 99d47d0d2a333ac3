#pragma once
// The scene of the scheduler's benchmark: a fleet of thousands of nodes that lives at 90 % of its GPUs, and a thousand
// queues four levels deep. Of the four branches of the tree three share two GPU models and are held by their ceilings;
// the fourth has no ceiling but the third model, which is full, so that what waits there waits for places.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "base/timestamp.h"
#include "control/handle.h"
#include "control/iteration.h"
#include "model/cluster_config.h"
#include "model/command.h"
#include "model/job.h"
#include "sched_shapes.h"
#include "state/state.h"

namespace berth::bench {

struct Scene {
  state::State state;
  Random random{42};
  Timestamp now{1'000'000};
  Mix mix;
  ClusterConfig config;
  std::vector<std::string> leaves;
  control::IterationMemory memory;
  std::size_t node_bytes = 0;
  bool all_save = false;  // on signal, those that are submitted from now on
  Hasher placed;          // where placements went that were taken back

  explicit Scene(std::size_t nodes);

  std::optional<control::Reply> command(const Command& command);
  // The configuration has changed.
  void apply_config() { command(ApplyConfig{config, "bench"}); }
  JobSpec spec_of(const Shape& shape, const std::string& queue) const;
  JobId submit(const JobSpec& spec) { return command(SubmitJob{spec, ""})->job; }
  // Starts the job where it fits best, without asking quota; cancels it where there is no place.
  bool start(JobId id);
  std::vector<Command> exits_of(JobId id) const;
  void end(JobId id);
  // Of all that has been bound the tasks begin.
  void begin_all();

  Shape draw() { return mix.draw(random); }
  const std::string& some_leaf() { return random.pick(leaves); }
  // In the branch that waits for places, or in the others.
  const std::string& some_leaf(bool for_places);
  JobId some_running();
  double filled(std::size_t dim) const;

  // To 90 % of the GPUs, then as long again with jobs that leave and others that come.
  void live();
  // The three branches are full by their ceilings: nothing of what waits there may start before something below ends.
  void close_branches();
  // Each user has some few shapes of the mix and sends them again and again. Returns the heap of one waiting job.
  std::size_t submit_pending(std::size_t count);
  // Room for whole nodes, made by ending what runs on the first ones.
  void make_room(std::size_t nodes);
  // The fleet is full of what others have borrowed, and nobody has a ceiling; the owner of a guarantee comes back.
  void lend_all_of_owner();
  // After that: every second team is guaranteed what it has, the branches are closed again, and starts are held by
  // estimates for whoever waits.
  void guarantee_and_hold();
  // Who was asked to leave for somebody and has not left yet.
  std::vector<JobId> leaving() const;
  JobSpec gang512(const std::string& queue) const;

 private:
  void register_node(std::size_t n);
  void fill(std::vector<JobId>& running, int refusals);
  double filled_shared() const;
};

// Of all that this thread has allocated.
std::size_t heap_bytes();

}  // namespace berth::bench
