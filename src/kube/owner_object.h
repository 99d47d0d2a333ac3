#pragma once
// Objects that say which pods belong together, and which queues a namespace may use.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace berth::kube {

// The number of pods of a batch Job that are to run together: those of an indexed Job whose parallelism is its
// completions. All others run their pods as they come: 1.
std::int32_t gang_size_of_job(const boost::json::object& job);

// The least number of pods of a PodGroup (scheduling.k8s.io) that may start; 0 if it does not say.
std::int32_t gang_size_of_pod_group(const boost::json::object& group);

// The queues of the annotation berth.dev/queues of a Namespace, in order; the first is its default.
std::vector<std::string> queues_of_namespace(const boost::json::object& name_space);

// Returns the queue that a pod gets which asks for `asked` (empty: the default) in a namespace that may use `allowed`,
// or an empty text if it may not use that. An entry `research/*` stands for all queues below research. As a label
// cannot hold '/', `research.nlp` asks for research/nlp.
std::string queue_for(const std::string& asked, const std::vector<std::string>& allowed);

}  // namespace berth::kube
