#pragma once
// Everything that the server answers, as one table: /v1 on top of a Service, health, and /openapi.json generated from
// the same table. A route reads the request, asks the Service, and writes the answer; it decides nothing.
//
// Who asks is the subject of the bearer token. The subject `admin` may act for any user by naming one; any other may
// only submit as itself.

#include "api/http/router.h"
#include "api/service.h"

namespace berth::api {

// `service` must outlive the router.
http::Router make_router(Service& service);

}  // namespace berth::api
