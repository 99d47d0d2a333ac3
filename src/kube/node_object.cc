#include "kube/node_object.h"

#include <algorithm>
#include <map>

#include "kube/device.h"
#include "kube/json_reading.h"
#include "kube/quantity.h"

namespace berth::kube {
namespace {

namespace json = boost::json;
constexpr std::string_view kOutOfService = "node.kubernetes.io/out-of-service";
constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";
constexpr std::size_t kMostLabels = 512;

std::string label_of(const Labels& labels, std::string_view key) {
  const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == key; });
  return found == labels.end() ? std::string() : found->second;
}

Labels labels_of(const json::object& node) {
  Labels labels;
  const json::object* all = object_at(node, {"metadata", "labels"});
  if (all != nullptr) {
    for (const auto& [key, value] : *all) {
      if (const json::string* text = value.if_string(); text != nullptr && labels.size() < kMostLabels)
        labels.emplace_back(shown(key, 320), shown(*text, 64));
    }
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

void read_taints(const json::object& node, NodeObject& object) {
  std::vector<Taint>& taints = object.spec.taints;
  for (const json::object* taint : objects_at(node, {"spec", "taints"})) {
    const std::string key = text_at(*taint, {"key"});
    if (key == kOutOfService) object.out_of_service = true;
    const std::string effect = text_at(*taint, {"effect"});
    if (effect == "PreferNoSchedule") continue;
    taints.push_back({shown(key, 320), shown(text_at(*taint, {"value"}), 64),
                      effect == "NoExecute" ? TaintEffect::kNoExecute : TaintEffect::kNoSchedule});
  }
  if (true_at(node, {"spec", "unschedulable"})) taints.push_back({std::string(kUnschedulable), ""});
  std::sort(taints.begin(), taints.end());
  taints.erase(std::unique(taints.begin(), taints.end()), taints.end());
}

void read_condition(const json::object& node, NodeObject& object) {
  object.why = "the node has no condition Ready";
  for (const json::object* condition : objects_at(node, {"status", "conditions"})) {
    if (text_at(*condition, {"type"}) != "Ready") continue;
    object.ready = text_at(*condition, {"status"}) == "True";
    object.why =
        object.ready ? std::string() : shown(text_at(*condition, {"reason"}) + ": " + text_at(*condition, {"message"}));
  }
}

Result<std::int64_t> amount_of(const json::object& node, std::string_view resource,
                               Result<std::int64_t> (*read)(std::string_view)) {
  const std::string text = text_at(node, {"status", "allocatable", resource});
  if (text.empty()) return std::int64_t{0};
  auto amount = read(text);
  if (!amount)
    return Error{ErrorCode::kInvalid, "status.allocatable." + std::string(resource) + ": " + amount.error().message};
  return amount;
}

std::string model_of(const Labels& labels) {
  for (const std::string_view key : {"berth.dev/gpu-model", "nvidia.com/gpu.product"}) {
    if (std::string model = label_of(labels, key); !model.empty()) return model;
  }
  return "gpu";
}

Gpu device_of(const NodeObject& object, const std::string& resource, std::int64_t index) {
  const Labels& labels = object.spec.labels;
  Gpu gpu;
  gpu.uuid = device_uuid(object.uid, resource, index);
  gpu.model = resource == kWholeGpu ? model_of(labels) : resource;
  const bool is_part = resource.starts_with("nvidia.com/mig-");
  const auto mib = whole_of(label_of(labels, is_part ? resource + ".memory" : "nvidia.com/gpu.memory"));
  if (mib && (is_part || resource.starts_with("nvidia.com/"))) gpu.memory_mib = *mib;
  return gpu;
}

// Whole GPUs come first. The others take turns, so that each resource has some if there are too many.
Result<void> read_devices(const json::object& node, const std::vector<std::string>& vendors, NodeObject& object) {
  Devices counts;
  const json::object* all = object_at(node, {"status", "allocatable"});
  if (all == nullptr) return {};
  std::int64_t sum = 0;
  for (const auto& [resource, quantity] : *all) {
    if (!is_device(resource, vendors)) continue;
    const auto count = amount_of(node, resource, whole_of);
    if (!count) return count.error();
    if (*count > 0) counts[resource] = *count;
    sum += std::min<std::int64_t>(*count, std::int64_t{1} << 40);
  }
  std::vector<Gpu>& gpus = object.spec.gpus;
  const std::int64_t whole = count_of(counts, kWholeGpu);
  for (std::int64_t index = 0; index < whole && gpus.size() < kMaxGpusPerNode; ++index)
    gpus.push_back(device_of(object, std::string(kWholeGpu), index));
  for (std::int64_t index = 0; index < static_cast<std::int64_t>(kMaxGpusPerNode); ++index) {
    for (const auto& [resource, count] : counts) {
      if (resource != kWholeGpu && index < count && gpus.size() < kMaxGpusPerNode)
        gpus.push_back(device_of(object, resource, index));
    }
  }
  for (const Gpu& gpu : gpus) --counts.find(resource_of_device(gpu.uuid))->second;
  std::erase_if(counts, [](const auto& one) { return one.second == 0; });
  object.passed_over = std::move(counts);
  if (static_cast<std::int64_t>(gpus.size()) < sum)
    object.notes.push_back("it has " + std::to_string(sum) + " GPUs and parts of GPUs; berth uses " +
                           std::to_string(gpus.size()));
  return {};
}

// An amount that is no quantity is passed over: a device plugin of others must not take the node away.
void read_countables(const json::object& node, const std::vector<std::string>& vendors, NodeObject& object) {
  const json::object* all = object_at(node, {"status", "allocatable"});
  if (all == nullptr) return;
  std::map<std::string, std::int64_t> amounts;
  for (const auto& [resource, quantity] : *all) {
    if (resource != kPodsCountable && !is_countable(resource, vendors)) continue;
    const auto amount = amount_of(node, resource, is_huge_pages(resource) ? mib_of : whole_of);
    if (!amount) object.notes.push_back(amount.error().message);
    if (amount && *amount > 0) amounts[shown(resource, 320)] = *amount;
  }
  Countables& countables = object.spec.countables;
  countables.assign(amounts.begin(), amounts.end());
  if (countables.size() <= kMaxCountables) return;
  object.notes.push_back("it has " + std::to_string(countables.size()) + " resources beside CPUs, memory and GPUs; " +
                         "berth counts the first " + std::to_string(kMaxCountables));
  countables.resize(kMaxCountables);
}

void read_topology(const std::vector<std::string>& levels, NodeObject& object) {
  for (const std::string& level : levels) {
    std::string place = label_of(object.spec.labels, level);
    if (place.empty()) {
      object.spec.topology.clear();
      object.notes.push_back("it has no label " + shown(level) + ", so it is in no domain of the topology");
      return;
    }
    object.spec.topology.push_back(std::move(place));
  }
}

}  // namespace

Result<NodeObject> read_node(const json::object& node, const std::string& cell, const std::vector<std::string>& levels,
                             const std::vector<std::string>& vendors) {
  NodeObject object;
  object.uid = text_at(node, {"metadata", "uid"});
  NodeSpec& spec = object.spec;
  spec.name = text_at(node, {"metadata", "name"});
  if (spec.name.empty() || object.uid.empty())
    return Error{ErrorCode::kInvalid, "a Node without metadata.name or metadata.uid"};
  spec.cell = cell;
  spec.machine = object.uid;
  spec.containers = true;
  spec.labels = labels_of(node);
  if (std::string pool = label_of(spec.labels, "berth.dev/pool"); !pool.empty()) spec.pool = std::move(pool);
  const auto cpu = amount_of(node, "cpu", milli_of);
  if (!cpu) return cpu.error();
  const auto memory = amount_of(node, "memory", mib_of);
  if (!memory) return memory.error();
  spec.cpu_milli = *cpu;
  spec.memory_mib = *memory;
  if (auto ok = read_devices(node, vendors, object); !ok) return ok.error();
  read_countables(node, vendors, object);
  read_topology(levels, object);
  read_taints(node, object);
  read_condition(node, object);
  for (const json::object* address : objects_at(node, {"status", "addresses"})) {
    if (text_at(*address, {"type"}) == "InternalIP") spec.address = shown(text_at(*address, {"address"}), 64);
  }
  return object;
}

}  // namespace berth::kube
