#include "kube/pod_request.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/json_reading.h"
#include "kube/quantity.h"

namespace berth::kube {
namespace {

namespace json = boost::json;
constexpr std::size_t kMostContainers = 1000;

struct Ask {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  Devices devices;
  Devices countables;

  Ask& operator+=(const Ask& other) {
    cpu_milli += other.cpu_milli;
    memory_mib += other.memory_mib;
    kube::add(devices, other.devices, 1);
    kube::add(countables, other.countables, 1);
    return *this;
  }
};

Ask larger(const Ask& a, const Ask& b) {
  return {std::max(a.cpu_milli, b.cpu_milli), std::max(a.memory_mib, b.memory_mib), kube::larger(a.devices, b.devices),
          kube::larger(a.countables, b.countables)};
}

// What no node has. A sum of as many pods as there can be stays within 64 bits.
Ask bounded(Ask ask) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  ask.cpu_milli = std::min(ask.cpu_milli, kMost);
  ask.memory_mib = std::min(ask.memory_mib, kMost);
  for (auto& [resource, count] : ask.devices) count = std::min(count, std::int64_t{1} << 30);
  for (auto& [resource, count] : ask.countables) count = std::min(count, kMost);
  std::erase_if(ask.devices, [](const auto& device) { return device.second == 0; });
  std::erase_if(ask.countables, [](const auto& one) { return one.second == 0; });
  return ask;
}

bool is_passed_over(std::string_view resource) {
  return resource == "ephemeral-storage";  // the kubelet evicts for it
}

// How a request is read: what counts as a device, and what is not known.
struct Reading {
  const std::vector<std::string>& vendors;
  std::string unknown;
};

Result<void> add_resource(std::string_view resource, const json::value& value, Ask& ask, Reading& reading) {
  std::string quantity;
  if (const json::string* text = value.if_string()) quantity = std::string(*text);
  if (const std::int64_t* number = value.if_int64()) quantity = std::to_string(*number);
  const auto into = [&](std::int64_t& amount, Result<std::int64_t> read) -> Result<void> {
    if (!read) return Error{ErrorCode::kInvalid, shown(resource, 80) + ": " + read.error().message};
    amount = *read;
    return {};
  };
  if (resource == "cpu") return into(ask.cpu_milli, milli_of(quantity));
  if (resource == "memory") return into(ask.memory_mib, mib_of(quantity));
  if (is_device(resource, reading.vendors)) return into(ask.devices[std::string(resource)], whole_of(quantity));
  if (is_countable(resource, reading.vendors))
    return into(ask.countables[std::string(resource)], is_huge_pages(resource) ? mib_of(quantity) : whole_of(quantity));
  if (!is_passed_over(resource) && reading.unknown.empty()) reading.unknown = shown(resource, 120);
  return {};
}

Result<Ask> ask_of(const json::object& resources, Reading& reading) {
  Ask ask;
  for (const std::string_view kind : {"limits", "requests"}) {  // requests come last: they win
    const json::object* all = object_at(resources, {kind});
    if (all == nullptr) continue;
    for (const auto& [resource, value] : *all) {
      if (auto ok = add_resource(resource, value, ask, reading); !ok) return ok.error();
    }
  }
  return ask;
}

Result<Ask> ask_of_container(const json::object& container, Reading& reading) {
  const json::object* resources = object_at(container, {"resources"});
  if (resources == nullptr) return Ask{};
  auto ask = ask_of(*resources, reading);
  if (!ask)
    return Error{ErrorCode::kInvalid,
                 "container '" + shown(text_at(container, {"name"}), 80) + "': " + ask.error().message};
  return ask;
}

Result<Ask> overhead_of(const json::object& pod, Reading& reading) {
  Ask ask;
  const json::object* overhead = object_at(pod, {"spec", "overhead"});
  if (overhead == nullptr) return ask;
  for (const auto& [resource, value] : *overhead) {
    if (auto ok = add_resource(resource, value, ask, reading); !ok) return ok.error();
  }
  return ask;
}

}  // namespace

Result<PodRequest> read_request(const json::object& pod, const std::vector<std::string>& vendors) {
  PodRequest read;
  Reading reading{vendors, {}};
  const auto containers = objects_at(pod, {"spec", "containers"});
  const auto before = objects_at(pod, {"spec", "initContainers"});
  if (containers.size() + before.size() > kMostContainers)
    return Error{ErrorCode::kInvalid, "it has " + std::to_string(containers.size() + before.size()) +
                                          " containers; the most is " + std::to_string(kMostContainers)};
  Ask sidecars;
  Ask most;
  for (const json::object* container : before) {
    auto ask = ask_of_container(*container, reading);
    if (!ask) return ask.error();
    Ask with = sidecars;
    with += *ask;
    most = larger(most, with);
    if (text_at(*container, {"restartPolicy"}) == "Always") sidecars = with;
  }
  Ask sum = sidecars;
  for (const json::object* container : containers) {
    auto ask = ask_of_container(*container, reading);
    if (!ask) return ask.error();
    sum += *ask;
  }
  Ask all = larger(most, sum);
  if (const json::object* resources = object_at(pod, {"spec", "resources"})) {  // of the whole pod
    const auto ask = ask_of(*resources, reading);
    if (!ask) return ask.error();
    all = {ask->cpu_milli > 0 ? ask->cpu_milli : all.cpu_milli, ask->memory_mib > 0 ? ask->memory_mib : all.memory_mib,
           kube::larger(ask->devices, all.devices), kube::larger(ask->countables, all.countables)};
  }
  const auto overhead = overhead_of(pod, reading);
  if (!overhead) return overhead.error();
  all += *overhead;
  all = bounded(std::move(all));
  read.unknown = std::move(reading.unknown);
  read.request.cpu_milli = all.cpu_milli;
  read.request.memory_mib = all.memory_mib;
  read.request.countables.assign(all.countables.begin(), all.countables.end());
  if (all.countables.size() > kMaxCountables && read.unknown.empty())
    read.unknown = "number " + std::to_string(kMaxCountables + 1) + " of those beside CPUs, memory and GPUs";
  read.devices = std::move(all.devices);
  if (read.devices.empty()) return read;
  const auto& [resource, count] = *read.devices.begin();
  if (read.devices.size() > 1 && read.unknown.empty())
    read.unknown = resource + " beside " + std::next(read.devices.begin())->first + " in one pod";
  if (count > static_cast<std::int64_t>(kMaxGpusPerNode) && read.unknown.empty())
    read.unknown =
        resource + ": " + std::to_string(count) + " in one pod, over " + std::to_string(kMaxGpusPerNode) + ",";
  read.request.gpus = static_cast<std::int32_t>(count);
  if (resource != kWholeGpu) read.request.gpu_models = {resource};
  return read;
}

}  // namespace berth::kube
