#pragma once
// Rules for the resources of a job or a node that all formats share. So equal rows mean the same in each format.

#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/table.h"

namespace berth::sim {

// Returns the models of "V100M32|V100M16", of which any is accepted. An empty alternative is a fault.
std::vector<std::string> gpu_model_alternatives(Row& row, std::string_view column);

// Returns gpu_milli of each GPU: 1000 if the source does not state it, 0 for a job without GPUs. An impossible value is
// a fault.
std::int64_t gpu_share_milli(Row& row, std::string_view column, std::int64_t gpus);

// Return CPU and memory of a worker: 0 if the source does not state them.
std::int64_t cpu_of_worker(Row& row, std::string_view column);
std::int64_t memory_of_worker(Row& row, std::string_view column);

// Return CPU and memory of a node: practically unlimited if the source does not state them.
std::int64_t cpu_of_node(Row& row, std::string_view column);
std::int64_t memory_of_node(Row& row, std::string_view column);

// A job without a stated model may run on any model: takes that default.
void take_any_model(Row& row, const TraceJob& job);

// Adds the job or node and the defaults that it took, unless its row has a fault. A job without a stated model may run
// on any model.
void add_if_sound(Row& row, TraceJob job, RowSink& sink);
void add_if_sound(Row& row, TraceNode node, RowSink& sink);

}  // namespace berth::sim
