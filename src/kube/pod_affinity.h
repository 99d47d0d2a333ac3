#pragma once
// Required affinity and anti-affinity between pods, as terms of berth (docs/affinity.md): labels that are equal, and
// the domain. The namespace of a pod is one more label. What cannot be said so is refused by name.

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "model/node.h"

namespace berth::kube {

inline constexpr std::string_view kNamespaceLabel = "berth.dev/namespace";

struct PodTerm {
  Labels labels;         // ascending; of the pods that it means
  std::string key = {};  // label of nodes: nodes with the same value are one domain
  bool operator==(const PodTerm&) const = default;
};

struct PodTerms {
  Labels labels;  // of the pod itself, as terms of others mean them
  std::vector<PodTerm> near;
  std::vector<PodTerm> apart;
  std::string problem;  // what of it berth cannot obey; empty: nothing
  bool operator==(const PodTerms&) const = default;
  bool has_terms() const { return !near.empty() || !apart.empty(); }
};

PodTerms read_pod_terms(const boost::json::object& pod);

}  // namespace berth::kube
