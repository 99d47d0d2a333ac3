#pragma once
// What several tools show of a job, in Slurm's words. All but gpus_text require the job in full.

#include <string>
#include <string_view>

#include "slurm/job_rows.h"

namespace berth::slurm {

std::string or_null(const std::string& text);                      // "(null)" for nothing
std::string gpus_text(const JobRow& row);                          // "gres:gpu:2", "N/A"
std::string group_of(const JobRow& row, std::string_view member);  // a key of its only task group
std::string memory_text(const JobRow& row);                        // "100M", "0"
std::string file_of(const JobRow& row);                            // the file of its output
std::string error_file_of(const JobRow& row);
std::string input_file_of(const JobRow& row);
std::string wanted_nodes(const JobRow& row);    // of --nodelist; empty: any
std::string unwanted_nodes(const JobRow& row);  // of --exclude
std::string features_of(const JobRow& row);     // of --constraint: "a&b|c", "(null)"
std::string dependency_text(const JobRow& row);

}  // namespace berth::slurm
