#pragma once
// Mix: the requests that the fleet is expected to serve, as the most frequent groups of equal requests with integer
// weights. It is given, or learned from submitted jobs. Refused jobs count too; otherwise what is scarce would look
// unwanted.
//
// Learning is bounded. At most kTracked distinct requests are counted. A new request beyond that takes the place of the
// rarest one and inherits its count (Space-Saving, Metwally et al., ICDT'05). When the counts reach kAgeAt, all are
// halved, so that the mix follows the users. The visible groups are updated only when the number of observations has
// grown by a quarter, so that values computed from them can be cached.
//
// One group is added to the observed ones: a request for a whole node of the largest size, with the mean CPU per GPU of
// the others and weight kWholeNodePerMille of the total. Without it, a mix that has not seen a large gang yet, or has
// dropped it as too rare, would break up the last empty node for nothing.

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
  static constexpr std::size_t kGroups = 64;  // the fewest that cover 95 % of the counts, and at most this many
  static constexpr std::int64_t kAgeAt = 1 << 17;
  static constexpr std::int64_t kWholeNodePerMille = 6;

  // `node_gpus` is the number of GPUs of the largest node; 0 leaves the whole-node group out.
  explicit Mix(std::int32_t node_gpus) : node_gpus_(node_gpus) {}

  // Returns a mix with exactly these groups and nothing learned.
  static Mix given(std::span<const Group> groups, std::int32_t node_gpus);

  // Counts `times` such requests. Returns true if `groups()` changed.
  bool observe(const Request& request, std::int64_t times = 1);
  // Sets the number of GPUs of the largest node. Returns true if `groups()` changed.
  bool set_node_gpus(std::int32_t node_gpus);

  std::int32_t node_gpus() const { return node_gpus_; }
  std::span<const Group> groups() const { return groups_; }
  std::int64_t total_weight() const { return total_weight_; }
  // Returns the milli-GPUs that all groups request, each multiplied by its weight.
  std::int64_t weighted_milli() const { return weighted_milli_; }

  // The mix as plain values, for checkpoints. load() returns false if save() cannot have written them.
  struct Saved {
    std::int32_t node_gpus = 0;
    std::int64_t regroup_at = 1;
    std::vector<Group> counts;  // every counted request
    std::vector<Group> groups;  // the visible groups, without the whole-node group
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
  std::int64_t observed_ = 0;  // sum of counts_
  std::int64_t regroup_at_ = 1;
  std::vector<Group> counted_;  // the most frequent requests with their counts
  std::vector<Group> groups_;   // the same with the whole-node group, as weights
  std::int64_t total_weight_ = 0;
  std::int64_t weighted_milli_ = 0;
};

}  // namespace berth::state::fragmentation
