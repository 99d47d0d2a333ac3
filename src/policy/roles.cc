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
    // In the order of Role: viewer, member, lead, org-admin, finance, auditor, operator, admin, metrics.
    {Verb::kSeeQueue,         {kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll, kNo}},
    {Verb::kSeeJob,           {kAll, kOwn, kAll, kAll, kNo, kAll, kAll, kAll, kNo}},
    {Verb::kReadLog,          {kNo, kOwn, kAll, kNo, kNo, kNo, kNo, kAll, kNo}},
    {Verb::kSubmit,           {kNo, kOwn, kOwn, kOwn, kNo, kNo, kNo, kAll, kNo}},
    {Verb::kStopJob,          {kNo, kOwn, kAll, kAll, kNo, kNo, kAll, kAll, kNo}},
    {Verb::kHoldJob,          {kNo, kOwn, kAll, kAll, kNo, kNo, kAll, kAll, kNo}},
    {Verb::kPrioritizeJob,    {kNo, kOwn, kAll, kAll, kNo, kNo, kNo, kAll, kNo}},
    {Verb::kMoveJob,          {kNo, kNo, kNo, kNo, kNo, kNo, kAll, kAll, kNo}},
    {Verb::kReportCheckpoint, {kNo, kOwn, kOwn, kOwn, kNo, kNo, kNo, kAll, kNo}},
    {Verb::kSeeUsage,         {kAll, kOwn, kAll, kAll, kAll, kAll, kAll, kAll, kNo}},
    {Verb::kSeeNodes,         {kNo, kNo, kNo, kNo, kNo, kAll, kAll, kAll, kNo}},
    {Verb::kManageNodes,      {kNo, kNo, kNo, kNo, kNo, kNo, kAll, kAll, kNo}},
    {Verb::kSeeConfig,        {kNo, kNo, kNo, kNo, kNo, kAll, kAll, kAll, kNo}},
    {Verb::kChangeConfig,     {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll, kNo}},
    {Verb::kSeeEvents,        {kNo, kNo, kNo, kNo, kNo, kAll, kNo, kAll, kNo}},
    {Verb::kSeeServer,        {kNo, kNo, kNo, kNo, kNo, kAll, kAll, kAll, kNo}},
    {Verb::kSeeMetrics,       {kNo, kNo, kNo, kNo, kNo, kAll, kAll, kAll, kAll}},
    {Verb::kConfirmClock,     {kNo, kNo, kNo, kNo, kNo, kNo, kAll, kAll, kNo}},
    {Verb::kManageTokens,     {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll, kNo}},
    {Verb::kManageBilling,    {kNo, kNo, kNo, kNo, kAll, kNo, kNo, kAll, kNo}},
    {Verb::kReportQuantities, {kNo, kNo, kNo, kNo, kAll, kNo, kAll, kAll, kNo}},
    {Verb::kManageRules,      {kNo, kNo, kNo, kAll, kNo, kNo, kNo, kAll, kNo}},
    {Verb::kChangeQueue,      {kNo, kNo, kNo, kAll, kNo, kNo, kAll, kAll, kNo}},
    {Verb::kManageRoles,      {kNo, kNo, kAll, kAll, kNo, kNo, kNo, kAll, kNo}},
    {Verb::kSeeAudit,         {kNo, kNo, kNo, kAll, kNo, kAll, kNo, kAll, kNo}},
    {Verb::kBreakGlass,       {kNo, kNo, kNo, kNo, kNo, kNo, kAll, kAll, kNo}},
    {Verb::kOpenShell,        {kNo, kOwn, kOwn, kOwn, kNo, kNo, kNo, kAll, kNo}},
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
      // What a scraper reads is of the whole cluster.
      return granted != Role::kOperator && granted != Role::kAdmin && granted != Role::kMetrics;
    case Role::kLead:
      return granted == Role::kViewer || granted == Role::kMember;
    case Role::kViewer:
    case Role::kMember:
    case Role::kFinance:
    case Role::kAuditor:
    case Role::kOperator:
    case Role::kMetrics:
      return false;
  }
  return false;
}

}  // namespace berth::policy
