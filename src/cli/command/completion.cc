#include <algorithm>

#include "cli/command/commands.h"
#include "cli/command_line.h"
#include "cli/exit_code.h"

namespace berth::cli {
namespace {

bool takes_job(const std::string& command) {
  static const std::vector<std::string> kCommands{"job",  "why",     "logs",       "cancel",
                                                  "hold", "release", "prioritize", "move"};
  return std::find(kCommands.begin(), kCommands.end(), command) != kCommands.end();
}
bool takes_node(const std::string& command) {
  static const std::vector<std::string> kCommands{"nodes", "cordon", "uncordon", "drain", "fence"};
  return std::find(kCommands.begin(), kCommands.end(), command) != kCommands.end();
}

std::string names_of(const CommandShape& shape) {
  std::vector<std::string> names;
  for (const FlagShape& flag : shape.flags) names.insert(names.end(), flag.names.begin(), flag.names.end());
  return joined(names, " ");
}

// In single quotes, for all three shells.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "’" : std::string(1, c);
  return out + "'";
}

std::string operands_of(const std::string& command) {
  if (takes_job(command)) return "$(berth jobs -o wide 2>/dev/null | awk 'NR > 1 && $1 ~ /^[0-9]+$/ {print $1}')";
  if (takes_node(command)) return "$(berth nodes 2>/dev/null | awk 'NR > 1 {print $1}')";
  return command == "completion" ? "bash zsh fish" : "";
}

std::string bash(const std::vector<CommandShape>& shapes) {
  std::vector<std::string> commands;
  std::string cases;
  std::string choices;
  for (const CommandShape& shape : shapes) {
    commands.push_back(shape.name);
    for (const FlagShape& flag : shape.flags) {
      if (flag.choices.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) patterns.push_back(shape.name + ":" + name);
      choices += "    " + joined(patterns, "|") + ") COMPREPLY=($(compgen -W \"" + joined(flag.choices, " ") +
                 "\" -- \"$word\")); return ;;\n";
    }
    cases +=
        "    " + shape.name + ") flags=\"" + names_of(shape) + "\" operands=\"" + operands_of(shape.name) + "\" ;;\n";
  }
  return "# berth completion for bash\n"
         "_berth() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags= operands=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         joined(commands, " ") +
         "\" -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case $before in\n"
         "    --token-file|--file|-f) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
         "  esac\n"
         "  case ${COMP_WORDS[1]}:$before in\n" +
         choices +
         "  esac\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "  if [[ $word == -* ]]; then operands=; else flags=; fi\n"
         "  COMPREPLY=($(compgen -W \"$flags $operands\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _berth berth\n";
}

std::string zsh(const std::vector<CommandShape>& shapes) {
  std::string commands;
  std::string cases;
  for (const CommandShape& shape : shapes) {
    commands += "    " + quoted(shape.name + ":" + shape.says) + "\n";
    cases += "    " + shape.name + ") flags=(" + names_of(shape) + "); operands=(" + operands_of(shape.name) + ") ;;\n";
  }
  return "#compdef berth\n"
         "# berth completion for zsh\n"
         "_berth() {\n"
         "  local -a commands flags operands\n"
         "  commands=(\n" +
         commands +
         "  )\n"
         "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
         "  case $words[CURRENT-1] in\n"
         "    -o|--output) compadd table wide json yaml csv custom=; return ;;\n"
         "    -f|--file|--token-file) _files; return ;;\n"
         "  esac\n"
         "  case $words[2] in\n" +
         cases +
         "  esac\n"
         "  if [[ $words[CURRENT] == -* ]]; then compadd -- $flags; else compadd -- $operands; _files; fi\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _berth ]; then _berth \"$@\"; else compdef _berth berth; fi\n";
}

std::string fish(const std::vector<CommandShape>& shapes) {
  std::string script = "# berth completion for fish\ncomplete -c berth -f\n";
  for (const CommandShape& shape : shapes) {
    script += "complete -c berth -n __fish_use_subcommand -a " + shape.name + " -d " + quoted(shape.says) + "\n";
    const std::string when = "complete -c berth -n '__fish_seen_subcommand_from " + shape.name + "'";
    for (const FlagShape& flag : shape.flags) {
      script += when;
      for (const std::string& name : flag.names) {
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (flag.takes_value) script += flag.takes_file ? " -r -F" : " -x";
      if (!flag.choices.empty()) script += " -a " + quoted(joined(flag.choices, " "));
      script += " -d " + quoted(flag.says) + "\n";
    }
    if (takes_job(shape.name)) {
      script += when + " -a '(berth jobs 2>/dev/null | string match -r \"^ *[0-9]+\" | string trim)'\n";
    }
    if (takes_node(shape.name)) script += when + " -a '(berth nodes 2>/dev/null | string match -r \"^[^ ]+\")[2..]'\n";
    if (shape.name == "completion") script += when + " -a 'bash zsh fish'\n";
  }
  return script;
}

}  // namespace

Result<int> run(const CompletionOptions& options, Session& session) {
  const auto shapes = command_shapes();
  session.out << (options.shell == "bash" ? bash(shapes) : options.shell == "zsh" ? zsh(shapes) : fish(shapes));
  return kOk;
}

}  // namespace berth::cli
