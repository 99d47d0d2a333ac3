// Volumes, secrets and default images in configurations, and what of a job names them.

#include "model/document/volume_document.h"

#include <doctest/doctest.h>

#include "model/document/config_document.h"
#include "model/document/job_document.h"
#include "model/queue_volumes.h"

namespace berth::document {
namespace {

constexpr const char* kConfig = R"(volumes:
  scratch: {host_path: /srv/scratch}
secrets:
  hf-token: {kubernetes: hf, files: {token: /etc/berth/hf-token}}
default_image: base:1
queues:
  research:
    volumes:
      data: {nfs: "nas.example.com:/export/data", read_only: true}
      bucket: {csi: s3.csi.example.com, attributes: {bucket: b}, secret: s3}
    default_image: research:1
    queues:
      nlp: {volumes: {scratch: {claim: nlp-scratch}}}
  ads: {}
)";

ClusterConfig config_of(const std::string& text) {
  auto config = read_config(text, "c");
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  return std::move(*config);
}

std::string refusal(const std::string& text) {
  const auto config = read_config(text, "c");
  return config ? "accepted" : config.error().message;
}

JobSpec job_of(const std::string& text) {
  auto job = read_job(text, "j");
  REQUIRE_MESSAGE(job.has_value(), job.error().message);
  return std::move(*job);
}

std::string job_refusal(const std::string& text) {
  const auto job = read_job(text, "j");
  return job ? "accepted" : job.error().message;
}

}  // namespace

TEST_CASE("a queue without shells closes all below it, and the top closes all") {
  const ClusterConfig config = config_of("queues: {vault: {shell: false, queues: {deep: {shell: true}}}, open: {}}");
  CHECK_EQ(queue_without_shell(config, "vault/deep"), "vault");
  CHECK_EQ(queue_without_shell(config, "vault"), "vault");
  CHECK_FALSE(queue_without_shell(config, "open"));
  CHECK_EQ(config_to_yaml(config_of(config_to_yaml(config))), config_to_yaml(config));
  const ClusterConfig closed = config_of("shell: false\nqueues: {open: {}}");
  CHECK_EQ(queue_without_shell(closed, "open"), "/");
  CHECK_EQ(config_of(config_to_yaml(closed)), closed);
  CHECK_NE(refusal("queues: {a: {shell: maybe}}").find("shell: 'maybe'"), std::string::npos);
}

TEST_CASE("a queue has the volumes, secrets and image of the queues above it, and of one name the nearest") {
  const ClusterConfig config = config_of(kConfig);
  CHECK_EQ(volume_of(config, "research/nlp", "scratch")->source, "nlp-scratch");
  CHECK_EQ(volume_of(config, "ads", "scratch")->source, "/srv/scratch");
  CHECK_EQ(volume_of(config, "research/nlp", "bucket")->attributes.front().second, "b");
  CHECK(volume_of(config, "ads", "data") == nullptr);
  CHECK_EQ(volume_names_of(config, "research/nlp"), std::vector<std::string_view>{"bucket", "data", "scratch"});
  CHECK_EQ(volume_names_of(config, "ads"), std::vector<std::string_view>{"scratch"});
  CHECK_EQ(secret_of(config, "ads", "hf-token")->files.front().second, "/etc/berth/hf-token");
  CHECK_EQ(default_image_of(config, "research/nlp"), "research:1");
  CHECK_EQ(default_image_of(config, "ads"), "base:1");
}

TEST_CASE("a configuration with volumes is written as it was read") {
  const ClusterConfig config = config_of(kConfig);
  CHECK(config_of(config_to_yaml(config)) == config);
  CHECK_EQ(diff_configs(config, config_of("queues: {research: {queues: {nlp: {}}}, ads: {}}")).size(), 11);
}

TEST_CASE("a volume that is none is refused at its place, with what would be right") {
  CHECK_EQ(refusal("volumes: {a: {}}\nqueues: {q: {}}"),
           "c:1:14: volumes.a: a volume has one of host_path, nfs, claim and csi, such as {host_path: /srv/data}");
  CHECK_EQ(refusal("volumes: {a: {host_path: /a, claim: b}}\nqueues: {q: {}}"),
           "c:1:14: volumes.a: a volume has one of host_path, nfs, claim and csi, such as {host_path: /srv/data}");
  for (const std::string path : {"srv", "/", "/srv/../etc", "/srv//x", "/srv/"})
    CHECK_NE(
        refusal("queues: {q: {volumes: {a: {host_path: '" + path + "'}}}}").find("is not an absolute path below /"),
        std::string::npos);
  CHECK_NE(refusal("queues: {q: {volumes: {a: {nfs: /export}}}}").find("is not SERVER:/PATH"), std::string::npos);
  CHECK_NE(refusal("queues: {q: {volumes: {a: {nfs: ''}}}}").find("is not SERVER:/PATH"), std::string::npos);
  CHECK_NE(refusal("queues: {q: {volumes: {a: {claim: A_b}}}}").find("PersistentVolumeClaim"), std::string::npos);
  CHECK_NE(refusal("queues: {q: {volumes: {a: {claim: b, secret: s}}}}").find("for csi alone"), std::string::npos);
  CHECK_NE(refusal("queues: {q: {volumes: {'a b': {claim: b}}}}").find("is not a name"), std::string::npos);
  CHECK_NE(refusal("queues: {q: {secrets: {a: {}}}}").find("it holds no value itself"), std::string::npos);
  CHECK_NE(refusal("queues: {q: {secrets: {a: {value: x}}}}").find("value"), std::string::npos);
  CHECK_NE(refusal("queues: {q: {secrets: {a: {files: {t: token}}}}}").find("absolute path"), std::string::npos);
  CHECK_NE(refusal("default_image: ' '\nqueues: {q: {}}").find("not the name of an image"), std::string::npos);
}

TEST_CASE("mounts and secrets are lines or maps, and are written as maps") {
  const JobSpec job = job_of(R"(command: [x]
mounts: ["data:/data:ro", {name: scratch, path: /scratch}]
secrets: [hf-token, {name: wandb, path: /run/wandb}]
shm: 16GiB
checkpoint: {volume: scratch, path: runs/a}
outputs: {volume: scratch}
)");
  CHECK(job.mounts == std::vector<Mount>{{"data", "/data", true}, {"scratch", "/scratch", false}});
  CHECK(job.secrets == std::vector<SecretMount>{{"hf-token", ""}, {"wandb", "/run/wandb"}});
  CHECK_EQ(job.secrets[0].place(), "/berth/secrets/hf-token");
  CHECK_EQ(job.shm_mib, 16 * 1024);
  CHECK(job.checkpoint.place == VolumePlace{"scratch", "runs/a"});
  CHECK(job.outputs == VolumePlace{"scratch", ""});
  CHECK(job_of(job_to_yaml(job)) == job);
  CHECK_EQ(job_of("command: [x]\nmounts: data:/d").mounts.size(), 1);
}

TEST_CASE("a line that is no mount is refused at its place") {
  for (const std::string line : {"data", "data:", "data:d", ":/d"})
    CHECK_NE(job_refusal("command: [x]\nmounts: ['" + line + "']").find("is not NAME:/PATH"), std::string::npos);
  CHECK_NE(job_refusal("command: [x]\nmounts: ['a:/d:rx']").find("neither ro nor rw"), std::string::npos);
  CHECK_NE(job_refusal("command: [x]\nmounts: [{name: a}]").find("needs a name and a path"), std::string::npos);
  CHECK_NE(job_refusal("command: [x]\nsecrets: ['a:b']").find("is not NAME or NAME:/PATH"), std::string::npos);
}

TEST_CASE("a place of a mount is a directory that is nobody else's") {
  for (const std::string good : {"/data", "/mnt/a b/c", "/devices"}) CHECK_EQ(problem_of_mount_place(good), "");
  for (const std::string bad : {"", "/", "data", "/a/../b", "/a/./b", "/a//b", "/a/", "/proc", "/sys/fs", "/dev/shm",
                                "/berth", "/berth/secrets/x", "/a:b", "/a\nb"})
    CHECK_NE(problem_of_mount_place(bad), "");
  for (const std::string good : {"a", "runs/17", "..a"}) CHECK_EQ(problem_of_volume_path(good), "");
  for (const std::string bad : {"", "/a", "../a", "a/..", "a/./b", "a//b", "a/"})
    CHECK_NE(problem_of_volume_path(bad), "");
}

}  // namespace berth::document
