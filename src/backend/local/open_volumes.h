#pragma once
// Which volumes a job reaches around its mounts. A task sees the machine's root, so `read_only` and the queue of a
// volume bind it only where a directory above the volume's keeps all users of tasks out.

#include <string>
#include <string_view>
#include <vector>

#include "model/cluster_config.h"

namespace berth::backend {

// Returns a sentence for each volume that is read-only, or of a queue, and that every job reaches by its path on this
// machine. No sentence has that path. It looks at the directories above each volume, and at none of a file server.
std::vector<std::string> warnings_of_open_volumes(const ClusterConfig& config);

// Returns `path` up to the first file server that is mounted on the way to it: a server that is away would hold up a
// look at it for long. `mounts` is as /proc/self/mountinfo has them.
std::string path_before_file_servers(const std::string& path, std::string_view mounts);

}  // namespace berth::backend
