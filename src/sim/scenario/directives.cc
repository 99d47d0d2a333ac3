#include "sim/scenario/directives.h"

#include <algorithm>
#include <array>

#include "model/document/renamed.h"
#include "model/nearest.h"
#include "sim/scenario/words.h"

namespace berth::sim {

namespace {

constexpr std::size_t kAny = 1000;
constexpr std::size_t kLongestLine = 4096;

constexpr auto kDirectives = std::to_array<Directive>({
    {.verb = "cluster"},
    {.verb = "nodes",
     .names = "[NODES...]",
     .most = kAny,
     .flags = "containers",
     .options = "gpus cpus memory countables pool taint label at numa nvlink images"},
    {.verb = "submit",
     .names = "NAME",
     .fewest = 1,
     .most = 1,
     .flags = "held exclusive spread service ignores-signal cannot-start",
     .options =
         "queue gpus mig cpus memory countables tasks min-tasks model image pool class priority user key time-limit "
         "estimate grace "
         "retries earliest deadline after afterok afterany selects rules tolerates within prefers numa labels "
         "ports near "
         "away likes dislikes group-within also also-pool also-selects also-rules also-tolerates "
         "max-unavailable elements latency-objective "
         "at-once runs exit fails saves leaves risks"},
    {.verb = "cancel", .names = "NAME", .fewest = 1, .most = 1},
    {.verb = "hold", .names = "NAME", .fewest = 1, .most = 1},
    {.verb = "release", .names = "NAME", .fewest = 1, .most = 1},
    {.verb = "prioritize", .names = "NAME PRIORITY", .fewest = 2, .most = 2},
    {.verb = "move", .names = "NAME", .fewest = 1, .most = 1, .flags = "lose-work", .options = "off"},
    {.verb = "exit", .names = "NAME [CODE]", .fewest = 1, .most = 2},
    {.verb = "cordon", .names = "NODES", .fewest = 1, .most = 1},
    {.verb = "uncordon", .names = "NODES", .fewest = 1, .most = 1},
    {.verb = "drain",
     .names = "NODES",
     .fewest = 1,
     .most = 1,
     .flags = "lose-work when-idle",
     .options = "gone-in deadline"},
    {.verb = "fence", .names = "NODES", .fewest = 1, .most = 1},
    {.verb = "lose", .names = "NODES", .fewest = 1, .most = 1},
    {.verb = "return", .names = "NODES", .fewest = 1, .most = 1},
    {.verb = "kill-node", .names = "NODES", .fewest = 1, .most = 1},
    {.verb = "remove-node", .names = "NODES", .fewest = 1, .most = 1},
    {.verb = "boot", .names = "NODES", .fewest = 1, .most = 1},
    {.verb = "gpu", .names = "NODE GPU fails|heals|fenced|lifted", .fewest = 3, .most = 3},
    {.verb = "foreign", .names = "NODE", .fewest = 1, .most = 1, .options = "gpus cpus memory countables"},
    {.verb = "image", .names = "NODES pulls|drops IMAGES", .fewest = 3, .most = 3},
    {.verb = "maintenance add", .names = "[NODES...]", .most = kAny, .options = "from for name pool label"},
    {.verb = "maintenance cancel", .names = "NAME", .fewest = 1, .most = 1},
    {.verb = "maintenance list"},
    {.verb = "run", .names = "TIME", .fewest = 1, .most = 1},
    {.verb = "restart", .flags = "from-checkpoint"},
    {.verb = "why", .names = "NAME", .fewest = 1, .most = 1, .flags = "short details", .options = "viewer"},
    {.verb = "capacity", .options = "idle-for"},
    {.verb = "advise"},
    {.verb = "share", .names = "QUEUE", .fewest = 1, .most = 1},
    {.verb = "prices"},
    {.verb = "invoice", .names = "[QUEUE]", .most = 1},
    {.verb = "budgets"},
    {.verb = "jobs"},
    {.verb = "queues"},
});

constexpr auto kClusterLines = std::to_array<Directive>({
    {.verb = "model", .names = "MODEL", .fewest = 1, .most = 1, .options = "weight watts idle-watts mig"},
    {.verb = "queue",
     .names = "PATH",
     .fewest = 1,
     .most = 1,
     .options = "guaranteed max lending moved-from returns weight policy domain thresholds promote-after jobs-per-user "
                "gpus-per-user submitted-per-user guarantee-decay min-runtime cooldown grace evictions-per-hour "
                "budget grant"},
    {.verb = "pool",
     .names = "POOL",
     .fewest = 1,
     .most = 1,
     .flags = "burst",
     .options = "queues classes trust-domain-isolation gpu-levels"},
    {.verb = "rule",
     .names = "NAME",
     .fewest = 1,
     .most = 1,
     .options = "queue mode classes forbid use host-paths max-gpus images"},
    {.verb = "topology", .names = "LEVELS...", .fewest = 1, .most = kAny},
    {.verb = "priority", .names = "CLASS", .fewest = 1, .most = 1, .flags = "default", .options = "value"},
    {.verb = "scheduling",
     .options = "min-runtime grace reclaim preempt half-life backfill-reservations backfill-after deadline-slack "
                "resize-interval cooldown "
                "evictions-per-hour consolidations-per-hour victims-per-cycle preempt-max-loss flap-losses flap-window "
                "suspect-users suspect-window "
                "max-unreachable-percent score "
                "fragmentation-alert energy"},
});

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool is_among(std::string_view word, std::string_view words) {
  const auto all = words_in(words);
  return std::find(all.begin(), all.end(), word) != all.end();
}

std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Error no_such(const std::string& first, const std::string& two, std::span<const Directive> known,
              std::string_view kind) {
  std::vector<std::string_view> verbs;
  std::vector<std::string> all;
  std::vector<std::string> begin_so;
  for (const Directive& one : known) {
    verbs.push_back(one.verb);
    all.emplace_back(one.verb);
    if (one.verb.starts_with(first + " ")) begin_so.emplace_back(one.verb);
  }
  auto meant = nearest(two, verbs);
  if (!meant) meant = nearest(first, verbs);
  return invalid("no " + std::string(kind) + " " + shown(first) +
                 (meant ? "; did you mean '" + std::string(*meant) + "'?"
                        : "; known are " + list_of(begin_so.empty() ? all : begin_so)));
}

std::string form_of(const Directive& directive) {
  return std::string(directive.verb) + (directive.names.empty() ? "" : " ") + std::string(directive.names);
}

// "did you mean 'priority='?", or all that there is.
std::string instead_of(std::string_view word, const Directive& directive) {
  if (const auto now = document::renamed(word, words_in(directive.options)))
    return "; it is now '" + std::string(*now) + "='";
  std::string meant;
  if (const auto near = nearest(word, words_in(directive.flags))) meant = *near;
  if (const auto near = nearest(word, words_in(directive.options)); near && (meant.empty() || *near == word))
    meant = std::string(*near) + "=";
  if (!meant.empty()) return "; did you mean '" + meant + "'?";
  std::vector<std::string> all;
  for (const std::string_view flag : words_in(directive.flags)) all.emplace_back(flag);
  for (const std::string_view option : words_in(directive.options)) all.push_back(std::string(option) + "=");
  return "; write '" + form_of(directive) + "'" + (all.empty() ? "" : ", and after it any of " + list_of(all));
}

Error wrong(const Directive& directive, const std::string& what) {
  return invalid(std::string(directive.verb) + ": " + what);
}

Result<void> take_option(std::string_view word, const Directive& directive, Line& line) {
  const std::size_t equals = word.find('=');
  const std::string key(word.substr(0, equals));
  if (key.empty()) return wrong(directive, "nothing stands before the '=' of " + shown(word));
  if (!is_among(key, directive.options))
    return wrong(directive, "there is no option " + shown(key + "=") + instead_of(key, directive));
  if (line.option(key) != nullptr) return wrong(directive, "'" + key + "=' is given twice");
  if (equals + 1 == word.size()) return wrong(directive, "'" + key + "=' has no value");
  line.options.emplace_back(key, word.substr(equals + 1));
  return {};
}

// The names come first; then a word may be a flag.
Result<void> take_word(std::string_view word, const Directive& directive, Line& line) {
  if (word.find('=') != std::string_view::npos) return take_option(word, directive, line);
  if (line.names.size() >= directive.fewest && is_among(word, directive.flags)) {
    if (line.has(word)) return wrong(directive, shown(word) + " is given twice");
    line.flags.emplace_back(word);
    return {};
  }
  if (line.names.size() == directive.most)
    return wrong(directive, "nothing reads " + shown(word) + instead_of(word, directive));
  line.names.emplace_back(word);
  return {};
}

}  // namespace

Result<void> check_text(std::string_view text) {
  if (text.size() > kLongestLine)
    return invalid("the line has " + std::to_string(text.size()) + " bytes; the most is " +
                   std::to_string(kLongestLine));
  const auto is_strange = [](char c) { return c < ' ' || c > '~'; };
  if (const auto at = std::find_if(text.begin(), text.end(), is_strange); at != text.end())
    return invalid("byte " + std::to_string(at - text.begin() + 1) + " of the line is " +
                   (*at == '\r'   ? "a carriage return; a line ends with a line feed alone"
                    : *at == '\t' ? "a tab; give spaces"
                                  : "no printable ASCII character"));
  if (text.find_first_of("\"'`") != std::string_view::npos)
    return invalid("there is a quotation mark in the line; nothing is quoted, and no name or value has a space in it");
  return {};
}

std::span<const Directive> directives() { return kDirectives; }
std::span<const Directive> cluster_lines() { return kClusterLines; }

const std::string* Line::option(std::string_view key) const {
  for (const auto& [name, value] : options) {
    if (name == key) return &value;
  }
  return nullptr;
}

bool Line::has(std::string_view flag) const { return std::find(flags.begin(), flags.end(), flag) != flags.end(); }

Result<Line> read_line(std::string_view text, std::span<const Directive> known, std::string_view kind) {
  const auto words = words_in(text);
  if (words.empty()) return invalid("the line is empty");
  const std::string first(words.front());
  const std::string two = words.size() < 2 ? first : first + " " + std::string(words[1]);
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const Directive& one) { return one.verb == first || one.verb == two; });
  if (found == known.end()) return no_such(first, two, known, kind);
  Line line;
  line.verb = found->verb;
  for (std::size_t i = found->verb == first ? 1 : 2; i < words.size(); ++i) {
    if (auto ok = take_word(words[i], *found, line); !ok) return ok.error();
  }
  if (line.names.size() < found->fewest) return wrong(*found, "write '" + form_of(*found) + "'");
  return line;
}

}  // namespace berth::sim
