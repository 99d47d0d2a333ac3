#pragma once
// Node selectors of the API server as rules of berth (model/node_rule.h): those of a volume, a storage class, or a
// pod's required node affinity.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/node_rule.h"

namespace berth::kube {

// A rule, and what of it berth cannot obey; a term with such a thing in it allows no node.
struct SelectorRead {
  NodeRule rule;
  std::string problem;  // empty: nothing
};

// Reads a NodeSelector.
SelectorRead read_rule(const boost::json::object& selector);
// Reads one expression of a label; `op` is the word for its operator. Nothing if berth cannot obey it: `problem`, if it
// is empty, then says why.
std::optional<NodeExpression> read_expression(const boost::json::object& object, std::string_view op,
                                              std::string& problem);

// Returns the number with 16 hexadecimal digits.
std::string hex_of(std::uint64_t number);
// Returns a text that stands for the rule; equal rules have the same one.
std::string mark_of(const NodeRule& rule);

}  // namespace berth::kube
