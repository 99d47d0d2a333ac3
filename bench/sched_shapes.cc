#include "sched_shapes.h"

#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace berth::bench {

namespace {

std::string read_gzip(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char block[1 << 16];
  for (int got = 0; (got = gzread(file, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(got));
  gzclose(file);
  return text;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// The jobs of one trace in its native form. Where a trace does not say, a GPU comes with 8 cores and 64 GiB.
std::vector<Shape> read_shapes(const std::string& name) {
  const char* folder = std::getenv("BERTH_TRACES");
  const std::string text = read_gzip(std::string(folder != nullptr ? folder : "../shared/traces") + "/" + name);
  const std::vector<std::string> lines = split(text, '\n');
  const std::vector<std::string> header = split(lines.front(), ',');
  std::vector<Shape> shapes;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = split(lines[i], ',');
    if (cells.size() != header.size()) continue;
    const auto number = [&](const char* column, std::int64_t otherwise) {
      const auto at = std::find(header.begin(), header.end(), column) - header.begin();
      const std::string& cell = cells[static_cast<std::size_t>(at)];
      return cell.empty() ? otherwise : std::atoll(cell.c_str());
    };
    Shape shape;
    const std::int64_t gpus = number("gpus_per_worker", 1);  // of all workers, where it does not say how many there are
    shape.tasks = static_cast<std::int32_t>(std::max<std::int64_t>((gpus + 7) / 8, number("workers", 1)));
    shape.request.gpus = static_cast<std::int32_t>(std::min<std::int64_t>(8, gpus));
    shape.request.gpu_milli = static_cast<std::int32_t>(shape.request.gpus == 1 ? number("gpu_milli", 1000) : 1000);
    if (shape.request.gpu_milli <= 0) shape.request.gpu_milli = 1000;
    shape.request.cpu_milli = std::min<std::int64_t>(96'000, number("cpu_milli_per_worker", shape.request.gpus * 8000));
    shape.request.memory_mib =
        std::min<std::int64_t>(700 * 1024, number("mem_mib_per_worker", shape.request.gpus * 65'536));
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace

Mix::Mix()
    : pods(read_shapes("openb/openb_default.jobs.csv.gz")), gangs(read_shapes("philly/philly_to_oct2017.jobs.csv.gz")) {
  if (!pods.empty() && !gangs.empty()) return;
  traced = false;
  std::fprintf(stderr, "the public traces are not there (BERTH_TRACES); a built-in mix stands in for them\n");
  for (const std::int32_t milli : {100, 200, 250, 500, 800, 1000})
    pods.push_back({1, {6000, 24'576, 1, milli, {}, {}}});
  for (const std::int32_t gpus : {1, 1, 1, 2, 4, 8})
    gangs.push_back({1, {gpus * 8000, gpus * 65'536, gpus, 1000, {}, {}}});
  gangs.push_back({4, {64'000, 524'288, 8, 1000, {}, {}}});
}

}  // namespace berth::bench
