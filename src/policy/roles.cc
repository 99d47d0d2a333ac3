#include "policy/roles.h"

#include <array>

namespace berth::policy {
namespace {

constexpr std::size_t kRoles = EnumNames<Role>::kNames.size();

struct Row {
  Verb verb;
  std::array<Reach, kRoles> reach;
};

constexpr Reach kNo = Reach::kNone;
constexpr Reach kOwn = Reach::kOwn;
constexpr Reach kAll = Reach::kAll;

// clang-format off
constexpr std::array<Row, EnumNames<Verb>::kNames.size()> kTable{{
    // In the order of Role: viewer, member, lead, org-admin, finance, auditor, operator, admin.
    {Verb::kSeeQueue,         {kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll}},
    {Verb::kSeeJob,           {kAll, kOwn, kAll, kAll, kNo, kAll, kAll, kAll}},
    {Verb::kReadLog,          {kNo, kOwn, kAll, kNo, kNo, kNo, kNo, kAll}},
    {Verb::kSubmit,           {kNo, kOwn, kOwn, kOwn, kNo, kNo, kNo, kAll}},
    {Verb::kStopJob,          {kNo, kOwn, kAll, kAll, kNo, kNo, kAll, kAll}},
    {Verb::kHoldJob,          {kNo, kOwn, kAll, kAll, kNo, kNo, kAll, kAll}},
    {Verb::kPrioritizeJob,    {kNo, kOwn, kAll, kAll, kNo, kNo, kNo, kAll}},
    {Verb::kMoveJob,          {kNo, kNo, kNo, kNo, kNo, kNo, kAll, kAll}},
    {Verb::kReportCheckpoint, {kNo, kOwn, kOwn, kOwn, kNo, kNo, kNo, kAll}},
    {Verb::kSeeUsage,         {kAll, kOwn, kAll, kAll, kAll, kAll, kAll, kAll}},
    {Verb::kSeeNodes,         {kNo, kNo, kNo, kNo, kNo, kAll, kAll, kAll}},
    {Verb::kManageNodes,      {kNo, kNo, kNo, kNo, kNo, kNo, kAll, kAll}},
    {Verb::kSeeConfig,        {kNo, kNo, kNo, kNo, kNo, kAll, kAll, kAll}},
    {Verb::kChangeConfig,     {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}},
    {Verb::kSeeEvents,        {kNo, kNo, kNo, kNo, kNo, kAll, kNo, kAll}},
    {Verb::kSeeServer,        {kNo, kNo, kNo, kNo, kNo, kAll, kAll, kAll}},
    {Verb::kConfirmClock,     {kNo, kNo, kNo, kNo, kNo, kNo, kAll, kAll}},
    {Verb::kManageTokens,     {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}},
    {Verb::kManageBilling,    {kNo, kNo, kNo, kNo, kAll, kNo, kNo, kAll}},
    {Verb::kReportQuantities, {kNo, kNo, kNo, kNo, kAll, kNo, kAll, kAll}},
    {Verb::kManageRules,      {kNo, kNo, kNo, kAll, kNo, kNo, kNo, kAll}},
    {Verb::kChangeQueue,      {kNo, kNo, kNo, kAll, kNo, kNo, kAll, kAll}},
    {Verb::kManageRoles,      {kNo, kNo, kAll, kAll, kNo, kNo, kNo, kAll}},
    {Verb::kSeeAudit,         {kNo, kNo, kNo, kAll, kNo, kAll, kNo, kAll}},
    {Verb::kBreakGlass,       {kNo, kNo, kNo, kNo, kNo, kNo, kAll, kAll}},
}};
// clang-format on

constexpr bool rows_are_in_order() {
  for (std::size_t verb = 0; verb < kTable.size(); ++verb) {
    if (kTable[verb].verb != static_cast<Verb>(verb)) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

}  // namespace

Reach reach_of(Role role, Verb verb) {
  return kTable[static_cast<std::size_t>(verb)].reach[static_cast<std::size_t>(role)];
}

bool may_grant(Role granter, Role granted) {
  switch (granter) {
    case Role::kAdmin:
      return true;
    case Role::kOrgAdmin:
      return granted != Role::kOperator && granted != Role::kAdmin;
    case Role::kLead:
      return granted == Role::kViewer || granted == Role::kMember;
    case Role::kViewer:
    case Role::kMember:
    case Role::kFinance:
    case Role::kAuditor:
    case Role::kOperator:
      return false;
  }
  return false;
}

}  // namespace berth::policy
