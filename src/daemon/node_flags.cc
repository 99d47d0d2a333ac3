#include "daemon/node_flags.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"
#include "model/name.h"

namespace berth::daemon {

namespace {

constexpr std::size_t kMaxWord = 253;
constexpr std::string_view kOwnLabels = "berth.";

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

// Returns an error if the text cannot be shown in messages, or has a comma, which would split it in a list.
Result<void> check_word(const std::string& flag, const std::string& text) {
  if (text.size() > kMaxWord) return invalid(flag + " is longer than " + std::to_string(kMaxWord) + " bytes");
  if (!is_utf8(text)) return invalid(flag + " is not valid UTF-8");
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), control)) return invalid(flag + " contains control characters");
  if (text.find(',') != std::string::npos)
    return invalid(flag + ": " + in_quotes(text) + " has a comma; give the flag once for each");
  return {};
}

Result<void> put_pool(const std::string& pool, NodeSpec& node) {
  if (!well_formed_name(pool)) return invalid("--node-pool: this is not a name: " + std::string(kNameRule));
  node.pool = pool;
  return {};
}

Result<void> put_place(const std::string& at, NodeSpec& node) {
  std::size_t from = 0;
  while (true) {
    const std::size_t slash = at.find('/', from);
    std::string name = at.substr(from, slash == std::string::npos ? slash : slash - from);
    if (!well_formed_name(name))
      return invalid("--node-at: give a name for each level, outermost first, such as b1/r1; in each " +
                     std::string(kNameRule));
    node.topology.push_back(std::move(name));
    if (slash == std::string::npos) return {};
    from = slash + 1;
  }
}

Result<void> put_label(const std::string& text, NodeSpec& node) {
  if (auto ok = check_word("--node-label", text); !ok) return ok;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return invalid("--node-label: " + in_quotes(text) + " is not KEY=VALUE");
  const std::string key = text.substr(0, equals);
  if (key.starts_with(kOwnLabels))
    return invalid("--node-label: " + in_quotes(key) + ": labels that begin with 'berth.' are berth's own");
  const bool twice =
      std::any_of(node.labels.begin(), node.labels.end(), [&](const auto& label) { return label.first == key; });
  if (twice) return invalid("--node-label: " + in_quotes(key) + " is given twice");
  node.labels.emplace_back(key, text.substr(equals + 1));
  return {};
}

// Sets a taint. A colon or '=' is refused: elsewhere it separates the key of a taint from its value and effect.
Result<void> put_taint(const std::string& key, NodeSpec& node) {
  if (auto ok = check_word("--node-taint", key); !ok) return ok;
  if (key.empty() || key.find_first_of(":=") != std::string::npos)
    return invalid("--node-taint: " + in_quotes(key) +
                   " is not the key of a taint; give it alone, without ':' and '='");
  if (std::find(node.taints.begin(), node.taints.end(), Taint{key, ""}) != node.taints.end())
    return invalid("--node-taint: " + in_quotes(key) + " is given twice");
  node.taints.push_back({key, ""});
  return {};
}

// Returns what is wrong with the place, or "" if nothing is.
std::string excess_of(const NodeSpec& node, const ClusterConfig& config) {
  const auto& levels = config.topology_levels;
  if (node.topology.size() <= levels.size()) return "";
  const std::string place = in_quotes(joined(node.topology, "/"));
  if (levels.empty()) return place + " is no place: the configuration has no topology";
  return place + " has more names than the topology of the configuration has levels: " + joined(levels, "/");
}

}  // namespace

Result<void> put_node_flags(const NodeFlags& flags, NodeSpec& node) {
  if (flags.pool) {
    if (auto ok = put_pool(*flags.pool, node); !ok) return ok;
  }
  if (flags.at) {
    if (auto ok = put_place(*flags.at, node); !ok) return ok;
  }
  for (const std::string& label : flags.labels) {
    if (auto ok = put_label(label, node); !ok) return ok;
  }
  for (const std::string& taint : flags.taints) {
    if (auto ok = put_taint(taint, node); !ok) return ok;
  }
  std::sort(node.labels.begin(), node.labels.end());
  return {};
}

Result<void> check_place(const NodeSpec& node, const ClusterConfig& config) {
  const std::string excess = excess_of(node, config);
  if (excess.empty()) return {};
  return invalid("--node-at: " + excess);
}

std::vector<std::string> unknown_to(const ClusterConfig& config, const NodeSpec& node) {
  std::vector<std::string> notes;
  std::vector<std::string> known;
  for (const PoolConfig& pool : config.pools) known.push_back(pool.name);
  if (known.empty()) known.push_back(NodeSpec().pool);
  if (std::find(known.begin(), known.end(), node.pool) == known.end()) {
    notes.push_back("--node-pool: the configuration has no pool " + in_quotes(node.pool) + ", only " +
                    joined(known, ", ") + ": node " + node.name + " is open to every queue");
  }
  if (std::string excess = excess_of(node, config); !excess.empty()) notes.push_back("--node-at: " + excess);
  return notes;
}

}  // namespace berth::daemon
