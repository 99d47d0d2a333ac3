#pragma once
// Claims, volumes and storage classes of the API server: which nodes the volumes of a pod allow, and what a claim that
// has no volume yet waits for.

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/node_rule.h"

namespace berth::kube {

// On an unbound claim, the node for which its provisioner makes the volume.
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";

struct ClaimObject {
  std::string uid;
  std::string version;  // resourceVersion
  std::string storage_class;
  std::string volume;  // the PersistentVolume; empty: none yet
  std::string owner_uid;
  std::string selected_node;
  bool bound = false;
  bool lost = false;         // its volume is gone
  bool leaving = false;      // it is being deleted
  bool for_one_pod = false;  // ReadWriteOncePod
};

struct VolumeObject {
  std::optional<NodeRule> rule;  // absent: it can be used from any node
  std::string claim;             // NAMESPACE/NAME that it is for; empty: none
  std::string driver = {};       // of CSI, which attaches it; empty: none
  bool operator==(const VolumeObject&) const = default;
};

struct StorageClassObject {
  bool waits_for_consumer = false;  // volumes are made for the node of the pod that uses them
  bool provisions = false;          // it has a provisioner
  std::optional<NodeRule> rule;     // allowedTopologies
  std::string provisioner = {};
  bool operator==(const StorageClassObject&) const = default;
};

// How many volumes a node attaches at most, by driver; without an entry as many as there are.
using AttachLimits = std::map<std::string, std::int64_t>;
// Reads a CSINode, which has the name of its node.
AttachLimits read_attach_limits(const boost::json::object& csi_node);
// Returns the label of the nodes that can attach `count` more volumes of the driver.
std::string label_of_attaching(std::string_view driver, std::int64_t count);

ClaimObject read_claim(const boost::json::object& claim);
VolumeObject read_volume(const boost::json::object& volume);
StorageClassObject read_storage_class(const boost::json::object& storage_class);

// A claim as a pod names it, in the pod's namespace.
struct PodClaim {
  std::string name;
  bool ephemeral = false;  // it was made for this very pod
  bool operator==(const PodClaim&) const = default;
};
// Returns the claims of the pod's volumes, each once, ascending by name.
std::vector<PodClaim> claims_of(const boost::json::object& pod);

enum class ClaimStage {
  kReady,        // it has its volume
  kChoosesNode,  // it gets one when a node is chosen
  kWaits,        // it has none, or may not be used: the pod waits
};

struct ClaimVerdict {
  ClaimStage stage = ClaimStage::kWaits;
  std::string why;               // kWaits
  std::optional<NodeRule> rule;  // nodes that the claim allows; absent: any
  std::string driver = {};       // that attaches its volume to the node; empty: none
};

// Judges a claim for a pod. `claim`, `volume` (of the claim) and `storage_class` (likewise) are null if there is no
// such object.
ClaimVerdict judge(const PodClaim& named, std::string_view pod_uid, const ClaimObject* claim,
                   const VolumeObject* volume, const StorageClassObject* storage_class);

// The body of a merge patch that writes the chosen node into the claim. It is refused if the claim has changed.
std::string select_node_patch(const ClaimObject& claim, const std::string& node);

}  // namespace berth::kube
