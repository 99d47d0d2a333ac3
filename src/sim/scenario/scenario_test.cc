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

}  // namespace berth::sim
