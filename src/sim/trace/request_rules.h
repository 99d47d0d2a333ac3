#pragma once
// What every format must say alike about the resources of a job or a node, so that the same row means the same thing
// whoever published it.

#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/table.h"

namespace berth::sim {

// "V100M32|V100M16": any of these. Faults on an empty alternative.
std::vector<std::string> gpu_model_alternatives(Row& row, std::string_view column);

// gpu_milli of each GPU: 1000 where the source is silent; 0 for a job without GPUs. Faults where the value cannot be.
std::int64_t gpu_share_milli(Row& row, std::string_view column, std::int64_t gpus);

// CPU and memory of a worker: nothing is asked for where the source is silent.
std::int64_t cpu_of_worker(Row& row, std::string_view column);
std::int64_t memory_of_worker(Row& row, std::string_view column);

// CPU and memory of a node: more than anybody asks for where the source is silent.
std::int64_t cpu_of_node(Row& row, std::string_view column);
std::int64_t memory_of_node(Row& row, std::string_view column);

// Adds the job or node, with the defaults that it took, unless its row has a fault. A job without a stated model may
// run on any.
void add_if_sound(Row& row, TraceJob job, RowSink& sink);
void add_if_sound(Row& row, TraceNode node, RowSink& sink);

}  // namespace berth::sim
