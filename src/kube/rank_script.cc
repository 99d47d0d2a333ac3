#include "kube/rank_script.h"

namespace berth::kube {
namespace {

// As one word of the shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// Each rank has a shell of its own, which passes SIGTERM on to the command and tells the first shell when it has
// failed. A shell that has just been forked may lose a signal, so the first one waits a moment before it sends any.
constexpr const char* kBegin =
    "stopped= pids=\n"
    "stop() {\n"
    "  [ -z \"$stopped\" ] || return 0\n"
    "  stopped=1\n"
    "  sleep 1\n"
    "  kill -TERM $pids 2>/dev/null\n"
    "  (sleep $grace; kill -KILL 0) >/dev/null 2>&1 &\n"
    "}\n"
    "trap stop TERM\n"
    "rank() {\n"
    "  child= got=\n"
    "  trap 'got=1; [ -z \"$child\" ] || kill -TERM $child 2>/dev/null' TERM\n"
    "  \"$@\" & child=$!\n"
    "  [ -z \"$got\" ] || kill -TERM $child 2>/dev/null\n"
    "  while :; do wait $child; code=$?; [ $code -gt 128 ] && kill -0 $child 2>/dev/null || break; done\n"
    "  [ $code -eq 0 ] || kill -TERM $$\n"
    "  exit $code\n"
    "}\n";
// 143 is that of a rank that was stopped for another one.
constexpr const char* kEnd =
    "[ -z \"$stopped\" ] || kill -TERM $pids 2>/dev/null\n"
    "code=0\n"
    "for pid in $pids; do\n"
    "  while :; do wait $pid; got=$?; [ $got -gt 128 ] && kill -0 $pid 2>/dev/null || break; done\n"
    "  [ $got -eq 0 ] || { [ $code -ne 0 ] && [ $code -ne 143 ]; } || code=$got\n"
    "done\n"
    "exit $code\n";

}  // namespace

std::string rank_script(const std::vector<Environment>& ranks, std::int64_t grace_s) {
  std::string script = "grace=" + std::to_string(grace_s) + "\n" + kBegin;
  for (const Environment& rank : ranks) {
    script += "(export";
    for (const auto& [name, value] : rank) script += " " + name + "=" + quoted(value);
    script += "; rank \"$@\") & pids=\"$pids $!\"\n";
  }
  return script + kEnd;
}

}  // namespace berth::kube
