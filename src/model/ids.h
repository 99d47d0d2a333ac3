#pragma once
// The ids of the model. Ids of queues, nodes and GPU models are dense and index vectors. Job ids only grow and are
// never reused.

#include "base/strong_id.h"

namespace berth {

using JobId = StrongId<struct JobTag, std::uint64_t>;
using NodeId = StrongId<struct NodeTag>;
using QueueId = StrongId<struct QueueTag>;
using GpuModelId = StrongId<struct GpuModelTag, std::uint16_t>;
using DomainId = StrongId<struct DomainTag>;  // a topology domain, numbered by one state
using TrustDomainId = StrongId<struct TrustDomainTag, std::uint16_t>;

using Seq = std::uint64_t;

}  // namespace berth
