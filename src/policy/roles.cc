#include "policy/roles.h"

#include <array>

namespace berth::policy {
namespace {

constexpr std::size_t kRoles = EnumNames<Role>::kNames.size();

struct Row {
  Verb verb;
  std::array<Reach, kRoles> reach;
};

constexpr Reach N = Reach::kNone;
constexpr Reach O = Reach::kOwn;
constexpr Reach A = Reach::kAll;

// clang-format off
constexpr std::array<Row, EnumNames<Verb>::kNames.size()> kTable{{
    //                         viewer member lead org-admin finance auditor operator admin
    {Verb::kSeeQueue,         {A,     A,     A,   A,        A,      A,      A,       A}},
    {Verb::kSeeJob,           {A,     O,     A,   A,        N,      A,      A,       A}},
    {Verb::kReadLog,          {N,     O,     A,   N,        N,      N,      N,       A}},
    {Verb::kSubmit,           {N,     O,     O,   O,        N,      N,      N,       A}},
    {Verb::kStopJob,          {N,     O,     A,   A,        N,      N,      A,       A}},
    {Verb::kHoldJob,          {N,     O,     A,   A,        N,      N,      A,       A}},
    {Verb::kPrioritizeJob,    {N,     O,     A,   A,        N,      N,      N,       A}},
    {Verb::kMoveJob,          {N,     N,     N,   N,        N,      N,      A,       A}},
    {Verb::kReportCheckpoint, {N,     O,     O,   O,        N,      N,      N,       A}},
    {Verb::kSeeUsage,         {A,     O,     A,   A,        A,      A,      A,       A}},
    {Verb::kSeeNodes,         {N,     N,     N,   N,        N,      A,      A,       A}},
    {Verb::kManageNodes,      {N,     N,     N,   N,        N,      N,      A,       A}},
    {Verb::kSeeConfig,        {N,     N,     N,   N,        N,      A,      A,       A}},
    {Verb::kChangeConfig,     {N,     N,     N,   N,        N,      N,      N,       A}},
    {Verb::kSeeEvents,        {N,     N,     N,   N,        N,      A,      N,       A}},
    {Verb::kSeeServer,        {N,     N,     N,   N,        N,      A,      A,       A}},
    {Verb::kConfirmClock,     {N,     N,     N,   N,        N,      N,      A,       A}},
    {Verb::kManageTokens,     {N,     N,     N,   N,        N,      N,      N,       A}},
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

}  // namespace berth::policy
