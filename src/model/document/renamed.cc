#include "model/document/renamed.h"

#include <algorithm>
#include <array>

namespace berth::document {
namespace {

struct Renaming {
  std::string_view before;
  std::string_view now;
};
constexpr auto kRenamings = std::to_array<Renaming>({
    {"apart", "trust_domain_isolation"},
    {"holds", "backfill_reservations"},
    {"hold_after", "backfill_after"},
    {"hold_after_s", "backfill_after_s"},
    {"use_or_lose", "guarantee_decay"},
    {"mass_loss", "max_unreachable_percent"},
    {"moves_per_hour", "consolidations_per_hour"},
    // Kinds of events.
    {"start-held", "reservation-made"},
    {"start-hold-dropped", "reservation-dropped"},
    {"move-promised", "move-nominated"},
});

bool is_same(std::string_view a, std::string_view b) {
  const auto joint = [](char c) { return c == '_' ? '-' : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return joint(x) == joint(y); });
}

}  // namespace

std::optional<std::string_view> renamed(std::string_view word, std::span<const std::string_view> known) {
  for (const Renaming& one : kRenamings) {
    if (!is_same(one.before, word)) continue;
    const auto found = std::find_if(known.begin(), known.end(), [&](auto name) { return is_same(one.now, name); });
    if (found != known.end()) return *found;
  }
  return std::nullopt;
}

}  // namespace berth::document
