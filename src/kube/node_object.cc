#include "kube/node_object.h"

#include <algorithm>

#include "kube/json_reading.h"
#include "kube/node_rule.h"
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
  std::erase_if(labels, [](const auto& label) { return label.first == kNameLabel; });
  labels.emplace_back(kNameLabel, text_at(node, {"metadata", "name"}));
  std::sort(labels.begin(), labels.end());
  return labels;
}

void read_taints(const json::object& node, NodeObject& object) {
  for (const json::object* taint : objects_at(node, {"spec", "taints"})) {
    const std::string key = text_at(*taint, {"key"});
    if (key == kOutOfService) object.out_of_service = true;
    if (text_at(*taint, {"effect"}) == "PreferNoSchedule") continue;
    object.spec.taints.push_back({taint_name(key, text_at(*taint, {"value"})), ""});
  }
  if (true_at(node, {"spec", "unschedulable"})) object.spec.taints.push_back({std::string(kUnschedulable), ""});
  std::sort(object.spec.taints.begin(), object.spec.taints.end(),
            [](const Taint& a, const Taint& b) { return a.key < b.key; });
  const auto same = [](const Taint& a, const Taint& b) { return a.key == b.key; };
  object.spec.taints.erase(std::unique(object.spec.taints.begin(), object.spec.taints.end(), same),
                           object.spec.taints.end());
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

Result<void> read_gpus(const json::object& node, NodeObject& object) {
  const auto count = amount_of(node, "nvidia.com/gpu", whole_of);
  if (!count) return count.error();
  const Labels& labels = object.spec.labels;
  const std::string memory = label_of(labels, "nvidia.com/gpu.memory");
  const auto mib = memory.empty() ? Result<std::int64_t>(std::int64_t{0}) : whole_of(memory);
  if (static_cast<std::size_t>(*count) > kMaxGpusPerNode)
    object.notes.push_back("it has " + std::to_string(*count) + " GPUs; berth uses " + std::to_string(kMaxGpusPerNode));
  for (std::int64_t index = 0; index < std::min<std::int64_t>(*count, kMaxGpusPerNode); ++index) {
    Gpu gpu;
    gpu.uuid = object.uid + ":" + std::to_string(index);
    gpu.model = model_of(labels);
    gpu.memory_mib = mib ? *mib : 0;
    object.spec.gpus.push_back(std::move(gpu));
  }
  return {};
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

std::string taint_name(std::string_view key, std::string_view value) {
  return value.empty() ? shown(key, 320) : shown(key, 320) + "=" + shown(value, 64);
}

Result<NodeObject> read_node(const json::object& node, const std::string& cell,
                             const std::vector<std::string>& levels) {
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
  const auto pods = amount_of(node, "pods", whole_of);
  if (!pods) return pods.error();
  object.pods = *pods;
  spec.cpu_milli = *cpu;
  spec.memory_mib = *memory;
  if (auto ok = read_gpus(node, object); !ok) return ok.error();
  read_topology(levels, object);
  read_taints(node, object);
  read_condition(node, object);
  for (const json::object* address : objects_at(node, {"status", "addresses"})) {
    if (text_at(*address, {"type"}) == "InternalIP") spec.address = shown(text_at(*address, {"address"}), 64);
  }
  return object;
}

}  // namespace berth::kube
