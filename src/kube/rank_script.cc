#include "kube/rank_script.h"

namespace berth::kube {
namespace {

// As one word of the shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// A trapped signal is the default one again in the command, and reaches it through the process group.
constexpr const char* kBegin =
    "stop() { trap : TERM; kill -TERM 0; }\n"
    "trap stop TERM\n"
    "pids=\n";
constexpr const char* kRank =
    "; trap : TERM; \"$@\"; code=$?; [ $code -eq 0 ] || kill -TERM $$; exit $code) & pids=\"$pids $!\"\n";
// 143 is that of a rank that was stopped for another one.
constexpr const char* kEnd =
    "code=0\n"
    "for pid in $pids; do\n"
    "  while :; do wait $pid; got=$?; [ $got -gt 128 ] && kill -0 $pid 2>/dev/null || break; done\n"
    "  [ $got -eq 0 ] || { [ $code -ne 0 ] && [ $code -ne 143 ]; } || code=$got\n"
    "done\n"
    "exit $code\n";

}  // namespace

std::string rank_script(const std::vector<Environment>& ranks) {
  std::string script = kBegin;
  for (const Environment& rank : ranks) {
    script += "(export";
    for (const auto& [name, value] : rank) script += " " + name + "=" + quoted(value);
    script += kRank;
  }
  return script + kEnd;
}

}  // namespace berth::kube
