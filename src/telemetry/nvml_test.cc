#include "telemetry/nvml.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace berth::telemetry {

namespace {

// Points BERTH_NVML_PATH at a library and tells the fake one what to be.
class FakeDriver {
 public:
  explicit FakeDriver(const std::string& library, const std::string& settings = "") {
    std::string name = "/tmp/berth-nvml-test-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    set(settings);
    ::setenv("BERTH_NVML_PATH", library.c_str(), 1);
    ::setenv("BERTH_FAKE_NVML", (directory_ + "/settings").c_str(), 1);
  }
  ~FakeDriver() {
    ::unsetenv("BERTH_NVML_PATH");
    ::unsetenv("BERTH_FAKE_NVML");
    std::filesystem::remove_all(directory_);
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  void set(const std::string& settings) const { std::ofstream(directory_ + "/settings") << settings; }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

}  // namespace

TEST_CASE("two GPUs are found with model, memory, place and links") {
  const FakeDriver driver(FAKE_NVML);
  const std::string device = driver.directory() + "/bus/pci/devices/0000:3c:00.0";
  std::filesystem::create_directories(device);
  std::ofstream(device + "/numa_node") << "1\n";
  const auto library = Nvml::load();
  REQUIRE(library.has_value());
  const auto found = (*library)->discover(driver.directory());
  REQUIRE(found.gpus.size() == 2);
  CHECK(found.driver_version == "999.99.fake");
  CHECK(found.absence.empty());
  CHECK(found.warnings.empty());
  const auto& gpu = found.gpus[1];
  CHECK(gpu.uuid == "GPU-fa4e0000-0000-4000-8000-000000000001");
  CHECK(gpu.name == "NVIDIA H100 80GB HBM3");
  CHECK(gpu.model == "H100-SXM5-80GB");
  CHECK(gpu.memory_mib == 81559);
  CHECK(gpu.pci_bus_id == "0000:3c:00.0");
  CHECK(gpu.numa_node == 1);
  CHECK(found.gpus[0].numa_node == -1);
  CHECK(gpu.nvlink_peers == std::vector<std::string>{found.gpus[0].uuid});
  CHECK(gpu.mig == MigMode::kOff);
  CHECK_FALSE(gpu.simulated);
}

TEST_CASE("MIG, no NVLink and another model are seen as such") {
  const FakeDriver driver(FAKE_NVML, "count=1\nname=NVIDIA RTX 6000 Ada Generation\nmig=1\nnvlink=0\n");
  const auto found = discover_gpus();
  REQUIRE(found.gpus.size() == 1);
  CHECK(found.gpus[0].model == "RTX-6000-Ada-Generation");
  CHECK(found.gpus[0].mig == MigMode::kOn);
  CHECK(found.gpus[0].nvlink_peers.empty());
  driver.set("mig=none\n");
  CHECK(discover_gpus().gpus.at(0).mig == MigMode::kUnsupported);
}

TEST_CASE("no library, no driver and no GPU are no GPUs with the reason") {
  {
    const FakeDriver driver("/no/such/libnvidia-ml.so.1");
    const auto found = discover_gpus();
    CHECK(found.gpus.empty());
    CHECK(found.absence.find("no NVIDIA driver library: /no/such/libnvidia-ml.so.1") == 0);
  }
  {
    const FakeDriver driver(FAKE_NVML, "init=9\n");
    CHECK(discover_gpus().absence.ends_with("does not start: Driver Not Loaded"));
  }
  {
    const FakeDriver driver(FAKE_NVML, "count=0\n");
    CHECK(discover_gpus().absence == "the NVIDIA driver reports no GPU");
  }
  {
    const FakeDriver driver(FAKE_NVML, "count_fails=15\n");
    CHECK(discover_gpus().absence == "the number of GPUs is not known: GPU is lost");
  }
  {
    const FakeDriver driver("libm.so.6");
    CHECK(discover_gpus().absence == "libm.so.6 has no nvmlErrorString");
  }
}

TEST_CASE("a GPU that is lost is left out with a warning") {
  const FakeDriver driver(FAKE_NVML, "lost=0\n");
  const auto found = discover_gpus();
  REQUIRE(found.gpus.size() == 1);
  CHECK(found.gpus[0].uuid.ends_with("001"));
  CHECK(found.warnings == std::vector<std::string>{"GPU 0 is left out: GPU is lost"});
}

TEST_CASE("a library with only what is needed tells only the UUIDs") {
  const FakeDriver driver(FAKE_NVML_BARE);
  const auto library = Nvml::load();
  REQUIRE(library.has_value());
  const auto found = (*library)->discover();
  REQUIRE(found.gpus.size() == 2);
  CHECK(found.gpus[0].model == "unnamed-gpu");
  CHECK(found.gpus[0].memory_mib == 0);
  const auto readings = (*library)->read();
  REQUIRE(readings.size() == 2);
  CHECK_FALSE(readings[0].utilisation_percent.has_value());
  CHECK_FALSE(readings[0].processes.has_value());
  CHECK(readings[0].fault.empty());
}

TEST_CASE("a reading holds what the GPU tells, and says when it stops telling") {
  const FakeDriver driver(FAKE_NVML, "utilisation=91\nmemory_used_mib=2048\necc=3\nprocesses=100\n");
  const auto library = Nvml::load();
  REQUIRE(library.has_value());
  const auto readings = (*library)->read();
  REQUIRE(readings.size() == 2);
  const auto& reading = readings[0];
  CHECK(reading.utilisation_percent == 91);
  CHECK(reading.memory_used_mib == 2048);
  CHECK(reading.temperature_c == 55);
  CHECK(reading.power_mw == 250'000);
  CHECK(reading.power_limit_mw == 700'000);
  CHECK(reading.ecc_corrected == 0U);
  CHECK(reading.ecc_uncorrected == 3U);
  REQUIRE(reading.processes.has_value());
  REQUIRE(reading.processes->size() == 100);
  CHECK(reading.processes->at(0).memory_mib == 512);
  CHECK_FALSE(reading.processes->at(1).memory_mib.has_value());
  CHECK(reading.fault.empty());
  driver.set("ecc=none\n");
  CHECK_FALSE((*library)->read().at(0).ecc_uncorrected.has_value());
  CHECK((*library)->read().at(0).fault.empty());
}

TEST_CASE("a look at a GPU has its processes that run, and memory without what the driver reserves") {
  const std::string self = std::to_string(::getpid());
  const FakeDriver driver(FAKE_NVML, "gpu1=" + self + ":700\nleft1=30\n");
  const auto library = Nvml::load();
  REQUIRE(library.has_value());
  const std::string uuid = "GPU-fa4e0000-0000-4000-8000-000000000001";
  const GpuReading used = (*library)->look(uuid);
  REQUIRE(used.processes.has_value());
  REQUIRE(used.processes->size() == 1);
  CHECK(used.processes->at(0).pid == static_cast<std::uint32_t>(::getpid()));
  CHECK(used.processes->at(0).memory_mib == 700);
  CHECK(used.memory_used_mib == 730);
  CHECK(used.fault.empty());
  CHECK((*library)->look("GPU-fa4e0000-0000-4000-8000-000000000000").processes->empty());
  CHECK((*library)->look("GPU-none").fault == "the driver does not list it");
  driver.set("lost=1\n");
  CHECK((*library)->look(uuid).fault == "GPU 1 is left out: GPU is lost");
}

TEST_CASE("a driver that tells only what is needed has no processes for a look") {
  const FakeDriver driver(FAKE_NVML_BARE);
  const auto library = Nvml::load();
  REQUIRE(library.has_value());
  const GpuReading untold = (*library)->look("GPU-fa4e0000-0000-4000-8000-000000000000");
  CHECK_FALSE(untold.processes.has_value());
  CHECK_FALSE(untold.memory_used_mib.has_value());
  CHECK(untold.fault.empty());
}

}  // namespace berth::telemetry
