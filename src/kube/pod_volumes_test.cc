#include "kube/pod_volumes.h"

#include <doctest/doctest.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "kube/json_reading.h"
#include "kube/own_pod.h"
#include "kube/pod_object.h"
#include "model/volume_directory.h"

namespace berth::kube {
namespace {

StartTask mounting_start() {
  StartTask start;
  start.key = {JobId(12), 1, 0, 1};
  start.node = "n1";
  start.image = "a:1";
  start.command = {"x"};
  start.ranks = {{}};
  return start;
}

}  // namespace

TEST_CASE("each kind of a volume is the one of Kubernetes, and is in the pod once") {
  StartTask start = mounting_start();
  const VolumeConfig claim{"scratch", VolumeKind::kClaim, "scratch-pvc"};
  start.volumes = {{{"a", VolumeKind::kHostPath, "/srv/a"}, "", "/a", true},
                   {{"b", VolumeKind::kNfs, "nas:/export/b", {}, "", true}, "", "/b", true},
                   {claim, "", "/s", false},
                   {claim, "checkpoint", "/berth/checkpoint", false, true},
                   {claim, "runs/a", "/berth/outputs", false},
                   {{"d", VolumeKind::kCsi, "s3.csi.example.com", {{"bucket", "x"}}, "s3"}, "", "/d", false}};
  CHECK_EQ(boost::json::serialize(volumes_of(start)),
           R"([{"name":"shm","emptyDir":{"medium":"Memory"}},)"
           R"({"hostPath":{"path":"/srv/a","type":"Directory"},"name":"volume-0"},)"
           R"({"nfs":{"server":"nas","path":"/export/b","readOnly":true},"name":"volume-1"},)"
           R"({"persistentVolumeClaim":{"claimName":"scratch-pvc","readOnly":false},"name":"volume-2"},)"
           R"({"csi":{"driver":"s3.csi.example.com","readOnly":false,"volumeAttributes":{"bucket":"x"},)"
           R"("nodePublishSecretRef":{"name":"s3"}},"name":"volume-3"}])");
  CHECK_EQ(boost::json::serialize(mounts_of(start, "log")),
           R"([{"name":"shm","mountPath":"/dev/shm"},)"
           R"({"name":"volume-0","mountPath":"/a","readOnly":true,"recursiveReadOnly":"IfPossible"},)"
           R"({"name":"volume-1","mountPath":"/b","readOnly":true,"recursiveReadOnly":"IfPossible"},)"
           R"({"name":"volume-2","mountPath":"/s"},)"
           R"({"name":"volume-2","mountPath":"/berth/checkpoint","subPath":"job-)" +
               mark_of_log("log") +
               R"(-12/checkpoint"},)"
               R"({"name":"volume-2","mountPath":"/berth/outputs","subPath":"runs/a"},)"
               R"({"name":"volume-3","mountPath":"/d"}])");
}

TEST_CASE("a secret is named, and is files that only the group of the container may read") {
  StartTask start = mounting_start();
  start.secrets = {{{"hf", "hf-secret", {{"token", "/etc/hf"}}}, "/berth/secrets/hf"}};
  start.shm_mib = 512;
  CHECK_EQ(boost::json::serialize(volumes_of(start)),
           R"([{"name":"shm","emptyDir":{"medium":"Memory","sizeLimit":"512Mi"}},)"
           R"({"name":"secret-0","secret":{"secretName":"hf-secret","defaultMode":288}}])");
  CHECK_EQ(
      boost::json::serialize(mounts_of(start, "log")),
      R"([{"name":"shm","mountPath":"/dev/shm"},{"name":"secret-0","mountPath":"/berth/secrets/hf","readOnly":true}])");
  OwnPods own;
  own.space = "jobs";
  const auto pod = pod_of(start, own, {}, "berth", "log");
  CHECK_EQ(boost::json::serialize(pod).find("/etc/hf"), std::string::npos);
  CHECK_EQ(objects_at(pod, {"spec", "volumes"}).size(), 2);
}

TEST_CASE("a pod whose volumes never come is stuck; one that pulls its image is not") {
  StartTask start = mounting_start();
  OwnPods own;
  own.space = "jobs";
  auto pod = pod_of(start, own, {}, "berth", "log");
  pod["metadata"].as_object()["uid"] = "u";
  const auto stuck_with = [&](const char* status) {
    pod["status"] = boost::json::object{
        {"phase", "Pending"},
        {"conditions",
         boost::json::array{boost::json::object{{"type", "PodReadyToStartContainers"}, {"status", status}}}}};
    return read_pod(pod, "berth").value().stuck;
  };
  CHECK_NE(stuck_with("False").find("volumes, Secrets or network"), std::string::npos);
  CHECK_EQ(stuck_with("True"), "");
  const auto waiting = [](const char* reason) {
    return boost::json::array{boost::json::object{{"state", {{"waiting", {{"reason", reason}}}}}}};
  };
  pod["status"] = boost::json::object{{"phase", "Pending"},
                                      {"initContainerStatuses", waiting("ImagePullBackOff")},
                                      {"containerStatuses", waiting("PodInitializing")}};
  CHECK(read_pod(pod, "berth").value().stuck.starts_with("ImagePullBackOff"));
}

}  // namespace berth::kube
