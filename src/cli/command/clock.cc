#include <cstdlib>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

std::string told(const Json& clock) {
  const std::int64_t offset_ms = integer(clock, "offset_ms");
  const std::int64_t seconds = std::abs(offset_ms) / 1000;
  const std::string apart =
      seconds == 0 ? "equal" : document::duration_text(seconds) + (offset_ms < 0 ? " behind" : " ahead");
  return "server's clock  " + clock_text(show(clock, "time")) + "\nwall clock      " +
         clock_text(show(clock, "wall_time")) + " (" + apart +
         (is_true(clock, "followed") ? ", followed)\n" : ", NOT followed: set it right, or confirm it)\n");
}

}  // namespace

Result<int> run(const ClockOptions& options, Session& session) {
  auto clock = get(session, "/v1/clock");
  if (!clock) return clock.error();
  if (options.action == "confirm") {
    if (!options.confirmed && !is_true(*clock, "followed")) {
      session.out << told(*clock);
      return invalid(
          "confirming says that the wall clock is right. Time limits, bills and retention then count the time between "
          "as time that has passed. If that is so, add --yes");
    }
    clock = answer_of(session.server.post(query("/v1/clock/confirm", {{"offset_ms", show(*clock, "offset_ms")}}), ""));
    if (!clock) return clock.error();
  }
  session.out << formatted(*clock, options.show.format, [&] { return told(*clock); });
  return kOk;
}

}  // namespace berth::cli
