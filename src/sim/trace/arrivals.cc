#include "sim/trace/arrivals.h"

#include <limits>
#include <optional>
#include <unordered_map>

#include "sim/trace/bytes.h"
#include "sim/trace/fields.h"
#include "sim/trace/table.h"

namespace berth::sim {
namespace {

// The number at the end of "openb-pod-0017".
std::optional<std::uint32_t> trailing_number(std::string_view id) {
  const std::size_t last = id.find_last_not_of("0123456789");
  const auto number = parse_whole(last == std::string_view::npos ? id : id.substr(last + 1));
  if (!number || *number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

Result<Arrivals> read_arrivals_text(const std::string& name, std::string_view bytes, const ReadOptions& options) {
  if (is_gzip(bytes)) {
    const auto unpacked = unpack_gzip(name, bytes, options.max_bytes);
    if (!unpacked) return unpacked.error();
    return read_arrivals_text(name, *unpacked, options);
  }
  const auto header = read_header(name, bytes, {});
  if (!header) return header.error();
  if (!header->has_all({"seed", "pod"})) return invalid(name + ": the header must hold the columns seed, pod");
  ReadOptions strict = options;
  strict.strict = true;
  Trace unused;
  RowSink sink(name, strict, unused);
  Arrivals arrivals;
  const auto read = read_table(bytes, {}, sink, [&arrivals](Row& row, RowSink&) {
    const auto seed = row.need_whole("seed", std::numeric_limits<std::int64_t>::max());
    const auto pod = row.need_whole("pod", std::numeric_limits<std::uint32_t>::max());
    if (row.first_fault()) return;
    arrivals.pods_by_seed[static_cast<std::uint64_t>(seed)].push_back(static_cast<std::uint32_t>(pod));
  });
  if (!read) return read.error();
  return arrivals;
}

Result<Arrivals> read_arrivals(const std::string& path, const ReadOptions& options) {
  const auto bytes = read_file(path, options.max_bytes);
  if (!bytes) return bytes.error();
  return read_arrivals_text(path, *bytes, options);
}

Result<std::vector<std::size_t>> arrival_order(const Trace& trace, const Arrivals& arrivals, std::uint64_t seed) {
  const auto pods = arrivals.pods_by_seed.find(seed);
  if (pods == arrivals.pods_by_seed.end()) {
    return not_found("the arrivals have no seed " + std::to_string(seed));
  }
  std::unordered_map<std::uint32_t, std::size_t> by_number;
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const auto number = trailing_number(trace.jobs[i].id);
    if (number && !by_number.emplace(*number, i).second) {
      return invalid("two jobs end in the number " + std::to_string(*number) + ", so an arrival cannot name one");
    }
  }
  std::vector<std::size_t> order;
  order.reserve(pods->second.size());
  for (const std::uint32_t pod : pods->second) {
    const auto found = by_number.find(pod);
    if (found == by_number.end()) return not_found("no job ends in the number " + std::to_string(pod));
    order.push_back(found->second);
  }
  return order;
}

}  // namespace berth::sim
