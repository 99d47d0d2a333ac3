#pragma once
// One reader per format and file; read_trace.cc chooses among them. Each takes the unpacked text.

#include <string_view>

#include "base/result.h"
#include "sim/trace/row_sink.h"

namespace berth::sim {

Result<void> read_native_jobs(std::string_view text, RowSink& sink);
Result<void> read_native_nodes(std::string_view text, RowSink& sink);

// Alibaba clusterdata 2023 (cluster-trace-gpu-v2023): openb_pod_list_*.csv and openb_node_list_*.csv.
Result<void> read_openb_pods(std::string_view text, RowSink& sink);
Result<void> read_openb_nodes(std::string_view text, RowSink& sink);

// msr-fiddle/philly-traces: cluster_job_log (a JSON array) and cluster_machine_list.
Result<void> read_philly_jobs(std::string_view text, RowSink& sink);
Result<void> read_philly_machines(std::string_view text, RowSink& sink);

// S-Lab-System-Group/HeliosData: cluster_log.csv.
Result<void> read_helios_jobs(std::string_view text, RowSink& sink);

// sacct --parsable2 with any fields that hold JobID, Submit and one of AllocTRES and ReqTRES.
Result<void> read_slurm_jobs(std::string_view text, RowSink& sink);

}  // namespace berth::sim
