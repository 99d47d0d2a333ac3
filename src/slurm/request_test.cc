#include <doctest/doctest.h>

#include "slurm/job_request.h"
#include "slurm/job_script.h"

namespace berth::slurm {
namespace {

OrComplaint<JobRequest> request_of(const std::vector<std::string>& words) {
  return read_request(Tool::kSbatch, parse_words(Tool::kSbatch, words)->given, {1'790'000'000'000});
}

JobRequest good(const std::vector<std::string>& words) {
  const auto request = request_of(words);
  REQUIRE(std::holds_alternative<JobRequest>(request));
  return std::get<JobRequest>(request);
}

Complaint bad(const std::vector<std::string>& words) {
  const auto request = request_of(words);
  REQUIRE(std::holds_alternative<Complaint>(request));
  return std::get<Complaint>(request);
}

TEST_CASE("resources are counted for the one node of the job") {
  const JobRequest request = good({"-n4", "-c2", "--gpus-per-task=h100:1", "--mem-per-cpu=2G"});
  CHECK(request.cpus() == 8);
  CHECK(request.all_gpus() == 4);
  CHECK(request.gpu_type == "h100");
  CHECK(request.memory() == 16 * 1024);
  CHECK(good({"--gres=gpu:h100:2"}).gpus == 2);
  CHECK(good({"--gres=gpu"}).gpus == 1);
  CHECK(good({"-G", "a100"}).gpu_type == "a100");
  CHECK(good({"--mem=100"}).memory() == 100);
  CHECK(good({"--ntasks-per-node=3"}).cpus() == 3);
}

TEST_CASE("the last of several options wins, also where it is a list") {
  const JobRequest request = good({"-C", "a&b", "-J", "one", "-C", "c|d", "-J", "two"});
  CHECK(request.name == "two");
  CHECK(request.node_rules.at("constraint") == std::vector<std::string>{"c || d"});
}

TEST_CASE("mistakes have Slurm's words and exit codes") {
  CHECK(bad({"-t", "abc"}).errors.front() == "Invalid --time specification");
  CHECK(bad({"-t", "abc"}).code == 255);
  CHECK(bad({"-n", "0"}).errors.front() == "Invalid numeric value \"0\" for --ntasks.");
  CHECK(bad({"-n", "0"}).code == 1);
  CHECK(bad({"-N", "abc"}).errors.front() == "\"abc\" is not a valid node count");
  CHECK(bad({"-N", "2-1"}).errors.front() == "Maximum node count 1 is less than minimum node count 2");
  CHECK(bad({"-N", "2"}).hint.starts_with("--nodes=2 is not held"));
  CHECK(bad({"--gres=foo:1"}).errors.front() == "Invalid generic resource (gres) specification");
  CHECK(bad({"--array=5-2"}).refusal == "Invalid job array specification");
  CHECK(bad({"-d", "nosuch:1"}).refusal == "Job dependency problem");
  CHECK(bad({"-d", "singleton"}).hint.starts_with("--dependency=singleton is not held"));
  CHECK(bad({"--signal=FOO@1"}).errors.front() == "Invalid --signal specification");
  CHECK(bad({"--mail-type=nosuch"}).errors.front() == "Invalid --mail-type specification");
  CHECK(bad({"--begin=xx"}).plain.front() == "Invalid time specification (pos=0): xx");
  CHECK(bad({"-C", "[a*2]"}).refusal == "Invalid feature specification");
  CHECK(bad({"--container-mounts=/data:/data"}).hint.starts_with("--container-mounts=/data:/data is not held"));
}

TEST_CASE("an array whose numbers could not be kept is refused") {
  std::string scattered = "0";
  for (int i = 1; i < 100; ++i) scattered += "," + std::to_string(i * i);
  const Complaint complaint = bad({"--array=" + scattered});
  CHECK(complaint.refusal == "Invalid job array specification");
  CHECK(complaint.hint.starts_with("--array: the list has more than 253 characters; give ranges"));
}

TEST_CASE("a dependency on a number that no job has is refused") {
  CHECK(bad({"-d", "afterok:99999999999999999999"}).refusal == "Job dependency problem");
  CHECK(bad({"-d", "afterok:7_"}).refusal == "Job dependency problem");
  CHECK(good({"-d", "afterok:999999999999999999"}).dependencies.front().job == "999999999999999999");
}

TEST_CASE("signals, dependencies and mounts are read") {
  const JobRequest request =
      good({"--signal=B:USR1@120", "-d", "afterok:1:2,after:3_4", "--container-mounts=data:/d:ro"});
  CHECK(request.signal == "SIGUSR1");
  CHECK(request.signal_s == 120);
  REQUIRE(request.dependencies.size() == 3);
  CHECK(request.dependencies[1].key == "afterok");
  CHECK(request.dependencies[2].job == "3_4");
  CHECK(request.mounts == std::vector<std::string>{"data:/d:ro"});
  CHECK(good({"--signal=10"}).signal == "SIGUSR1");
}

TEST_CASE("variables stand for options, by the name of the tool") {
  const auto given =
      given_by_variables(Tool::kSbatch, {"SBATCH_PARTITION=train", "SLURM_PARTITION=infer", "SBATCH_NOSUCH=1"});
  REQUIRE(given.size() == 1);
  CHECK(given.front().option.name == "partition");
  CHECK(given.front().value == "train");
}

TEST_CASE("the name of an output file is a word that a shell expands") {
  JobRequest request;
  CHECK(file_word(request, "slurm-%j.out") == "'slurm-'\"$SLURM_JOB_ID\"'.out'");
  CHECK(file_word(request, "%4j-%%x") == "\"$(printf %04d \"$SLURM_JOB_ID\")\"'-%x'");
  CHECK(file_word(request, "it's $(rm)") == "'it'\\''s $(rm)'");
  request.array = parse_array("3-9:3");
  CHECK(file_word(request, "%A_%a") == "\"$SLURM_ARRAY_JOB_ID\"'_'\"$SLURM_ARRAY_TASK_ID\"");
}

}  // namespace
}  // namespace berth::slurm
