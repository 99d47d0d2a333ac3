#include "sim/scenario/scenario.h"

#include <doctest/doctest.h>

namespace berth::sim {

TEST_CASE("a scenario's output is the script with what happened, and running it again changes nothing") {
  const std::string script =
      "# comment\ncluster\n  model H100\n  queue a\n\nnodes n1 gpus=2xH100\n----\nwrong\n\nsubmit j queue=a gpus=1\n";
  const std::string actual = run_scenario(script);
  CHECK_NE(actual.find("0s      j starts on n1[0], borrowed"), std::string::npos);
  CHECK_EQ(actual.find("wrong"), std::string::npos);
  CHECK_EQ(run_scenario(actual), actual);
}

TEST_CASE("a difference names its directive and both lines") {
  const std::string diff =
      scenario_diff("run 1m\n----\na\n\nrun 2m\n----\nb\n", "run 1m\n----\na\n\nrun 2m\n----\nc\n");
  CHECK_EQ(diff, "  run 2m\n- b\n+ c\n");
}

TEST_CASE("what is not understood is said in the output") {
  CHECK_NE(run_scenario("frobnicate x\n").find("error: no directive 'frobnicate'"), std::string::npos);
  CHECK_NE(run_scenario("run fast\n").find("error: "), std::string::npos);
  CHECK_NE(run_scenario("submit j gpus=many\n").find("error: gpus: 'many' is not a whole number"), std::string::npos);
}

TEST_CASE("what would wrap, or mean something else, is refused and changes nothing") {
  const std::string fleet = "cluster\n  model H100\n  queue a\n\nnodes n1 gpus=2xH100\n\n";
  const auto says = [&](const std::string& line, const std::string& what) {
    const std::string actual = run_scenario(fleet + line + "\n\njobs\n");
    CAPTURE(actual);
    CHECK_NE(actual.find("error: " + what), std::string::npos);
    CHECK_EQ(actual.find("pending"), std::string::npos);
    CHECK_EQ(actual.find("running"), std::string::npos);
  };
  says("nodes n1 gpus=2xH100", "there is a node 'n1' already");
  says("nodes n[3-2]", "'n[3-2]' is not NAME[FIRST-LAST]");
  says("nodes n[2-3", "'n[2-3' is not NAME[FIRST-LAST]");
  says("nodes n[1-9999999]", "'n[1-9999999]' is not NAME[FIRST-LAST]");
  says("nodes n2 gpus=17xH100", "gpus: a node has 16 GPUs at most");
  says("gpu n1 256 fails", "node 'n1' has no GPU 256");
  says("gpu n1 1 broken", "gpu NODE INDEX fails|heals");
  says("run -5m", "'-5' is not between 0 and 2147483647");
  says("submit j queue=a gpus=-1", "gpus: '-1' is not between 0 and 2147483647");
  says("submit j queue=a gpus=1.5", "gpus: whole GPUs, or a share of one");
  says("submit j queue=a gpus=1 tasks=4294967297", "tasks: '4294967297' is not between 0 and 2147483647");
  says("submit j queue=a gpus=1 also=side:4294967297x1", "also is NAME:TASKSxGPUS");
  says("submit j queue=a gpus=1 retries=4294967297", "retries: 4294967297 is too large");
}

}  // namespace berth::sim
