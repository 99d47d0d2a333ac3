// The document of a job with a remedy: what the owner would submit instead.

#include <algorithm>

#include "explain/remedy.h"
#include "model/document/job_document.h"

namespace berth::explain {
namespace {

using document::Node;

// Returns the members of `to` that `from` does not have so, and null for each that is absent in `to`.
Node merge_patch(const Node& from, const Node& to) {
  Node patch = document::map_node();
  for (const document::Entry& entry : to.entries) {
    const Node* before = from.find(entry.key);
    if (before == nullptr || document::to_json_text(*before) != document::to_json_text(entry.value))
      patch.set(entry.key, entry.value);
  }
  for (const document::Entry& entry : from.entries) {
    if (to.find(entry.key) == nullptr) patch.set(entry.key, Node());
  }
  return patch;
}

}  // namespace

std::string remedy_patch(const state::JobState& job, const Remedy& change) {
  if (remedy_by(change) != RemedyBy::kOwner) return {};
  if (change.kind == RemedyKind::kOtherPorts) return {};  // which port is free elsewhere is not said
  if (change.kind == RemedyKind::kPriority) {
    Node patch = document::map_node();
    patch.set("priority", document::integer_node(change.to));
    return document::to_json_text(patch);
  }
  const Node patch = merge_patch(document::job_node(job.spec), document::job_node(changed(job, change).spec));
  return patch.entries.empty() ? "" : document::to_json_text(patch);
}

}  // namespace berth::explain
