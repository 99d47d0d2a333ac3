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

// What a Namespace may use, by its annotations.
struct NamespaceTerms {
  std::vector<std::string> queues;            // berth.dev/queues, in order; the first is its default
  std::vector<std::string> priority_classes;  // berth.dev/priority-classes; `*` is every one
  bool waits_for_lost_nodes = false;          // berth.dev/on-lost-contact is `wait`: its new pods replace none
};
NamespaceTerms terms_of_namespace(const boost::json::object& name_space);

// Whether pods of a namespace with these terms may ask for the priority class; empty is berth's default class, which
// all may use.
bool may_use_class(const std::string& priority_class, const NamespaceTerms& terms);

// Whether the terms have the class by its own name.
bool names_class(const std::string& priority_class, const NamespaceTerms& terms);

// Returns the queue that a pod gets which asks for `asked` (empty: the default) in a namespace that may use `allowed`,
// or an empty text if it may not use that. An entry `research/*` stands for all queues below research. As a label
// cannot hold '/', `research.nlp` asks for research/nlp.
std::string queue_for(const std::string& asked, const std::vector<std::string>& allowed);

}  // namespace berth::kube
