#include "telemetry/simulated_gpus.h"

#include <charconv>
#include <cstdio>

#include "base/hash.h"
#include "telemetry/gpu_model.h"

namespace berth::telemetry {

namespace {

constexpr int kMostGpus = 1024;
constexpr std::int64_t kMostGigabytes = 1'000'000;

struct Declared {
  int count = 0;
  GpuModelFacts facts;
};

Error malformed(std::string_view part) {
  return invalid("simulated GPUs '" + std::string(part) + "': expected COUNTxMODEL with a count of 1 to " +
                 std::to_string(kMostGpus) + " and a model that ends in its memory, as in 8xH100-SXM5-80GB");
}

bool is_label(std::string_view text) { return !text.empty() && normalise_model(text) == text; }

// The memory of a model that is not in the table: "Foo-24GB" has 24 x 1024 MiB.
std::int64_t read_memory_mib(std::string_view model) {
  const auto dash = model.rfind('-');
  if (dash == model.npos || !model.ends_with("GB")) return 0;
  const std::string_view digits = model.substr(dash + 1, model.size() - dash - 3);
  std::int64_t gigabytes = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), gigabytes);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  return whole && gigabytes > 0 && gigabytes <= kMostGigabytes ? gigabytes * 1024 : 0;
}

Result<Declared> parse_part(std::string_view part) {
  Declared declared;
  const auto parsed = std::from_chars(part.data(), part.data() + part.size(), declared.count);
  if (parsed.ec != std::errc() || declared.count < 1 || declared.count > kMostGpus) return malformed(part);
  const std::string_view rest = part.substr(static_cast<std::size_t>(parsed.ptr - part.data()));
  if (!rest.starts_with('x') || !is_label(rest.substr(1))) return malformed(part);
  const std::string_view model = rest.substr(1);
  declared.facts = find_model(model).value_or(GpuModelFacts{model, model, read_memory_mib(model), false, false});
  if (declared.facts.memory_mib == 0) return malformed(part);
  return declared;
}

// Half of the GPUs on each of two sockets, as machines of this kind are built; a single one on the first.
void add_gpus(const Declared& declared, std::string_view owner, std::vector<GpuFound>& gpus) {
  const std::size_t first = gpus.size();
  for (int index = 0; index < declared.count; ++index) {
    GpuFound gpu;
    gpu.uuid = simulated_uuid(owner, declared.facts.model, gpus.size());
    gpu.name = "simulated " + std::string(declared.facts.model);
    gpu.model = declared.facts.model;
    gpu.memory_mib = declared.facts.memory_mib;
    gpu.numa_node = index < (declared.count + 1) / 2 ? 0 : 1;
    gpu.mig = declared.facts.mig ? MigMode::kOff : MigMode::kUnsupported;
    gpu.simulated = true;
    gpus.push_back(gpu);
  }
  for (std::size_t one = first; declared.facts.nvlink && one < gpus.size(); ++one) {
    for (std::size_t other = first; other < gpus.size(); ++other) {
      if (one != other) gpus[one].nvlink_peers.push_back(gpus[other].uuid);
    }
  }
}

}  // namespace

std::string simulated_uuid(std::string_view owner, std::string_view model, std::uint64_t index) {
  const std::uint64_t high = Hasher().add(owner).add(model).add(index).digest();
  const std::uint64_t low = Hasher().add(high).add(owner).digest();
  char text[64];
  std::snprintf(text, sizeof text, "GPU-SIM-%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(high >> 32U),
                static_cast<unsigned>(high >> 16U) & 0xffffU, static_cast<unsigned>(high) & 0xffffU,
                static_cast<unsigned>(low >> 48U), static_cast<unsigned long long>(low & 0xffffffffffffULL));
  return text;
}

Result<std::vector<GpuFound>> parse_simulated_gpus(std::string_view declaration, std::string_view owner) {
  std::vector<GpuFound> gpus;
  for (std::size_t begin = 0; begin <= declaration.size();) {
    const std::size_t end = std::min(declaration.find(',', begin), declaration.size());
    const auto declared = parse_part(declaration.substr(begin, end - begin));
    if (!declared) return declared.error();
    if (gpus.size() + static_cast<std::size_t>(declared->count) > kMostGpus) return malformed(declaration);
    add_gpus(*declared, owner, gpus);
    begin = end + 1;
  }
  return gpus;
}

}  // namespace berth::telemetry
