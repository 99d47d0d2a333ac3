#include "kube/volume_object.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/hash.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

namespace json = boost::json;
constexpr std::size_t kMostDrivers = 100;
constexpr std::string_view kAttachLabel = "berth.dev/attaches-";

std::string name_of(const PodClaim& claim) { return "claim " + shown(claim.name, 253); }

}  // namespace

AttachLimits read_attach_limits(const json::object& csi_node) {
  AttachLimits limits;
  for (const json::object* driver : objects_at(csi_node, {"spec", "drivers"})) {
    const std::int64_t count = integer_at(*driver, {"allocatable", "count"}, -1);
    if (count >= 0 && limits.size() < kMostDrivers) limits[text_at(*driver, {"name"})] = count;
  }
  return limits;
}

std::string label_of_attaching(std::string_view driver, std::int64_t count) {
  return std::string(kAttachLabel) + hex_of(Hasher().add(driver).digest()) + "-" + std::to_string(count);
}

ClaimObject read_claim(const json::object& claim) {
  ClaimObject read;
  read.uid = text_at(claim, {"metadata", "uid"});
  read.version = text_at(claim, {"metadata", "resourceVersion"});
  read.storage_class = text_at(claim, {"spec", "storageClassName"});
  read.volume = text_at(claim, {"spec", "volumeName"});
  read.selected_node = annotation_at(claim, kSelectedNode);
  read.leaving = !text_at(claim, {"metadata", "deletionTimestamp"}).empty();
  const std::string phase = text_at(claim, {"status", "phase"});
  read.bound = phase == "Bound" && !read.volume.empty();
  read.lost = phase == "Lost";
  for (const json::object* owner : objects_at(claim, {"metadata", "ownerReferences"})) {
    if (true_at(*owner, {"controller"})) read.owner_uid = text_at(*owner, {"uid"});
  }
  if (const json::array* modes = array_at(claim, {"spec", "accessModes"})) {
    read.for_one_pod = std::any_of(modes->begin(), modes->end(), [](const json::value& mode) {
      return mode.is_string() && mode.get_string() == "ReadWriteOncePod";
    });
  }
  return read;
}

VolumeObject read_volume(const json::object& volume) {
  VolumeObject read;
  if (const json::object* claim = object_at(volume, {"spec", "claimRef"}))
    read.claim = text_at(*claim, {"namespace"}) + "/" + text_at(*claim, {"name"});
  read.driver = text_at(volume, {"spec", "csi", "driver"});
  const json::object* required = object_at(volume, {"spec", "nodeAffinity", "required"});
  if (required == nullptr) return read;
  read.rule = read_rule(*required).rule;
  return read;
}

StorageClassObject read_storage_class(const json::object& storage_class) {
  StorageClassObject read;
  read.waits_for_consumer = text_at(storage_class, {"volumeBindingMode"}) == "WaitForFirstConsumer";
  read.provisioner = text_at(storage_class, {"provisioner"});
  read.provisions = !read.provisioner.empty() && read.provisioner != "kubernetes.io/no-provisioner";
  const auto topologies = objects_at(storage_class, {"allowedTopologies"});
  if (topologies.empty()) return read;
  read.rule.emplace();
  for (const json::object* term : topologies) {
    if (read.rule->terms.size() == kMaxRuleTerms) break;
    auto& all = read.rule->terms.emplace_back();
    bool sound = true;
    for (const json::object* object : objects_at(*term, {"matchLabelExpressions"})) {
      std::string problem;
      auto one = read_expression(*object, "In", problem);
      sound = sound && one && all.size() < kMaxRuleExpressions;
      if (sound) all.push_back(std::move(*one));
    }
    if (!sound) all.clear();  // then the term allows no node
  }
  return read;
}

std::vector<PodClaim> claims_of(const json::object& pod) {
  std::vector<PodClaim> claims;
  for (const json::object* volume : objects_at(pod, {"spec", "volumes"})) {
    PodClaim claim;
    claim.ephemeral = object_at(*volume, {"ephemeral"}) != nullptr;
    claim.name = claim.ephemeral ? text_at(pod, {"metadata", "name"}) + "-" + text_at(*volume, {"name"})
                                 : text_at(*volume, {"persistentVolumeClaim", "claimName"});
    if (!claim.name.empty()) claims.push_back(std::move(claim));
  }
  std::sort(claims.begin(), claims.end(), [](const PodClaim& a, const PodClaim& b) { return a.name < b.name; });
  const auto same = [](const PodClaim& a, const PodClaim& b) { return a.name == b.name; };
  claims.erase(std::unique(claims.begin(), claims.end(), same), claims.end());
  return claims;
}

ClaimVerdict judge(const PodClaim& named, std::string_view pod_uid, const ClaimObject* claim,
                   const VolumeObject* volume, const StorageClassObject* storage_class) {
  const auto waits = [&](const std::string& text) {
    return ClaimVerdict{ClaimStage::kWaits, name_of(named) + text, std::nullopt, {}};
  };
  if (claim == nullptr) return waits(" does not exist");
  if (claim->leaving) return waits(" is being deleted");
  if (claim->lost) return waits(" has lost its volume");
  if (named.ephemeral && claim->owner_uid != pod_uid) return waits(" was not made for this pod");
  if (claim->bound) {
    if (volume == nullptr) return waits(": its volume " + shown(claim->volume, 253) + " does not exist");
    return {ClaimStage::kReady, {}, volume->rule, volume->driver};
  }
  if (!claim->volume.empty() || claim->storage_class.empty()) return waits(" is not bound yet");
  const std::string its_class = ": its StorageClass " + shown(claim->storage_class, 253);
  if (storage_class == nullptr) return waits(" is not bound yet" + its_class + " does not exist");
  if (!storage_class->waits_for_consumer) return waits(" is not bound yet");
  if (!storage_class->provisions) {
    return waits(" is not bound yet" + its_class +
                 " makes no volumes, and berth chooses none of those that there are; name one in spec.volumeName");
  }
  return {ClaimStage::kChoosesNode, {}, storage_class->rule, storage_class->provisioner};
}

std::string select_node_patch(const ClaimObject& claim, const std::string& node) {
  return json::serialize(json::object{
      {"metadata",
       {{"uid", claim.uid}, {"resourceVersion", claim.version}, {"annotations", {{kSelectedNode, node}}}}}});
}

}  // namespace berth::kube
