#pragma once
// Devices that nodes offer as counted resources: whole GPUs, MIG instances by their profile (mixed strategy of NVIDIA's
// device plugin), GPUs that several pods share (gpu.shared), and what other vendors offer. In berth each is a GPU;
// those of a resource other than nvidia.com/gpu are of a model that has the name of the resource (model/gpu_model.h).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::kube {

inline constexpr std::string_view kWholeGpu = "nvidia.com/gpu";

using Devices = std::map<std::string, std::int64_t, std::less<>>;  // counts by resource; none is 0

// `vendors`: resources that the operator has named besides NVIDIA's.
bool is_device(std::string_view resource, const std::vector<std::string>& vendors);
// Returns true if the resource is a countable of the core (model/countable.h): huge pages, which are counted in MiB,
// and extended resources such as rdma/hca. An accelerator of a vendor that the operator has not named is none: it would
// be used beside all quotas.
bool is_countable(std::string_view resource, const std::vector<std::string>& vendors);
bool is_huge_pages(std::string_view resource);
// Returns the uuid of a counted device of a node.
std::string device_uuid(std::string_view node_uid, std::string_view resource, std::int64_t index);
// Returns the resource in such a uuid.
std::string_view resource_of_device(std::string_view uuid);
// Returns how many of each resource these are.
Devices devices_in(const std::vector<std::string>& uuids);
// Adds `more`, `sign` times.
void add(Devices& sum, const Devices& more, std::int64_t sign);
// Returns the larger count for each resource.
Devices larger(Devices a, const Devices& b);
std::int64_t count_of(const Devices& devices, std::string_view resource);

}  // namespace berth::kube
