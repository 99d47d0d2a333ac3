#pragma once
// Objects that own pods: whose pods are one gang, how many there are, and in which order.
//
// Jobs and PodGroups come with Kubernetes. The other kinds come with operators: a cluster that does not have the kind
// does not serve its path. What their controllers write into the labels and annotations of pods says to which object a
// pod belongs; the object says how many pods there will be.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/cluster.h"

namespace berth::kube {

struct WorkloadKind {
  Kind kind;
  std::string_view path;    // where the API server serves it
  std::string_view prefix;  // of the ids of its objects, with '/'
  std::string_view name;    // such as JobSet
};
// Returns the kinds that operators bring.
std::span<const WorkloadKind> workload_kinds();
// Returns null for kinds that come with Kubernetes.
const WorkloadKind* workload_kind(Kind kind);

// Returns true for the kinds whose objects own pods.
bool owns_pods(Kind kind);

// Pods of one kind within a workload.
struct Role {
  std::string name;
  std::int32_t count = 0;
  std::int32_t width = 1;  // pods of each of its Jobs or replicas
  bool operator==(const Role&) const = default;
};

// What an object says of its pods.
struct Workload {
  std::vector<Role> roles;      // in rank order
  bool apart = false;           // its roles start one after another: each is a gang of its own
  bool grows = false;           // the roles are the least; each pod beyond is a job of its own, once the gang runs
  bool over = false;            // it has completed or failed: its controller makes no pods any more
  std::set<std::int32_t> done;  // completion indexes that need no pod any more
  std::string queue;            // by its labels; empty: none

  std::int32_t size() const;
  // Returns the first rank of the role's pods, and its place among the roles; that of a role that it has not: the end.
  std::int32_t offset_of(std::string_view role) const;
  std::int32_t place_of(std::string_view role) const;
  const Role* role(std::string_view name) const;
  bool operator==(const Workload&) const = default;
};

// Returns what the object says. A gang of unknown size has no roles.
Workload read_workload(Kind kind, const boost::json::object& object);

// To which workload a pod belongs, by what its controller has written into it.
struct Membership {
  std::string owner;      // id of the object, PREFIX/NAMESPACE/NAME; empty: it belongs to none
  std::string kind;       // such as JobSet
  std::string name;       // of the object
  std::string part;       // which gang of the object, where it has several; empty: the one
  std::string role;       // empty: pods of one kind
  std::int32_t size = 0;  // pods of its gang, where the pod itself says it; else 0
  std::int32_t job = -1;  // number of its Job or replica within the role; -1: none
  std::int32_t index = -1;
  bool serves = false;  // it answers requests: an inference job unless it says otherwise
};
Membership membership_of(const boost::json::object& pod);

}  // namespace berth::kube
