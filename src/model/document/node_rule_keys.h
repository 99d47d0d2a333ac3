#pragma once
// Node rules and tolerations where a job document writes them as maps, in Kubernetes' words. As lines of text they are
// those of model/node_rule.h and model/toleration.h.
//
//   {key: zone, operator: In, values: [a, b]}         one condition; `field: metadata.name` for the node's name
//   {any: [[CONDITION, CONDITION], [CONDITION]]}      terms of conditions; one term must hold
//   {key: team, operator: Equal, value: a, effect: NoExecute}

#include <string>

#include "model/document/reading.h"
#include "model/node_rule.h"

namespace berth::document {

// Both read an item of the list, a line or a map, and refuse what is wrong with it at its place.
NodeRule node_rule_of(const Value& item);
std::string toleration_of(const Value& item);

// Returns the rule as a map with `any`.
Node rule_node(const NodeRule& rule);

}  // namespace berth::document
