#include "sim/trace/read_trace.h"

#include <array>
#include <utility>

#include "sim/trace/bytes.h"
#include "sim/trace/formats.h"
#include "sim/trace/table.h"

namespace berth::sim {
namespace {

using ReadText = Result<void> (*)(std::string_view, RowSink&);

// How the format of a file is detected: by the columns of its header, or by its first character.
struct Reader {
  TraceFormat format;
  std::vector<std::string_view> columns;  // empty: a JSON array
  char delimiter;
  ReadText read;
};

const std::vector<Reader>& job_readers() {
  static const std::vector<Reader> kReaders = {
      {TraceFormat::kNative, {"job_id", "gpus_per_worker"}, ',', read_native_jobs},
      {TraceFormat::kOpenb, {"name", "num_gpu", "cpu_milli"}, ',', read_openb_pods},
      {TraceFormat::kHelios, {"job_id", "gpu_num", "submit_time", "duration"}, ',', read_helios_jobs},
      {TraceFormat::kSlurm, {"JobID", "Submit", "ReqTRES"}, '|', read_slurm_jobs},
      {TraceFormat::kSlurm, {"JobID", "Submit", "AllocTRES"}, '|', read_slurm_jobs},
      {TraceFormat::kPhilly, {}, ',', read_philly_jobs},
  };
  return kReaders;
}

const std::vector<Reader>& node_readers() {
  static const std::vector<Reader> kReaders = {
      {TraceFormat::kNative, {"node", "gpus"}, ',', read_native_nodes},
      {TraceFormat::kOpenb, {"sn", "gpu", "cpu_milli"}, ',', read_openb_nodes},
      {TraceFormat::kPhilly, {"machineId", "number of GPUs"}, ',', read_philly_machines},
  };
  return kReaders;
}

bool starts_json(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '[' || text[first] == '{');
}

bool fits(const Reader& reader, const std::string& name, std::string_view text) {
  if (reader.columns.empty() || starts_json(text)) return reader.columns.empty() && starts_json(text);
  const auto header = read_header(name, text, {.delimiter = reader.delimiter, .quotes = reader.delimiter == ','});
  return header && header->has_all(reader.columns);
}

std::string columns_of(const Reader& reader) {
  std::string list = std::string(name_of(reader.format)) + " (";
  for (const std::string_view column : reader.columns) list.append(list.back() == '(' ? "" : ", ").append(column);
  return list.append(reader.columns.empty() ? "a JSON array)" : ")");
}

Result<const Reader*> choose(const std::vector<Reader>& readers, const std::string& name, std::string_view text,
                             std::optional<TraceFormat> wanted) {
  std::string known;
  for (const Reader& reader : readers) {
    if (wanted && reader.format != *wanted) continue;
    if (fits(reader, name, text)) return &reader;
    known.append(known.empty() ? "" : "; ").append(columns_of(reader));
  }
  if (known.empty()) return invalid(name + ": the format " + name_of(*wanted) + " has no such file");
  return invalid(name + ": not a format that is known here; the header must hold the columns of one of: " + known);
}

Result<void> read_as(const std::vector<Reader>& readers, const std::string& name, std::string_view bytes,
                     const ReadOptions& options, Trace& trace) {
  if (is_gzip(bytes)) {
    const auto unpacked = unpack_gzip(name, bytes, options.max_bytes);
    if (!unpacked) return unpacked.error();
    return read_as(readers, name, *unpacked, options, trace);
  }
  if (bytes.empty()) return invalid(name + ": the file is empty; not even a header line is there");
  const auto reader = choose(readers, name, bytes, options.format);
  if (!reader) return reader.error();
  RowSink sink(name, options, trace);
  const auto read = (*reader)->read(bytes, sink);
  if (!read) return read.error();
  trace.sources.push_back(name + " (" + name_of((*reader)->format) + ", " + std::to_string(sink.rows()) +
                          (sink.rows() == 1 ? " row)" : " rows)"));
  return {};
}

}  // namespace

const char* name_of(TraceFormat format) {
  switch (format) {
    case TraceFormat::kNative:
      return "native";
    case TraceFormat::kOpenb:
      return "openb";
    case TraceFormat::kPhilly:
      return "philly";
    case TraceFormat::kHelios:
      return "helios";
    case TraceFormat::kSlurm:
      return "slurm";
  }
  return "?";
}

Result<TraceFormat> parse_trace_format(std::string_view text) {
  constexpr std::array kFormats = {TraceFormat::kNative, TraceFormat::kOpenb, TraceFormat::kPhilly,
                                   TraceFormat::kHelios, TraceFormat::kSlurm};
  for (const TraceFormat format : kFormats) {
    if (text == name_of(format)) return format;
  }
  return invalid("no such trace format; there are native, openb, philly, helios, slurm");
}

Result<void> read_jobs_text(const std::string& name, std::string_view bytes, const ReadOptions& options, Trace& trace) {
  if (!trace.jobs.empty()) return invalid(name + ": a trace has its jobs from one file");
  return read_as(job_readers(), name, bytes, options, trace);
}

Result<void> read_nodes_text(const std::string& name, std::string_view bytes, const ReadOptions& options,
                             Trace& trace) {
  return read_as(node_readers(), name, bytes, options, trace);
}

Result<void> read_jobs(const std::string& path, const ReadOptions& options, Trace& trace) {
  const auto bytes = read_file(path, options.max_bytes);
  if (!bytes) return bytes.error();
  return read_jobs_text(path, *bytes, options, trace);
}

Result<void> read_nodes(const std::string& path, const ReadOptions& options, Trace& trace) {
  const auto bytes = read_file(path, options.max_bytes);
  if (!bytes) return bytes.error();
  return read_nodes_text(path, *bytes, options, trace);
}

}  // namespace berth::sim
