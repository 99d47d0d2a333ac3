#pragma once
// Where in its volume a task's directory is. That of a job's own bears the mark of the server's log: another server,
// and this one after a new log, gives the same ids to other jobs, and no job may take the checkpoint of another for its
// own.

#include <string>
#include <string_view>

#include "model/effect.h"
#include "model/ids.h"

namespace berth {

// Returns eight hexadecimal digits that stand for the identity of a log.
std::string mark_of_log(std::string_view log);

// Returns the directory of the mount in its volume, such as job-0f3a99c2-12/checkpoint or what the job states; empty:
// the volume itself.
std::string directory_in_volume(const TaskVolume& mount, JobId job, std::string_view log);

}  // namespace berth
