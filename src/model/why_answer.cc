#include "model/why_answer.h"

#include <algorithm>
#include <string_view>

namespace berth {

namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kLabelColumns = 10;  // the indentation and the longest label with two spaces
constexpr std::size_t kRemediesInShort = 2;

// Code points: a name in another script is not broken too early.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Appends the text after `first`, broken at spaces; further lines begin with `indent` spaces.
void wrap(std::string& out, std::string first, std::string_view text, std::size_t indent) {
  std::string line = std::move(first);
  bool fresh = true;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(' '), text.size());
    if (text.substr(end).starts_with(" %")) end = std::min(text.find(' ', end + 1), text.size());  // "25 %"
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!fresh && columns(line) + 1 + columns(word) > kColumns) {
      out += line + "\n";
      line.assign(indent, ' ');
      fresh = true;
    }
    line += (fresh ? "" : " ") + std::string(word);
    fresh = false;
  }
  out += line + "\n";
}

void labelled(std::string& out, std::string_view label, const std::string& text) {
  if (text.empty()) return;
  std::string first = "  " + std::string(label);
  first.resize(kLabelColumns, ' ');
  wrap(out, std::move(first), text, kLabelColumns);
}

// "It is number 30 in line (20 can start before it)."
std::string place_in_line(const WhyAnswer::Line& line) {
  if (line.number == 1) return "It is first in line.";
  const std::int64_t ahead = line.number - 1;
  std::string text = "It is number " + std::to_string(line.number) + (line.exact ? " in line" : " or later in line");
  if (line.can_start_before == 0)
    text += ahead == 1 ? " (the one ahead cannot start now)" : " (none of those ahead can start now)";
  else if (line.can_start_before < ahead)
    text += " (" + std::to_string(line.can_start_before) + " can start before it)";
  return text + ".";
}

std::vector<const WhyAnswer::Remedy*> best_of(const std::vector<WhyAnswer::Remedy>& remedies, bool all) {
  std::vector<const WhyAnswer::Remedy*> best;
  for (const WhyAnswer::Remedy& remedy : remedies) {
    if (all || !remedy.taken) best.push_back(&remedy);
  }
  if (all) return best;
  std::stable_sort(best.begin(), best.end(), [](const auto* a, const auto* b) { return a->by < b->by; });
  best.resize(std::min(best.size(), kRemediesInShort));
  return best;
}

}  // namespace

std::string text_of(const WhyAnswer& answer, bool all) {
  std::string text;
  wrap(text, "", answer.headline + (answer.line ? " " + place_in_line(*answer.line) : ""), 2);
  labelled(text, "Quota", answer.quota);
  if (answer.line) labelled(text, "Line", answer.line->text);
  if (answer.start) labelled(text, "Start", answer.start->text);
  labelled(text, "Preempt", answer.preemption);
  std::string_view label = "Now if";
  for (const WhyAnswer::Remedy* remedy : best_of(answer.remedies, all)) {
    labelled(text, label, remedy->text);
    label = "";
  }
  if (!all) return text;
  if (answer.code != ReasonCode::kNone) labelled(text, "Reason", std::string(name_of(answer.code)));
  label = "Details";
  for (const std::string& fact : answer.details) {
    labelled(text, label, fact);
    label = "";
  }
  return text;
}

}  // namespace berth
