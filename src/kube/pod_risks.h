#pragma once
// What in a Pod an admission rule may forbid (model/pod_risk.h). All containers count: those of `containers` and of
// `initContainers`, sidecars among them. Ephemeral containers do not: they come into pods that run.

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "model/effect.h"
#include "model/pod_risk.h"

namespace berth::kube {

// Returns the risks of the pod, ascending, at most kMostRisks of an option. `vendors`: resources that count as devices
// besides NVIDIA's. Text of the pod is cut and without control characters; of variables only names are in it.
std::vector<PodRisk> risks_of(const boost::json::object& pod, const std::vector<std::string>& vendors);

// Returns all of both, as risks_of() does.
std::vector<PodRisk> joined(std::vector<PodRisk> a, const std::vector<PodRisk>& b);

// Returns those of the risks that are forbidden and none of those that were judged. Absent: it is not known what was
// judged, and nothing goes beyond it.
std::vector<PodRisk> beyond(const std::vector<PodRisk>& risks, const PodRisks& judged,
                            const ForbiddenToPods& forbidden);

}  // namespace berth::kube
