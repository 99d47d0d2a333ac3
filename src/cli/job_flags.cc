#include "cli/job_flags.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <utility>

#include "base/utf8.h"
#include "model/document/job_document.h"
#include "model/name.h"

namespace berth::cli {
namespace {

using document::Node;

constexpr std::array kFlags{
    JobFlag{"--queue", "queue", FlagKind::kText, "PATH",
            "queue it is charged to, as research/nlp (default: the only one)"},
    JobFlag{"--name", "name", FlagKind::kText, "NAME", "name shown in lists (default: the program's name)"},
    JobFlag{"--user", "user", FlagKind::kText, "NAME", "whose job it is (default: the token's owner)"},
    JobFlag{"--kind", "kind", FlagKind::kText, "gang|service|array|interactive", "kind of job (gang)"},
    JobFlag{"--class", "class", FlagKind::kText, "training|inference|dev|batch", "what it is for (training)"},
    JobFlag{"--tasks", "tasks", FlagKind::kPlain, "N", "tasks, all started together or not at all (default 1)"},
    JobFlag{"--min-tasks", "min_tasks", FlagKind::kPlain, "N", "the least number it can run with (default: --tasks)"},
    JobFlag{"--gpus", "gpus", FlagKind::kPlain, "N", "GPUs per task: 1, 2, ... or a share such as 0.5 (default 0)"},
    JobFlag{"--gpu-model", "gpu_models", FlagKind::kList, "MODEL", "GPU model that will do; again for more"},
    JobFlag{"--mig-profile", "mig_profile", FlagKind::kText, "PROFILE",
            "instead of --gpus: a MIG instance per task, as 1g.10gb"},
    JobFlag{"--cpus", "cpus", FlagKind::kPlain, "N", "CPU cores per task (default 1, or 1 per GPU)"},
    JobFlag{"--memory", "memory", FlagKind::kPlain, "SIZE", "memory per task, as 16GiB"},
    JobFlag{"--launch", "launch", FlagKind::kText, "per-task|per-gpu|torchrun", "what is started (per-task)"},
    JobFlag{"--priority", "priority", FlagKind::kText, "CLASS", "priority class (berth config lists them)"},
    JobFlag{"--time-limit", "time_limit", FlagKind::kPlain, "TIME", "stopped after this long, as 2h or 1h30m"},
    JobFlag{"--estimate", "estimate", FlagKind::kPlain, "TIME", "how long it will probably run"},
    JobFlag{"--checkpoint-signal", "checkpoint.signal", FlagKind::kText, "SIGNAL",
            "sent when it must give way; it saves and leaves"},
    JobFlag{"--grace", "checkpoint.grace", FlagKind::kPlain, "TIME", "time to save before it is killed"},
    JobFlag{"--checkpoint-interval", "checkpoint.interval", FlagKind::kPlain, "TIME", "how often it saves by itself"},
    JobFlag{"--retries", "retries", FlagKind::kPlain, "N", "failures that are tried again (giving way is none)"},
    JobFlag{"--env", "env", FlagKind::kPairs, "KEY=VALUE", "environment variable; KEY alone takes yours"},
    JobFlag{"--workdir", "workdir", FlagKind::kText, "DIR", "where the command runs (default: here)"},
    JobFlag{"--image", "image", FlagKind::kText, "IMAGE", "container image; only nodes that run containers"},
    JobFlag{"--pool", "pool", FlagKind::kText, "POOL", "only nodes of this pool"},
    JobFlag{"--node-selector", "node_selector", FlagKind::kPairs, "LABEL=VALUE", "only nodes with this label"},
    JobFlag{"--toleration", "tolerations", FlagKind::kList, "TAINT", "runs on nodes with this taint too"},
    JobFlag{"--topology", "topology.required", FlagKind::kText, "LEVEL", "all tasks within one domain of this level"},
    JobFlag{"--prefer-topology", "topology.preferred", FlagKind::kText, "LEVEL", "the same if it can be had"},
    JobFlag{"--numa", "numa", FlagKind::kText, "best-effort|none|restricted|single-numa-node",
            "NUMA domains of the GPUs of one task (best-effort)"},
    JobFlag{"--label", "labels", FlagKind::kPairs, "LABEL=VALUE", "what the rules of other jobs go by; again for more"},
    JobFlag{"--near", "affinity", FlagKind::kTerms, "LABEL=VALUE[@LEVEL]",
            "place next to jobs with this label (same node, or same LEVEL)"},
    JobFlag{"--prefer-near", "affinity", FlagKind::kTerms, "LABEL=VALUE[@LEVEL]", "the same if it can be had"},
    JobFlag{"--away-from", "anti_affinity", FlagKind::kTerms, "LABEL=VALUE[@LEVEL]",
            "only where no such jobs run, in one domain of the level (node)"},
    JobFlag{"--prefer-away-from", "anti_affinity", FlagKind::kTerms, "LABEL=VALUE[@LEVEL]",
            "the same if it can be had"},
    JobFlag{"--port", "ports", FlagKind::kList, "PORT", "TCP port the task needs to itself on its node; repeatable"},
    JobFlag{"--after", "after", FlagKind::kList, "ID", "not before this job has started"},
    JobFlag{"--afterok", "afterok", FlagKind::kList, "ID", "not before this job has succeeded"},
    JobFlag{"--afterany", "afterany", FlagKind::kList, "ID", "not before this job has ended"},
    JobFlag{"--deadline", "deadline", FlagKind::kText, "TIME", "when it should be done, ISO 8601"},
    JobFlag{"--earliest-start", "earliest_start", FlagKind::kText, "TIME", "not before this time, ISO 8601"},
    JobFlag{"--array-size", "array.size", FlagKind::kPlain, "N", "elements of an array"},
    JobFlag{"--array-running", "array.running", FlagKind::kPlain, "N", "so many of them at once"},
    JobFlag{"--max-unavailable", "max_unavailable", FlagKind::kPlain, "N",
            "how many replicas may be down at once during drains and updates"},
    JobFlag{"--hold", "hold", FlagKind::kSwitch, "", "wait until berth release"},
    JobFlag{"--exclusive", "exclusive", FlagKind::kSwitch, "", "whole nodes"},
    JobFlag{"--spread", "spread", FlagKind::kSwitch, "",
            "on as many nodes as it has tasks or replicas, where possible"},
};

Node& inner_map(Node& map, std::string_view key) {
  for (auto& entry : map.entries) {
    if (entry.key == key && entry.value.kind == document::NodeKind::kMap) return entry.value;
  }
  map.set(key, document::map_node());
  return inner_map(map, key);
}

// The map that holds the last part of a dotted key, and that part.
std::pair<Node*, std::string_view> locate(Node& document, std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {&document, key};
  return {&inner_map(document, key.substr(0, dot)), key.substr(dot + 1)};
}

Result<void> put_pairs(const JobFlag& flag, const std::vector<std::string>& values, const Surroundings& where,
                       Node& map) {
  std::set<std::string> names;
  for (const std::string& value : values) {
    const std::size_t equals = value.find('=');
    const std::string here = std::string(flag.flag) + " " + value;
    if (equals == 0 || (equals == std::string::npos && flag.key != "env")) {
      return invalid(here + ": give " + std::string(flag.value_name));
    }
    const std::string name = value.substr(0, equals);
    if (!names.insert(name).second) return invalid(here + ": " + name + " is given twice; leave one out");
    const std::string given = equals == std::string::npos ? where.variable(name) : value.substr(equals + 1);
    if (!is_utf8(given)) return invalid(here + ": your " + name + " is not UTF-8; give " + name + "=VALUE");
    map.set(name, document::string_node(given));
  }
  return {};
}

// Beside those that the file or another flag has.
Result<void> put_terms(const JobFlag& flag, const std::vector<std::string>& values, Node& map) {
  Node list = document::list_node();
  if (const Node* there = map.find(flag.key)) list = *there;
  for (const std::string& value : values) {
    const std::size_t at = value.find('@');
    Node labels = document::map_node();
    std::istringstream pairs(value.substr(0, at));
    for (std::string pair; std::getline(pairs, pair, ',');) {
      const std::size_t equals = pair.find('=');
      if (equals == 0 || equals == std::string::npos)
        return invalid(std::string(flag.flag) + " " + value + ": give " + std::string(flag.value_name));
      const std::string name = pair.substr(0, equals);
      if (labels.find(name) != nullptr)
        return invalid(std::string(flag.flag) + " " + value + ": " + name + " is given twice; leave one out");
      labels.set(name, document::string_node(pair.substr(equals + 1)));
    }
    Node& term = list.items.emplace_back(document::map_node());
    term.set("labels", std::move(labels));
    term.set("level", document::string_node(at == std::string::npos ? "node" : value.substr(at + 1)));
    if (flag.flag.starts_with("--prefer")) term.set("required", document::plain_node("false"));
  }
  map.set(flag.key, std::move(list));
  return {};
}

Result<void> put_flag(const JobFlag& flag, const std::vector<std::string>& values, const Surroundings& where,
                      Node& document) {
  const auto [map, key] = locate(document, flag.key);
  switch (flag.kind) {
    case FlagKind::kText:
      map->set(key, document::string_node(values.back()));
      return {};
    case FlagKind::kPlain:
      map->set(key, document::plain_node(values.back()));
      return {};
    case FlagKind::kSwitch:
      map->set(key, document::plain_node("true"));
      return {};
    case FlagKind::kList: {
      Node list = document::list_node();
      for (const std::string& value : values) list.items.push_back(document::plain_node(value));
      map->set(key, std::move(list));
      return {};
    }
    case FlagKind::kPairs:
      return put_pairs(flag, values, where, inner_map(*map, key));
    case FlagKind::kTerms:
      return put_terms(flag, values, *map);
  }
  return {};
}

bool is_interpreter(std::string_view program) {
  return program.starts_with("python") || program == "bash" || program == "sh";
}

// What the command runs, as far as that is a name: "python3 -u /home/ana/train.py" gives "train.py".
std::string name_of_program(const std::vector<std::string>& command) {
  const auto last_part = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  std::string name = last_part(command.front());
  if (is_interpreter(name)) {
    const auto script =
        std::find_if(command.begin() + 1, command.end(), [](const auto& word) { return !word.starts_with('-'); });
    if (script != command.end() && well_formed_name(last_part(*script))) name = last_part(*script);
  }
  return well_formed_name(name) ? name : "";
}

Result<void> put_command(const JobOptions& options, const Surroundings& where, Node& document) {
  Node list = document::list_node();
  for (const std::string& word : options.command) list.items.push_back(document::string_node(word));
  document.set("command", std::move(list));
  if (document.find("workdir") == nullptr) {
    if (!is_utf8(where.directory))
      return invalid("the working directory's name is not UTF-8; give another by --workdir");
    document.set("workdir", document::string_node(where.directory));
  }
  if (document.find("name") != nullptr) return {};
  const std::string name = name_of_program(options.command);
  if (!name.empty()) document.set("name", document::string_node(name));
  return {};
}

}  // namespace

std::span<const JobFlag> job_flags() { return kFlags; }

Result<void> put_flags(const JobOptions& options, const Surroundings& where, Node& document) {
  for (std::size_t i = 0; i < options.values.size(); ++i) {
    if (options.values[i].empty()) continue;
    const JobFlag& flag = kFlags.at(i);
    if (auto put = put_flag(flag, options.values[i], where, document); !put) return put;
    if (flag.key == "checkpoint.signal")
      inner_map(document, "checkpoint").set("on_signal", document::plain_node("true"));
  }
  if (!options.command.empty()) return put_command(options, where, document);
  return {};
}

namespace {

bool names_image(const JobOptions& options) {
  for (std::size_t i = 0; i < options.values.size(); ++i) {
    if (kFlags.at(i).key == "image" && !options.values[i].empty()) return true;
  }
  return false;
}

}  // namespace

Result<Node> job_document(const JobOptions& options, std::string_view text, const Surroundings& where) {
  Node tree = document::map_node();
  const std::string file = options.file.empty() ? "command line" : options.file;
  if (options.file.empty() && options.command.empty() && !names_image(options)) {
    return invalid(
        "nothing to run; give a command after --, as in `berth submit --gpus 1 -- python3 train.py`, or -f FILE");
  }
  if (!options.file.empty()) {
    auto parsed = document::parse(text, options.file);
    if (!parsed) return parsed.error();
    tree = std::move(*parsed);
  }
  if (tree.kind == document::NodeKind::kMap) {
    if (auto put = put_flags(options, where, tree); !put) return put.error();
  }
  if (auto spec = document::read_job(tree, file); !spec) return spec.error();
  return tree;
}

}  // namespace berth::cli
