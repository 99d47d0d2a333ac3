#include "state/topology_index.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/check.h"

namespace berth::state {

namespace {

auto order_of(const DomainRoom& room) { return std::tuple(room.node_class, room.model, room.whole); }

void add(std::vector<DomainRoom>& all, const DomainRoom& one, int sign) {
  auto at = std::lower_bound(all.begin(), all.end(), one,
                             [](const DomainRoom& a, const DomainRoom& b) { return order_of(a) < order_of(b); });
  if (at == all.end() || order_of(*at) != order_of(one)) {
    BERTH_CHECK(sign > 0);
    all.insert(at, one);
    return;
  }
  at->nodes += static_cast<std::uint32_t>(sign);
  at->milli += sign * one.milli;
  if (at->nodes == 0) all.erase(at);
}

std::vector<DomainRoom> room_on(const NodeState& node, NodeClassId node_class) {
  std::vector<DomainRoom> room;
  if (!node.takes_tasks()) return room;
  std::array<DomainRoom, kMaxGpuModels> of{};
  for (const GpuSlot& gpu : node.gpus) {
    DomainRoom& model = of[gpu.model.index()];
    const std::int32_t available = gpu.available_milli();
    model.nodes = 1;
    model.milli += available;
    if (available == kMilli) ++model.whole;
  }
  for (std::size_t m = 0; m < of.size(); ++m) {
    if (of[m].nodes == 0) continue;
    of[m].node_class = node_class;
    of[m].model = GpuModelId(static_cast<std::uint16_t>(m));
    room.push_back(of[m]);
  }
  return room;
}

std::string_view label_of(const NodeSpec& spec, const std::string& key) {
  const auto found =
      std::find_if(spec.labels.begin(), spec.labels.end(), [&](const auto& l) { return l.first == key; });
  return found == spec.labels.end() ? std::string_view() : std::string_view(found->second);
}

void insert_by_path(std::vector<DomainId>& ids, DomainId id, const std::vector<Domain>& domains) {
  const auto before = [&](DomainId a, DomainId b) { return domains[a.index()].path < domains[b.index()].path; };
  ids.insert(std::lower_bound(ids.begin(), ids.end(), id, before), id);
}

}  // namespace

void TopologyIndex::configure(std::vector<std::string> levels) {
  *this = {};
  levels_ = std::move(levels);
  by_level_.resize(levels_.size());
}

std::optional<std::size_t> TopologyIndex::level_named(std::string_view name) const {
  const auto found = std::find(levels_.begin(), levels_.end(), name);
  if (found == levels_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - levels_.begin());
}

std::string_view TopologyIndex::path_of(NodeId node) const {
  const auto& domains = places_[node.index()].domains;
  return domains.empty() ? std::string_view() : std::string_view(domain(domains.back()).path);
}

DomainId TopologyIndex::domain_named(DomainId parent, std::size_t level, const std::string& name) {
  const std::string path = parent.valid() ? domain(parent).path + "/" + name : name;
  const auto [known, fresh] = ids_.try_emplace({level, path}, DomainId(static_cast<std::uint32_t>(domains_.size())));
  if (!fresh) return known->second;
  Domain made;
  made.path = path;
  made.level = level;
  made.parent = parent;
  domains_.push_back(std::move(made));
  insert_by_path(by_level_[level], known->second, domains_);
  if (parent.valid()) insert_by_path(domains_[parent.index()].children, known->second, domains_);
  return known->second;
}

std::vector<DomainId> TopologyIndex::domains_for(const NodeSpec& spec) {
  std::vector<DomainId> domains;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    const std::string_view stated = level < spec.topology.size() ? std::string_view(spec.topology[level]) : "";
    const std::string_view name = stated.empty() ? label_of(spec, levels_[level]) : stated;
    if (name.empty()) continue;
    domains.push_back(domain_named(domains.empty() ? DomainId() : domains.back(), level, std::string(name)));
  }
  return domains;
}

void TopologyIndex::install(const NodeState& node, const NodeIndex& nodes) {
  if (levels_.empty() && places_.size() > node.id.index()) return;
  if (node.id.index() >= places_.size()) places_.resize(node.id.index() + 1);
  if (levels_.empty()) return;
  Place& place = places_[node.id.index()];
  leave(node.id, place);
  place.domains = domains_for(node.spec);
  place.shape = nodes.shape_of(node.id);
  place.there = node.status != NodeStatus::kLost;
  place.room = room_on(node, place.shape.node_class);
  enter(node.id, place);
}

void TopologyIndex::refresh(const NodeState& node) {
  Place& place = places_[node.id.index()];
  if (place.domains.empty()) return;
  auto room = room_on(node, place.shape.node_class);
  if (room == place.room) return;
  count(place, -1);
  place.room = std::move(room);
  count(place, +1);
}

void TopologyIndex::forget_last() {
  leave(NodeId(static_cast<std::uint32_t>(places_.size() - 1)), places_.back());
  places_.pop_back();
}

void TopologyIndex::count(const Place& place, int sign) {
  for (const DomainId id : place.domains) {
    for (const DomainRoom& one : place.room) add(domains_[id.index()].room, one, sign);
  }
}

void TopologyIndex::enter(NodeId node, const Place& place) {
  for (const DomainId id : place.domains) {
    Domain& domain = domains_[id.index()];
    domain.nodes.insert(std::lower_bound(domain.nodes.begin(), domain.nodes.end(), node), node);
    if (place.there) ++domain.shapes[place.shape];
  }
  count(place, +1);
}

void TopologyIndex::leave(NodeId node, const Place& place) {
  count(place, -1);
  for (const DomainId id : place.domains) {
    Domain& domain = domains_[id.index()];
    domain.nodes.erase(std::lower_bound(domain.nodes.begin(), domain.nodes.end(), node));
    if (place.there && --domain.shapes[place.shape] == 0) domain.shapes.erase(place.shape);
  }
}

bool TopologyIndex::describes_same(const NodeIndex& mine, const TopologyIndex& other, const NodeIndex& theirs) const {
  // Class ids depend on the order of installation, so the ids of `other` are translated into ids of this index.
  const auto translated = [&](NodeClassId id) {
    const auto& classes = mine.classes();
    const auto found = std::find(classes.begin(), classes.end(), theirs.classes()[id.index()]);
    return NodeClassId(static_cast<std::uint16_t>(found - classes.begin()));
  };
  std::size_t nodes = 0;
  for (const Domain& domain : domains_) nodes += domain.nodes.size();
  for (const Domain& theirs_domain : other.domains_) {
    const auto known = ids_.find({theirs_domain.level, theirs_domain.path});
    if (known == ids_.end()) return false;
    const Domain& domain = domains_[known->second.index()];
    std::vector<DomainRoom> room;
    for (DomainRoom one : theirs_domain.room) {
      one.node_class = translated(one.node_class);
      add(room, one, +1);
    }
    std::map<NodeShape, std::uint32_t> shapes;
    for (const auto& [shape, count] : theirs_domain.shapes) {
      NodeShape one = shape;
      one.node_class = translated(shape.node_class);
      shapes.emplace(one, count);
    }
    if (domain.nodes != theirs_domain.nodes || domain.room != room || domain.shapes != shapes) return false;
    nodes -= domain.nodes.size();
  }
  return nodes == 0 && levels_ == other.levels_;
}

}  // namespace berth::state
