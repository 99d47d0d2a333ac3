#include "kube/device.h"

#include <algorithm>

namespace berth::kube {

bool is_device(std::string_view resource, const std::vector<std::string>& vendors) {
  if (resource == kWholeGpu || resource == "nvidia.com/gpu.shared" || resource.starts_with("nvidia.com/mig-"))
    return true;
  return std::find(vendors.begin(), vendors.end(), resource) != vendors.end();
}

bool is_huge_pages(std::string_view resource) { return resource.starts_with("hugepages-"); }

bool is_countable(std::string_view resource, const std::vector<std::string>& vendors) {
  if (is_device(resource, vendors)) return false;
  if (is_huge_pages(resource)) return true;
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos || slash == 0) return false;
  const std::string_view domain = resource.substr(0, slash);
  const std::string_view name = resource.substr(slash + 1);
  if (domain == "nvidia.com") return name == "hostdev" || name == "mlnxnics";  // network interfaces
  constexpr std::string_view kAccelerators[] = {"amd.com",      "gpu.intel.com", "habana.ai",     "google.com",
                                                "huawei.com",   "cambricon.com", "iluvatar.ai",   "metax-tech.com",
                                                "qualcomm.com", "furiosa.ai",    "aws.amazon.com"};
  return std::find(std::begin(kAccelerators), std::end(kAccelerators), domain) == std::end(kAccelerators);
}

// A whole GPU's uuid names no resource.
std::string device_uuid(std::string_view node_uid, std::string_view resource, std::int64_t index) {
  std::string uuid(node_uid);
  if (resource != kWholeGpu) uuid.append(":").append(resource);
  return uuid + ":" + std::to_string(index);
}

std::string_view resource_of_device(std::string_view uuid) {
  const std::size_t last = uuid.rfind(':');
  if (last == std::string_view::npos || last == 0) return kWholeGpu;
  const std::size_t before = uuid.rfind(':', last - 1);
  const std::string_view part =
      before == std::string_view::npos ? std::string_view() : uuid.substr(before + 1, last - before - 1);
  return part.find('/') == std::string_view::npos ? kWholeGpu : part;
}

Devices devices_in(const std::vector<std::string>& uuids) {
  Devices devices;
  for (const std::string& uuid : uuids) ++devices[std::string(resource_of_device(uuid))];
  return devices;
}

void add(Devices& sum, const Devices& more, std::int64_t sign) {
  for (const auto& [resource, count] : more) {
    std::int64_t& one = sum[resource];
    one += sign * count;
    if (one == 0) sum.erase(resource);
  }
}

Devices larger(Devices a, const Devices& b) {
  for (const auto& [resource, count] : b) {
    std::int64_t& one = a[resource];
    one = std::max(one, count);
  }
  return a;
}

std::int64_t count_of(const Devices& devices, std::string_view resource) {
  const auto found = devices.find(resource);
  return found == devices.end() ? 0 : found->second;
}

}  // namespace berth::kube
