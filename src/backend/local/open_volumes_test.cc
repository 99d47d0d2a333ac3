#include "backend/local/open_volumes.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace berth::backend {

TEST_CASE("volumes: a directory of a file server is not looked at on the way to one") {
  const std::string mounts =
      "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
      "30 22 0:40 / /mnt/nas rw,relatime shared:2 - nfs4 nas:/export rw\n"
      "31 22 0:41 / /mnt/two\\040words rw master:3 propagate_from:2 - fuse.s3fs s3fs rw\n"
      "32 22 0:42 / /scratch rw - tmpfs tmpfs rw\n"
      "33 22 259:3 / /srv rw - xfs /dev/nvme1n1 rw\n"
      "34 33 0:43 / /srv/a rw - nfs4 nas:/a rw\n";
  CHECK_EQ(path_before_file_servers("/mnt/nas/sets/x", mounts), "/mnt");
  CHECK_EQ(path_before_file_servers("/mnt/nas", mounts), "/mnt");
  CHECK_EQ(path_before_file_servers("/mnt/nasty", mounts), "/mnt/nasty");
  CHECK_EQ(path_before_file_servers("/mnt/two words/x", mounts), "/mnt");
  CHECK_EQ(path_before_file_servers("/scratch/x", mounts), "/scratch/x");
  CHECK_EQ(path_before_file_servers("/srv/a/b", mounts), "/srv");
  CHECK_EQ(path_before_file_servers("/srv/b", mounts), "/srv/b");
  CHECK_EQ(path_before_file_servers("/srv/b", "1 0 0:9 / / rw - nfs4 nas:/root rw\n"), "");
}

TEST_CASE("volumes: one of a queue, or a read-only one, is warned of where no closed directory is above it") {
  std::string name = "/tmp/berth-open-volumes-XXXXXX";
  const std::string directory = ::mkdtemp(name.data());
  std::filesystem::create_directories(directory + "/closed/set");
  ::chmod(directory.c_str(), 0755);
  ::chmod((directory + "/closed").c_str(), 0700);
  ClusterConfig config;
  config.volumes = {{"scratch", VolumeKind::kHostPath, directory + "/scratch"},
                    {"set", VolumeKind::kHostPath, directory + "/set", {}, "", true},
                    {"kept", VolumeKind::kHostPath, directory + "/closed/set", {}, "", true}};
  config.queues.resize(1);
  config.queues[0].path = "a";
  config.queues[0].volumes = {{"own", VolumeKind::kHostPath, directory + "/own"},
                              {"safe", VolumeKind::kHostPath, directory + "/closed/own"},
                              {"claim", VolumeKind::kClaim, "pvc"}};
  const auto warnings = warnings_of_open_volumes(config);
  std::filesystem::remove_all(directory);
  REQUIRE_EQ(warnings.size(), 2);
  CHECK(warnings[0].starts_with("volume 'set': every job reaches its host_path"));
  CHECK(warnings[1].starts_with("volume 'own' of queue 'a': every job reaches its host_path"));
  CHECK_EQ(warnings[1].find(directory), std::string::npos);
}

}  // namespace berth::backend
