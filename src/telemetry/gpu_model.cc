#include "telemetry/gpu_model.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace berth::telemetry {

namespace {

constexpr std::size_t kLongestLabel = 63;

constexpr std::array kModels = std::to_array<GpuModelFacts>({
    {"NVIDIA B200", "B200-SXM6-180GB", 183'359, true, true},
    {"NVIDIA H200", "H200-SXM5-141GB", 143'771, true, true},
    {"NVIDIA H200 NVL", "H200-NVL-141GB", 143'771, false, true},
    {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB", 81'559, true, true},
    {"NVIDIA H100 PCIe", "H100-PCIE-80GB", 81'559, false, true},
    {"NVIDIA H100 NVL", "H100-NVL-94GB", 95'830, false, true},
    {"NVIDIA H20", "H20-SXM5-96GB", 97'871, true, true},
    {"NVIDIA GH200 480GB", "GH200-96GB", 97'871, false, true},
    {"NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB", 81'920, true, true},
    {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB", 40'960, true, true},
    {"NVIDIA A100 80GB PCIe", "A100-PCIE-80GB", 81'920, false, true},
    {"NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB", 40'960, false, true},
    {"NVIDIA A30", "A30-PCIE-24GB", 24'576, false, true},
    {"NVIDIA A10", "A10-PCIE-24GB", 23'028, false, false},
    {"NVIDIA A10G", "A10G-PCIE-24GB", 23'028, false, false},
    {"NVIDIA A40", "A40-PCIE-48GB", 46'068, false, false},
    {"NVIDIA L40S", "L40S-PCIE-48GB", 46'068, false, false},
    {"NVIDIA L40", "L40-PCIE-48GB", 46'068, false, false},
    {"NVIDIA L4", "L4-PCIE-24GB", 23'034, false, false},
    {"Tesla V100-SXM2-32GB", "V100-SXM2-32GB", 32'768, true, false},
    {"Tesla V100-SXM2-16GB", "V100-SXM2-16GB", 16'384, true, false},
    {"Tesla V100-PCIE-32GB", "V100-PCIE-32GB", 32'768, false, false},
    {"Tesla V100-PCIE-16GB", "V100-PCIE-16GB", 16'384, false, false},
    {"Tesla T4", "T4-PCIE-16GB", 15'360, false, false},
});

std::string make_label(std::string_view text) {
  std::string label;
  for (const char character : text) {
    if (std::isalnum(static_cast<unsigned char>(character)) != 0) {
      label += character;
    } else if (!label.empty() && label.back() != '-') {
      label += '-';
    }
  }
  label.resize(std::min(label.size(), kLongestLabel));
  while (label.ends_with('-')) label.pop_back();
  return label.empty() ? "unnamed-gpu" : label;
}

}  // namespace

std::string normalise_model(std::string_view driver_name) {
  for (const auto& known : kModels) {
    if (known.driver_name == driver_name) return std::string(known.model);
  }
  constexpr std::string_view kMaker = "NVIDIA ";
  if (driver_name.starts_with(kMaker)) driver_name.remove_prefix(kMaker.size());
  return make_label(driver_name);
}

std::optional<GpuModelFacts> find_model(std::string_view model) {
  for (const auto& known : kModels) {
    if (known.model == model) return known;
  }
  return std::nullopt;
}

}  // namespace berth::telemetry
