#pragma once
// Admission rules as part of a document: a map from the name of a rule to its keys (docs/admission.md).

#include <vector>

#include "model/admission.h"
#include "model/document/document.h"
#include "model/document/reading.h"

namespace berth::document {

// What mistakes_in() tells of the rules is not checked here.
std::vector<AdmissionRule> read_admission_rules(const Value& value);

Node admission_node(const std::vector<AdmissionRule>& rules);

}  // namespace berth::document
