#pragma once
// What is so now, as gauges: the fleet, the queues and who waits in them. Read from the state when somebody asks, with
// the functions behind the API's own views, so that no two answers of one moment differ.

#include "api/service.h"
#include "telemetry/exposition.h"

namespace berth::daemon {

void add_gauges(const api::View& view, telemetry::Exposition& out);

}  // namespace berth::daemon
