#include <doctest/doctest.h>

#include <limits>

#include "model/secret_name.h"
#include "slurm/job_request.h"
#include "slurm/job_script.h"

namespace berth::slurm {
namespace {

OrComplaint<JobRequest> request_from(Tool tool, const std::vector<Given>& given) {
  return read_request(tool, given, {1'790'000'000'000});
}

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
  CHECK(request.gpu_type() == "h100");
  CHECK(request.memory() == 16 * 1024);
  CHECK(good({"--gres=gpu:h100:2"}).gpus == 2);
  CHECK(good({"--gres=gpu"}).gpus == 1);
  CHECK(good({"-G", "a100"}).gpu_type() == "a100");
  CHECK(good({"--mem=100"}).memory() == 100);
  CHECK(good({"--ntasks-per-node=3"}).cpus() == 3);
}

TEST_CASE("the last of several options wins, also where it is a list") {
  const JobRequest request = good({"-C", "a&b", "-J", "one", "-C", "c|d", "-J", "two"});
  CHECK(request.name == "two");
  CHECK(request.node_rules.at("constraint") == std::vector<std::string>{"c || d"});
}

TEST_CASE("a type of GPU holds for the option that names it") {
  CHECK(good({"--gres=gpu:h100:2", "--gres=gpu:1"}).gpu_type().empty());
  CHECK(good({"--gres=gpu:h100:2", "--gres=gpu:1"}).gpus == 1);
  CHECK(good({"-G", "h100:2", "--gres=gpu:2"}).gpu_type() == "h100");
  CHECK(good({"--gres=gpu:h100:2", "--gres=none"}).gpu_type().empty());
}

TEST_CASE("what is not to be had is no fault if it is given anew") {
  CHECK(good({"-N", "2", "-N", "1"}).tasks() == 1);
  CHECK(good({"--mem=0", "--mem=10"}).memory() == 10);
  CHECK(bad({"-N", "1", "-N", "2"}).hint.starts_with("--nodes=2 is not held"));
  CHECK(bad({"-n", "0", "-n", "1"}).errors.front() == "Invalid numeric value \"0\" for --ntasks.");
}

TEST_CASE("memory is counted in one way, and words count before variables") {
  const std::string said = "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.";
  CHECK(bad({"--mem=10", "--mem-per-cpu=5"}).plain.front() == said);
  CHECK(bad({"--mem=10", "--mem-per-cpu=5"}).code == 1);
  CHECK(good({"--mem=10", "--mem=5"}).memory() == 5);
  std::vector<Given> given = given_by_variables(Tool::kSbatch, {"SBATCH_MEM_PER_CPU=5"});
  REQUIRE(given.size() == 1);
  const auto words = parse_words(Tool::kSbatch, {"--mem=10"});
  given.push_back(words->given.front());
  CHECK(std::get<JobRequest>(request_from(Tool::kSbatch, given)).memory() == 10);
  const auto both = given_by_variables(Tool::kSbatch, {"SBATCH_MEM_PER_CPU=5", "SBATCH_MEM_PER_NODE=10"});
  CHECK(std::get<Complaint>(request_from(Tool::kSbatch, both))
            .plain.front()
            .starts_with("sbatch: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are"));
}

TEST_CASE("counts that no machine has are not multiplied beyond what a number holds") {
  CHECK(bad({"-n", "1000001"}).errors.front() == "Invalid numeric value \"1000001\" for --ntasks.");
  const JobRequest request = good({"-n", "1000000", "-c", "1000000", "--mem-per-cpu=1000000000T"});
  CHECK(request.cpus() == 1'000'000'000'000);
  CHECK(request.memory() == std::numeric_limits<std::int64_t>::max());
  CHECK(good({"--mem=2000000"}).memory() == 2'000'000);
}

TEST_CASE("nodes are chosen and shunned by lists of Slurm") {
  const JobRequest request = good({"-w", "n[1-3],m", "-x", "k[1-2]"});
  CHECK(request.node_rules.at("nodelist") == std::vector<std::string>{"metadata.name=n1|n2|n3|m"});
  CHECK(request.node_rules.at("exclude") == std::vector<std::string>{"metadata.name!=k1", "metadata.name!=k2"});
  CHECK(bad({"-w", "n[1-"}).refusal == "Invalid node name specified");
}

TEST_CASE("a step has no file of stdin") {
  const auto of = [](const char* value) {
    return request_from(Tool::kSrun, parse_words(Tool::kSrun, {"-i", value})->given);
  };
  CHECK(std::get<Complaint>(of("data.txt")).hint.starts_with("--input=data.txt is not held: a step has no stdin"));
  CHECK(std::holds_alternative<JobRequest>(of("none")));
  CHECK(std::holds_alternative<JobRequest>(of("/dev/null")));
  CHECK(good({"-i", "data.txt"}).input == "data.txt");
}

TEST_CASE("files are emptied before both streams append to them") {
  const std::string line = batch_command(good({"-o", "x", "-e", "y"}), "#!/bin/sh\n", {}).at(2);
  const std::size_t emptied = line.find("[ ! -f 'x' ] || : >'x' || exit 1\n");
  CHECK(emptied != std::string::npos);
  CHECK(line.find("exec 2>>'y' || exit 1\nexec >>'x' || exit 1\n") > emptied);
  CHECK(batch_command(good({"-o", "x", "--open-mode=append"}), "#!/bin/sh\n", {}).at(2).find(": >") ==
        std::string::npos);
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

TEST_CASE("names of secrets are known by their words") {
  for (const char* name : {"HF_TOKEN", "PGPASSWORD", "MYSQL_PWD", "GITHUB_PAT", "OPENAI_KEY", "SSH_PASSPHRASE"}) {
    CAPTURE(name);
    CHECK(looks_like_a_secret(name));
  }
  for (const char* name : {"TOKENIZERS", "PWD", "PATH", "GOOGLE_APPLICATION_CREDENTIALS", "PATTERN"}) {
    CAPTURE(name);
    CHECK_FALSE(looks_like_a_secret(name));
  }
}

TEST_CASE("srun's variables have names of their own") {
  const std::vector<std::string> variables{"SLURM_OUTPUT=a",       "SLURM_STDOUTMODE=b", "SLURM_REMOTE_CWD=/c",
                                           "SRUN_EXPORT_ENV=d",    "SLURM_EXPORT_ENV=e", "SLURMD_DEBUG=1",
                                           "SLURM_JOB_NUM_NODES=1"};
  const CommandWords words{given_by_variables(Tool::kSrun, variables), {}};
  CHECK(words.value("output") == "b");
  CHECK(words.value("chdir") == "/c");
  CHECK(words.value("export") == "d");
  CHECK(words.value("nodes") == "1");
  CHECK(words.has("slurmd-debug"));
  CHECK(variables_of(Tool::kScancel, parse_words(Tool::kScancel, {"--user=a"})->given.front().option).front() ==
        "SCANCEL_USER");
}

TEST_CASE("the name of an output file is a word that a shell expands") {
  JobRequest request;
  CHECK(file_word(request, "slurm-%j.out") == "'slurm-'\"$SLURM_JOB_ID\"'.out'");
  CHECK(file_word(request, "%4j-%%x") == "\"$(printf %04d \"$SLURM_JOB_ID\")\"'-%x'");
  CHECK(file_word(request, "None") == "/dev/null");
  CHECK(file_word(request, "it's $(rm)") == "'it'\\''s $(rm)'");
  request.in_job = true;
  CHECK(file_word(request, "%a") == "\"${SLURM_ARRAY_TASK_ID:-4294967294}\"");
  request.in_job = false;
  request.array = parse_array("3-9:3");
  CHECK(file_word(request, "%A_%a") == "\"$SLURM_ARRAY_JOB_ID\"'_'\"$SLURM_ARRAY_TASK_ID\"");
}

}  // namespace
}  // namespace berth::slurm
