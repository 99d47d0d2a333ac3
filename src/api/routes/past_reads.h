#pragma once
// Reads of the past: ?at=SEQ answers as the state was after that event, ?at=TIME as it was then.

#include "api/http/router.h"
#include "api/service.h"

namespace berth::api {

// Returns the same table, in which the reads of the cluster, queues, nodes, live jobs, usage and bills take `at`, and
// all others refuse it and say why. What the subject may see goes by its roles of today, twice: on the state of now and
// on the past one. Lists of then have no finished jobs.
http::Router with_past_reads(const http::Router& open, Service& service);

}  // namespace berth::api
