#include "kube/rank_script.h"

namespace berth::kube {
namespace {

// As one word of the shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

constexpr const char* kBegin =
    "stopped=\n"
    "trap 'stopped=${stopped:-1}' TERM\n"
    "left=\n";
// Once a second it looks who has ended. A signal ends no `wait` this way, and a shell that has just been forked, and
// would lose one, has become its command by then.
constexpr const char* kEnd =
    "code=0\n"
    "while [ -n \"$left\" ]; do\n"
    "  sleep 1\n"
    "  there=$left left=\n"
    "  for pid in $there; do\n"
    "    if kill -0 $pid 2>/dev/null; then left=\"$left $pid\"; continue; fi\n"
    "    wait $pid; ended=$?\n"
    "    [ $ended -eq 0 ] || { stopped=${stopped:-1}; [ $code -ne 0 ] || code=$ended; }\n"
    "  done\n"
    "  [ \"$stopped\" = 1 ] || continue\n"
    "  stopped=2\n"
    "  kill -TERM $left 2>/dev/null\n"
    "  (sleep $grace; kill -KILL 0) >/dev/null 2>&1 &\n"
    "done\n"
    "exit $code\n";

}  // namespace

std::string rank_script(const std::vector<Environment>& ranks, std::int64_t grace_s) {
  std::string script = "grace=" + std::to_string(grace_s) + "\n" + kBegin;
  for (const Environment& rank : ranks) {
    script += "(export";
    for (const auto& [name, value] : rank) script += " " + name + "=" + quoted(value);
    script += "; exec \"$@\") & left=\"$left $!\"\n";
  }
  return script + kEnd;
}

}  // namespace berth::kube
