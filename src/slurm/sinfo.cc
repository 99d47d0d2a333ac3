#include <algorithm>
#include <array>
#include <map>

#include "slurm/host_names.h"
#include "slurm/letter_case.h"
#include "slurm/row_format.h"
#include "slurm/shell.h"
#include "slurm/time_forms.h"

namespace berth::slurm {
namespace {

constexpr std::string_view kUsualNodes = "%9P %.5a %.10l %.6D %.6t %N";
constexpr std::string_view kLongNodes = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N";
constexpr std::string_view kByNode = "%N %.6D %.9P %6t";
constexpr std::string_view kByNodeLong = "%N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E";
constexpr std::string_view kSummary = "%9P %.5a %.10l %.16F %N";

struct NodeState {
  std::string_view name;
  std::string_view compact;
};
constexpr std::array kNodeStates{NodeState{"unknown", "unk"},  NodeState{"down", "down"},
                                 NodeState{"idle", "idle"},    NodeState{"allocated", "alloc"},
                                 NodeState{"mixed", "mix"},    NodeState{"drained", "drain"},
                                 NodeState{"draining", "drng"}};

// Nodes of one pool in one state.
struct NodeRow {
  std::string pool;
  std::string state;
  bool is_default = false;
  std::vector<cli::Json> nodes;

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const cli::Json& node : nodes) all.push_back(cli::show(node, "name"));
    return all;
  }
};

std::string state_of_node(const cli::Json& node) {
  const std::string status = cli::show(node, "status");
  if (status == "lost") return "down";
  if (status != "ready") return "unknown";
  const bool busy = !cli::items(node, "tasks").empty();
  if (cli::is_true(node, "cordoned") || cli::is_true(node, "draining")) return busy ? "draining" : "drained";
  if (!busy) return "idle";
  const bool gpus_full = cli::integer(node, "gpus_total") > 0 && cli::number(node, "gpus_free") <= 0;
  return gpus_full || cli::number(node, "cpus_free") <= 0 ? "allocated" : "mixed";
}

std::string compact_state(const std::string& state) {
  for (const NodeState& one : kNodeStates) {
    if (one.name == state) return std::string(one.compact);
  }
  return state.empty() ? "n/a" : state;
}

std::string of_first(const NodeRow& row, const std::function<std::string(const cli::Json&)>& text) {
  return row.nodes.empty() ? "0" : text(row.nodes.front());
}

std::string member_of_first(const NodeRow& row, std::string_view member) {
  return of_first(row, [&](const cli::Json& node) { return cli::show(node, member); });
}

std::string why_closed(const NodeRow& row) {
  const std::string why = row.nodes.empty() ? "" : cli::show(row.nodes.front(), "why");
  return why.empty() ? "none" : why;
}

std::string gpus_of_node(const cli::Json& node) {
  const auto& gpus = cli::items(node, "gpus");
  return gpus.empty() ? "(null)" : "gpu:" + cli::show(gpus[0], "model") + ":" + std::to_string(gpus.size());
}

// "1/3/0/4": allocated, idle, other, all.
std::string node_counts(const NodeRow& row) {
  std::array<int, 3> counts{};
  for (const cli::Json& node : row.nodes) {
    const std::string state = state_of_node(node);
    ++counts[state == "allocated" || state == "mixed" ? 0 : state == "idle" ? 1 : 2];
  }
  return std::to_string(counts[0]) + "/" + std::to_string(counts[1]) + "/" + std::to_string(counts[2]) + "/" +
         std::to_string(row.nodes.size());
}

std::string cpu_counts(const NodeRow& row) {
  std::int64_t all = 0;
  std::int64_t idle = 0;
  for (const cli::Json& node : row.nodes) {
    all += static_cast<std::int64_t>(cli::number(node, "cpus"));
    idle += static_cast<std::int64_t>(cli::number(node, "cpus_free"));
  }
  return std::to_string(all - idle) + "/" + std::to_string(idle) + "/0/" + std::to_string(all);
}

struct NodeField {
  char letter;
  std::string_view name;
  std::string_view title;
  std::string (*text)(const NodeRow&);
};

// clang-format off
constexpr auto kNodeFields = std::to_array<NodeField>({
    {'P', "partition", "PARTITION", [](const NodeRow& row) { return row.pool + (row.is_default ? "*" : ""); }},
    {'R', "partitionname", "PARTITION", [](const NodeRow& row) { return row.pool; }},
    {'a', "available", "AVAIL", [](const NodeRow&) { return std::string("up"); }},
    {'l', "time", "TIMELIMIT", [](const NodeRow&) { return std::string("infinite"); }},
    {'D', "nodes", "NODES", [](const NodeRow& row) { return std::to_string(row.nodes.size()); }},
    {'t', "statecompact", "STATE", [](const NodeRow& row) { return compact_state(row.state); }},
    {'T', "statelong", "STATE", [](const NodeRow& row) { return row.state.empty() ? std::string("n/a") : row.state; }},
    {'N', "nodelist", "NODELIST", [](const NodeRow& row) { return host_list(row.names()); }},
    {'n', "nodehost", "HOSTNAMES", [](const NodeRow& row) { return host_list(row.names()); }},
    {'F', "nodeaiot", "NODES(A/I/O/T)", node_counts},
    {'C', "cpusstate", "CPUS(A/I/O/T)", cpu_counts},
    {'c', "cpus", "CPUS", [](const NodeRow& row) { return member_of_first(row, "cpus"); }},
    {'m', "memory", "MEMORY", [](const NodeRow& row) { return member_of_first(row, "memory_mib"); }},
    {'e', "freemem", "FREE_MEM", [](const NodeRow& row) { return member_of_first(row, "memory_free_mib"); }},
    {'G', "gres", "GRES", [](const NodeRow& row) { return of_first(row, gpus_of_node); }},
    {'s', "size", "JOB_SIZE", [](const NodeRow&) { return std::string("1-infinite"); }},
    {'r', "root", "ROOT", [](const NodeRow&) { return std::string("no"); }},
    {'h', "oversubscribe", "OVERSUBS", [](const NodeRow&) { return std::string("NO"); }},
    {'g', "groups", "GROUPS", [](const NodeRow&) { return std::string("all"); }},
    {'L', "defaulttime", "DEFAULTTIME", [](const NodeRow&) { return std::string("infinite"); }},
    {'E', "reason", "REASON", why_closed},
    {'f', "features", "AVAIL_FEATURES", [](const NodeRow&) { return std::string("(null)"); }},
    {'w', "weight", "WEIGHT", [](const NodeRow&) { return std::string("1"); }},
    {'d', "disk", "TMP_DISK", [](const NodeRow&) { return std::string("0"); }},
    {'z', "socketcorethread", "S:C:T", [](const NodeRow& row) { return "1:" + member_of_first(row, "cpus") + ":1"; }},
});
// clang-format on

std::size_t node_field(char letter) {
  for (std::size_t i = 0; i < kNodeFields.size(); ++i) {
    if (kNodeFields[i].letter == letter) return i;
  }
  return std::string::npos;
}

std::size_t node_field_named(const std::string& name) {
  const std::string word = lower_case(name);
  for (std::size_t i = 0; i < kNodeFields.size(); ++i) {
    if (kNodeFields[i].name == word) return i;
  }
  return std::string::npos;
}

RowFormat node_format(Shell& shell, const CommandWords& words) {
  if (const auto names = words.value("Format")) return parse_names(*names, node_field_named);
  std::string text(words.has("Node")        ? (words.has("long") ? kByNodeLong : kByNode)
                   : words.has("summarize") ? kSummary
                   : words.has("long")      ? kLongNodes
                                            : kUsualNodes);
  if (const std::string variable = shell.variable("SINFO_FORMAT"); !variable.empty()) text = variable;
  if (const auto given = words.value("format")) text = *given;
  return parse_letters(text, node_field);
}

// The states that -t names; a value is an exit code.
std::optional<int> read_node_states(Shell& shell, const CommandWords& words, std::vector<std::string>& states) {
  for (const std::string& text : comma_list(words.value("states").value_or(""))) {
    const std::string word = lower_case(text);
    const auto known = std::find_if(kNodeStates.begin(), kNodeStates.end(), [&](const NodeState& one) {
      return one.name == word || one.compact == word || (word == "drain" && one.name == "drained");
    });
    if (known == kNodeStates.end()) {
      shell.error("Bad state string: \"" + text + "\"");
      std::string all;
      for (const NodeState& one : kNodeStates) all += (all.empty() ? "" : ",") + std::string(one.name);
      shell.error("valid states: " + all);
      return 1;
    }
    states.emplace_back(known->name);
  }
  return std::nullopt;
}

std::vector<NodeRow> grouped(const CommandWords& words, const std::vector<cli::Json>& nodes,
                             const std::vector<std::string>& wanted_nodes, const std::vector<std::string>& states,
                             const std::string& default_pool) {
  const auto wanted_pools = comma_list(words.value("partition").value_or(""));
  const auto among = [](const std::vector<std::string>& list, const std::string& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  std::vector<NodeRow> rows;
  std::vector<std::string> pools;
  for (const cli::Json& node : nodes) {
    const std::string pool = cli::show(node, "pool");
    if (!among(wanted_pools, pool)) continue;
    if (std::find(pools.begin(), pools.end(), pool) == pools.end()) pools.push_back(pool);
    const std::string state = state_of_node(node);
    const bool dead = state == "down" || state == "unknown";
    if (!among(wanted_nodes, cli::show(node, "name")) || (words.has("dead") && !dead) ||
        (words.has("responding") && dead))
      continue;
    if (!states.empty() && std::find(states.begin(), states.end(), state) == states.end()) continue;
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const NodeRow& row) {
      return row.pool == pool && (words.has("summarize") || row.state == state) && !words.has("Node");
    });
    if (same != rows.end()) {
      same->nodes.push_back(node);
    } else {
      rows.push_back({pool, state, pool == default_pool, {node}});
    }
  }
  // A pool of which nothing is chosen is still named.
  for (const std::string& pool : pools) {
    const bool shown = std::any_of(rows.begin(), rows.end(), [&](const NodeRow& row) { return row.pool == pool; });
    if (!shown && !words.has("Node")) rows.push_back({pool, "", pool == default_pool, {}});
  }
  return rows;
}

}  // namespace

int run_sinfo(Shell& shell, const std::vector<std::string>& given) {
  Begun begun = begin_tool(shell, given);
  if (begun.code) return *begun.code;
  const CommandWords& words = begun.words;
  std::vector<std::string> states;
  if (const auto code = read_node_states(shell, words, states)) return *code;
  const auto wanted = host_names(words.value("nodes").value_or(""));
  if (!wanted) {
    shell.error("Invalid node name " + *words.value("nodes"));
    return 1;
  }
  const auto nodes = all_items(shell.session, "/v1/nodes");
  if (!nodes) return server_failed(shell, nodes.error(), "slurm_load_partitions: ");
  std::string default_pool = shell.variable("SBATCH_PARTITION");
  if (default_pool.empty() && !nodes->empty()) {
    const std::string first = cli::show(nodes->front(), "pool");
    if (std::all_of(nodes->begin(), nodes->end(), [&](const auto& node) { return cli::show(node, "pool") == first; }))
      default_pool = first;
  }
  RowFormat format = node_format(shell, words);
  for (const std::string& unknown : format.unknown)
    shell.err() << "Invalid node format specification: " << unknown << "\n";
  const std::vector<NodeRow> rows = grouped(words, *nodes, *wanted, states, default_pool);
  if (words.has("Node") && !words.has("format") && !words.has("Format")) {
    std::size_t widest = 10;
    for (const cli::Json& node : *nodes) widest = std::max(widest, cli::show(node, "name").size());
    if (!format.columns.empty()) format.columns.front().width = widest;
  }
  if (words.has("long")) shell.out() << date_line(shell.now) << "\n";
  if (!words.has("noheader"))
    shell.out() << row_line(format, [](std::size_t field) { return std::string(kNodeFields[field].title); });
  for (const NodeRow& row : rows)
    shell.out() << row_line(format, [&](std::size_t field) { return kNodeFields[field].text(row); });
  return 0;
}

}  // namespace berth::slurm
