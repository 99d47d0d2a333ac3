#include "telemetry/simulated_gpus.h"

#include <doctest/doctest.h>

#include <set>

#include "telemetry/gpu_model.h"

namespace berth::telemetry {

TEST_CASE("declared GPUs are simulated, linked, and the same on every start") {
  const auto gpus = parse_simulated_gpus("8xH100-SXM5-80GB", "node-a");
  REQUIRE(gpus.has_value());
  REQUIRE(gpus->size() == 8);
  std::set<std::string> uuids;
  for (const auto& gpu : *gpus) {
    CHECK(gpu.simulated);
    CHECK(gpu.uuid.starts_with("GPU-SIM-"));
    CHECK(gpu.uuid.size() == std::string("GPU-SIM-12345678-1234-1234-1234-123456789abc").size());
    CHECK(gpu.model == "H100-SXM5-80GB");
    CHECK(gpu.memory_mib == 81'559);
    CHECK(gpu.nvlink_peers.size() == 7);
    CHECK(gpu.mig == MigMode::kOff);
    uuids.insert(gpu.uuid);
  }
  CHECK(uuids.size() == 8);
  CHECK(gpus->at(3).numa_node == 0);
  CHECK(gpus->at(4).numa_node == 1);
  CHECK(parse_simulated_gpus("8xH100-SXM5-80GB", "node-a")->at(5).uuid == gpus->at(5).uuid);
  CHECK_FALSE(uuids.contains(parse_simulated_gpus("8xH100-SXM5-80GB", "node-b")->at(0).uuid));
  CHECK_FALSE(uuids.contains(parse_simulated_gpus("8xA100-SXM4-80GB", "node-a")->at(0).uuid));
}

TEST_CASE("several models, and models that are not in the table") {
  const auto gpus = parse_simulated_gpus("2xA100-SXM4-40GB,1xTitan-9-48GB", "node-a");
  REQUIRE(gpus.has_value());
  REQUIRE(gpus->size() == 3);
  CHECK(gpus->at(0).nvlink_peers == std::vector<std::string>{gpus->at(1).uuid});
  CHECK(gpus->at(2).memory_mib == 48 * 1024);
  CHECK(gpus->at(2).mig == MigMode::kUnsupported);
  CHECK(gpus->at(2).uuid != gpus->at(0).uuid);
}

TEST_CASE("a declaration that is not one is refused with what would be right") {
  for (const char* bad :
       {"", "8", "x", "8x", "xH100-SXM5-80GB", "0xH100-SXM5-80GB", "-1xH100-SXM5-80GB", "8 x H100-SXM5-80GB", "8xH100",
        "8xA B-80GB", "99999999999xH100-SXM5-80GB", "1025xH100-SXM5-80GB", "8xH100-SXM5-80GB,",
        "1000xH100-SXM5-80GB,1000xH100-SXM5-80GB", "1xFoo-0GB", "1xFoo-99999999999999999999GB", "1x<script>-80GB"}) {
    CAPTURE(bad);
    const auto refused = parse_simulated_gpus(bad, "node-a");
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::kInvalid);
    CHECK(refused.error().message.find("as in 8xH100-SXM5-80GB") != std::string::npos);
  }
}

TEST_CASE("names of the driver become names of the configuration") {
  CHECK(normalise_model("NVIDIA H100 80GB HBM3") == "H100-SXM5-80GB");
  CHECK(normalise_model("NVIDIA H200") == "H200-SXM5-141GB");
  CHECK(normalise_model("NVIDIA A100-SXM4-80GB") == "A100-SXM4-80GB");
  CHECK(normalise_model("Tesla T4") == "T4-PCIE-16GB");
  CHECK(normalise_model("NVIDIA GeForce RTX 4090") == "GeForce-RTX-4090");
  CHECK(normalise_model("") == "unnamed-gpu");
  CHECK(normalise_model("<b>\x1b[31m evil </b>") == "b-31m-evil-b");
  CHECK(normalise_model(std::string(500, 'x')).size() == 63);
  CHECK(normalise_model(normalise_model("NVIDIA H100 80GB HBM3")) == "H100-SXM5-80GB");
}

}  // namespace berth::telemetry
