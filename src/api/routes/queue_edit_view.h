#pragma once
// Changes of queues by command, as the API shows them: values as people write them, such as 8, 64GiB and 2h.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "model/queue_edit.h"
#include "state/state.h"

namespace berth::api {

boost::json::array limit_views(const std::vector<LimitChange>& limits);
boost::json::object edit_view(const QueueEdit& edit);

// The changes of the queue that are in force or lie below one that is, in their order.
boost::json::array edit_views(const state::State& state, const std::string& queue);

// One entry for each limit that the changes set: the value, what the file says, and who set it. Of several changes of
// one limit it is the last one.
boost::json::array over_file_views(const ClusterConfig& file, const QueueEdits& edits);

}  // namespace berth::api
