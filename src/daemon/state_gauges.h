#pragma once
// Gauges of the present: the fleet, the queues and their pending jobs. They are read from the state at each request, by
// the functions behind the views of the API. So the answers of one moment agree.

#include "api/service.h"
#include "telemetry/exposition.h"

namespace berth::daemon {

void add_gauges(const api::View& view, telemetry::Exposition& out);

}  // namespace berth::daemon
