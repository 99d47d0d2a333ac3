#pragma once
// Admission rules as part of a document: a map from the name of a rule to its keys (docs/admission.md).

#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/admission.h"
#include "model/document/document.h"
#include "model/document/reading.h"

namespace berth::document {

// What mistakes_in() tells of the rules is not checked here.
std::vector<AdmissionRule> read_admission_rules(const Value& value);

Node admission_node(const std::vector<AdmissionRule>& rules);

// Returns the rules in `text`, a document with the one key `admission`, which keep to mistakes_in(). An error has a
// line for each mistake, FILE:LINE:COLUMN: PATH: what is wrong; what would be right.
Result<std::vector<AdmissionRule>> read_rules(std::string_view text, std::string_view file);

// The keys of one rule.
Node rule_node(const AdmissionRule& rule);

}  // namespace berth::document
