#pragma once
// Roles that are granted by command, beside those of the configuration file, and subjects whose access is ended.

#include "base/result.h"
#include "control/batch.h"
#include "control/handle.h"
#include "model/command.h"

namespace berth::control {

Result<Reply> bind_role(Batch& batch, const BindRole& command);
Result<Reply> block_subject(Batch& batch, const BlockSubject& command);

// Returns an error if nobody would have the role admin at the root without this token. The token in the data directory
// may revoke it all the same: it can administer without it.
Result<void> check_admins_after(const Batch& batch, const RevokeToken& command);

// Returns an error if the configuration would take the role admin at the root from the last subject that has it. The
// token in the data directory and `berth serve` itself may: they can administer whatever the roles are.
Result<void> check_admins_after(const Batch& batch, const ApplyConfig& command);

}  // namespace berth::control
