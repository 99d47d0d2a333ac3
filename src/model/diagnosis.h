#pragma once
// Findings of `berth doctor`: one line of the production checklist each (docs/doctor.md). The rules are in
// explain/doctor/doctor.h.

#include <string>

#include "base/fields.h"

namespace berth {

enum class CheckArea { kInfrastructure, kResources, kSecurity, kCost, kRecovery };
BERTH_ENUM_NAMES(CheckArea, "infrastructure", "resources", "security", "cost", "recovery");

// missing: it is not set up. broken: it is set up, and does not do what it is for. cannot-be-seen: the server has no
// means to know.
enum class CheckResult { kOk, kMissing, kBroken, kUnseen };
BERTH_ENUM_NAMES(CheckResult, "ok", "missing", "broken", "cannot-be-seen");

struct Finding {
  CheckArea area = CheckArea::kInfrastructure;
  std::string check;  // its name, such as backups
  CheckResult result = CheckResult::kOk;
  std::string evidence;  // what was seen, with numbers: a whole sentence
  std::string remedy;    // the command or key that mends it; empty: ok
};

}  // namespace berth
