#pragma once
// The mix of requests that the fleet is expected to serve: the most frequent groups of alike requests, with integer
// weights. It is given, or learned from what arrives (refused requests too, else what is scarce would look unwanted).
//
// Learning is bounded. At most kTracked distinct requests are counted; a new one then takes the place of the rarest and
// inherits its count (Space-Saving, Metwally et al., ICDT'05). When the counts reach kAgeAt they are all halved, so
// that the mix follows the users. The groups that others see change only when the number of observations has grown by a
// quarter, so that values computed from them can be kept.
//
// One group is nobody's: with weight kWholeNodePerMille the mix expects a request for a whole node of the largest size,
// with the mean CPU per GPU of the others. A mix that has not yet seen a large gang, or has cut it off as too rare,
// must not break up the last empty node for nothing.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/fields.h"
#include "state/fragmentation/shape.h"

namespace berth::state::fragmentation {

struct Group {
  Request request;
  std::int64_t weight = 0;
  bool operator==(const Group&) const = default;
  static constexpr auto fields() {
    return field_list(field("request", &Group::request), field("weight", &Group::weight));
  }
};

class Mix {
 public:
  static constexpr std::size_t kTracked = 1024;
  static constexpr std::size_t kGroups = 64;  // as few as reach 95 % of what was counted, and at most this many
  static constexpr std::int64_t kAgeAt = 1 << 17;
  static constexpr std::int64_t kWholeNodePerMille = 6;

  // `node_gpus`: the GPUs of the largest node; 0 leaves the whole-node group out.
  explicit Mix(std::int32_t node_gpus) : node_gpus_(node_gpus) {}

  // A mix known beforehand: these groups, all of them, and nothing learned so far.
  static Mix given(std::span<const Group> groups, std::int32_t node_gpus);

  // So many such requests have arrived. True when `groups()` changed by it.
  bool observe(const Request& request, std::int64_t times = 1);
  // The largest node has so many GPUs now. True when `groups()` changed by it.
  bool set_node_gpus(std::int32_t node_gpus);

  std::int32_t node_gpus() const { return node_gpus_; }
  std::span<const Group> groups() const { return groups_; }
  std::int64_t total_weight() const { return total_weight_; }
  // The milli-GPU that the requests ask for, each as often as its weight says.
  std::int64_t weighted_milli() const { return weighted_milli_; }

  // All of it as plain values, and back; `load` is false where they could not have been saved by this.
  struct Saved {
    std::int32_t node_gpus = 0;
    std::int64_t regroup_at = 1;
    std::vector<Group> counts;  // every request that is counted
    std::vector<Group> groups;  // what others see, without the whole node
    static constexpr auto fields() {
      return field_list(field("node_gpus", &Saved::node_gpus), field("regroup_at", &Saved::regroup_at),
                        field("counts", &Saved::counts), field("groups", &Saved::groups));
    }
  };
  Saved save() const;
  bool load(const Saved& saved);
  bool operator==(const Mix&) const = default;

 private:
  void count(const Request& request, std::int64_t times);
  void age();
  void regroup();
  void adopt(std::vector<Group> groups);
  void weigh();

  std::int32_t node_gpus_;
  std::map<Request, std::int64_t> counts_;
  std::int64_t observed_ = 0;  // the sum of counts_
  std::int64_t regroup_at_ = 1;
  std::vector<Group> counted_;  // the most frequent, as they were counted
  std::vector<Group> groups_;   // the same with the whole node, in weights
  std::int64_t total_weight_ = 0;
  std::int64_t weighted_milli_ = 0;
};

}  // namespace berth::state::fragmentation
