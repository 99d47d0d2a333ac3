#include "sim/trace/read_trace.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <array>
#include <string>

#include "model/resources.h"

namespace berth::sim {
namespace {

constexpr const char* kNativeHeader =
    "job_id,tenant,user,submit_s,duration_s,gpus_per_worker,gpu_milli,workers,gpu_model,cpu_milli_per_worker,"
    "mem_mib_per_worker,priority_class,job_class,status\n";

Trace jobs_of(const std::string& text, const ReadOptions& options = {}) {
  Trace trace;
  const auto read = read_jobs_text("jobs", text, options, trace);
  CHECK_MESSAGE(read.has_value(), (read ? "" : read.error().message));
  return trace;
}

std::string refusal_of(const std::string& text, const ReadOptions& options = {}) {
  Trace trace;
  const auto read = read_jobs_text("jobs", text, options, trace);
  return read ? "" : read.error().message;
}

std::string only_bad_reason(const std::string& row) {
  const Trace trace = jobs_of(kNativeHeader + row + "\n");
  CHECK(trace.jobs.empty());
  REQUIRE(trace.bad_rows.total == 1);
  REQUIRE(trace.bad_rows.first.size() == 1);
  CHECK(trace.bad_rows.first[0].line == 2);
  return trace.bad_rows.first[0].reason;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(text.size() + 100, '\0');
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST_CASE("a native row keeps every column") {
  const Trace trace = jobs_of(std::string(kNativeHeader) +
                              "j1,teamA,ann,12.5,3600,4,1000,2,V100M32|V100M16,8000,65536,LS,training,Pass\n");
  REQUIRE(trace.jobs.size() == 1);
  const TraceJob& job = trace.jobs[0];
  CHECK(job.id == "j1");
  CHECK(job.tenant == "teamA");
  CHECK(job.user == "ann");
  CHECK(job.submit_ms == 12'500);
  CHECK(job.duration_ms == 3'600'000);
  CHECK(job.gpus_per_worker == 4);
  CHECK(job.workers == 2);
  CHECK(job.total_gpu_milli() == 8000);
  CHECK(job.gpu_models == std::vector<std::string>{"V100M32", "V100M16"});
  CHECK(job.cpu_milli == 8000);
  CHECK(job.mem_mib == 65536);
  CHECK(job.priority_class == "LS");
  CHECK(job.line == 2);
  CHECK(trace.defaults_taken.empty());
  CHECK(trace.sources == std::vector<std::string>{"jobs (native, 1 row)"});
}

TEST_CASE("every silent cell is a default that is counted, and nothing else is invented") {
  const Trace trace = jobs_of(std::string(kNativeHeader) + "j1,,,,,8,,,,,,,,\nj2,,,5,,0,,1,,,,,,\n");
  REQUIRE(trace.jobs.size() == 2);
  CHECK_FALSE(trace.jobs[0].submit_ms.has_value());
  CHECK_FALSE(trace.jobs[0].duration_ms.has_value());
  CHECK_FALSE(trace.jobs[0].workers.has_value());
  CHECK(trace.jobs[0].tenant.empty());
  CHECK(trace.jobs[1].gpu_milli == 0);
  const std::map<std::string, std::int64_t> expected = {{"gpu_milli of a job not stated: 1000, whole GPUs", 1},
                                                        {"CPU of a job not stated: it asks for none", 2},
                                                        {"memory of a job not stated: it asks for none", 2},
                                                        {"GPU model of a job not stated: any model will do", 1}};
  CHECK(trace.defaults_taken == expected);
}

TEST_CASE("bad cells are bad rows with a reason") {
  CHECK(only_bad_reason("j,,,-1,5,1,1000,1,,,,,,") == "submit_s: negative");
  CHECK(only_bad_reason("j,,,NaN,5,1,1000,1,,,,,,") == "submit_s: not a number of seconds");
  CHECK(only_bad_reason("j,,,1e9,5,1,1000,1,,,,,,") == "submit_s: not a number of seconds");
  CHECK(only_bad_reason("j,,,inf,5,1,1000,1,,,,,,") == "submit_s: not a number of seconds");
  CHECK(only_bad_reason("j,,,1,99999999999999,1,1000,1,,,,,,") == "duration_s: over a thousand years");
  CHECK(only_bad_reason("j,,,1,99999999999999999999,1,1000,1,,,,,,") == "duration_s: not a number of seconds");
  CHECK(only_bad_reason("j,,,1,5,,1000,1,,,,,,") == "gpus_per_worker: empty");
  CHECK(only_bad_reason("j,,,1,5,-2,1000,1,,,,,,") == "gpus_per_worker: negative");
  CHECK(only_bad_reason("j,,,1,5,0.3,1000,1,,,,,,") == "gpus_per_worker: not a whole number");
  CHECK(only_bad_reason("j,,,1,5,9223372036854775808,1000,1,,,,,,") == "gpus_per_worker: not a whole number");
  CHECK(only_bad_reason("j,,,1,5,1000001,1000,1,,,,,,") == "gpus_per_worker: over 1000000");
  CHECK(only_bad_reason("j,,,1,5,2,500,1,,,,,,") == "gpu_milli: a share of several GPUs");
  CHECK(only_bad_reason("j,,,1,5,1,1001,1,,,,,,") == "gpu_milli: over 1000");
  CHECK(only_bad_reason("j,,,1,5,1,0,1,,,,,,") == "gpu_milli: 0 of a GPU");
  CHECK(only_bad_reason("j,,,1,5,0,500,1,,,,,,") == "gpu_milli: a share of no GPU");
  CHECK(only_bad_reason("j,,,1,5,1,1000,0,,,,,,") == "workers: 0");
  CHECK(only_bad_reason("j,,,1,5,1,1000,1,A100||T4,,,,,") == "gpu_model: an empty alternative");
  CHECK(only_bad_reason(",,,1,5,1,1000,1,,,,,,") == "job_id: empty");
  CHECK(only_bad_reason("j,\xff\xfe,,1,5,1,1000,1,,,,,,").starts_with("tenant: not a sound name"));
  CHECK(only_bad_reason("j,a\x1b[31m,,1,5,1,1000,1,,,,,,").starts_with("tenant: not a sound name"));
  CHECK(only_bad_reason("j," + std::string(300, 'x') + ",,1,5,1,1000,1,,,,,,").starts_with("tenant: not a sound name"));
  CHECK(only_bad_reason("j,,,1,5,1") == "the number of cells differs from the header's");
  CHECK(only_bad_reason("j,\"open,,1,5,1,1000,1,,,,,,") == "a quote that never closes");
  CHECK(only_bad_reason("j,\"a\"b,,1,5,1,1000,1,,,,,,") == "text after a closing quote");
}

TEST_CASE("bad rows are counted by reason, the first are kept, and the sound ones between them are read") {
  std::string text = kNativeHeader;
  for (int i = 0; i < 50; ++i) {
    text += "bad" + std::to_string(i) + ",,,-1,5,1,1000,1,,,,,,\n";
    text += "good" + std::to_string(i) + ",,,1,5,1,1000,1,,,,,,\n";
  }
  text += "good7,,,1,5,1,1000,1,,,,,,\n";
  ReadOptions options;
  options.bad_rows_kept = 3;
  const Trace trace = jobs_of(text, options);
  CHECK(trace.jobs.size() == 50);
  CHECK(trace.bad_rows.total == 51);
  CHECK(trace.bad_rows.by_reason.at("submit_s: negative") == 50);
  CHECK(trace.bad_rows.by_reason.at("a job id that an earlier row has") == 1);
  REQUIRE(trace.bad_rows.first.size() == 3);
  CHECK(trace.bad_rows.first[2].line == 6);
  // Defaults count sound rows only.
  CHECK(trace.defaults_taken.at("CPU of a job not stated: it asks for none") == 50);
}

TEST_CASE("strict refuses at the first bad row and names it") {
  ReadOptions options;
  options.strict = true;
  CHECK(refusal_of(std::string(kNativeHeader) + "a,,,1,5,1,1000,1,,,,,,\nb,,,-1,5,1,1000,1,,,,,,\n", options) ==
        "jobs:3: submit_s: negative");
}

TEST_CASE("quotes, CRLF, a byte order mark and blank lines are CSV") {
  const Trace trace = jobs_of(
      "\xef\xbb\xbfjob_id,gpus_per_worker,tenant\r\n"
      "\r\n"
      "\"a,1\",8,\"say \"\"hi\"\"\"\r\n"
      "b,1,plain\r\n");
  REQUIRE(trace.jobs.size() == 2);
  CHECK(trace.jobs[0].id == "a,1");
  CHECK(trace.jobs[0].tenant == "say \"hi\"");
  CHECK(trace.jobs[1].line == 4);
}

TEST_CASE("after a quote that never closes reading goes on at the next line") {
  const Trace trace = jobs_of("job_id,gpus_per_worker\n\"a,8\nb,1\nc,2\n");
  CHECK(trace.jobs.size() == 2);
  CHECK(trace.bad_rows.total == 1);
  CHECK(trace.bad_rows.first[0].line == 2);
}

TEST_CASE("limits refuse the file or cost only the row") {
  ReadOptions options;
  options.max_rows = 1;
  CHECK(refusal_of("job_id,gpus_per_worker\na,1\nb,1\n", options) == "jobs: more than 1 rows");
  ReadOptions narrow;
  narrow.max_row_bytes = 40;
  const Trace trace = jobs_of("job_id,gpus_per_worker\n" + std::string(100, 'x') + ",1\nb,1\n", narrow);
  CHECK(trace.jobs.size() == 1);
  CHECK(trace.bad_rows.by_reason.begin()->first == "longer than 40 bytes");
}

TEST_CASE("a header that lacks what must be there, or names a column twice, refuses the file") {
  CHECK(refusal_of("") != "");
  CHECK(refusal_of("a,b\n1,2\n").find("not a format that is known here") != std::string::npos);
  CHECK(refusal_of("job_id,gpus_per_worker,job_id\n1,2,3\n") != "");
}

TEST_CASE("gzip is known by its first bytes, and damage is never a shorter trace") {
  const std::string text = "job_id,gpus_per_worker\na,1\nb,2\n";
  const std::string packed = gzip(text);
  CHECK(jobs_of(packed).jobs.size() == 2);
  CHECK(jobs_of(gzip("job_id,gpus_per_worker\n") + gzip("a,1\n")).jobs.size() == 1);
  CHECK(refusal_of(packed.substr(0, packed.size() - 9)).find("cut short") != std::string::npos);
  std::string damaged = packed;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1);
  CHECK(refusal_of(damaged).find("damaged") != std::string::npos);
  ReadOptions small;
  small.max_bytes = 1000;
  CHECK(refusal_of(gzip(std::string(1'000'000, 'x')), small).find("more than 1000 bytes") != std::string::npos);
}

TEST_CASE("an openb pod ran from scheduled_time to deletion_time") {
  const Trace trace = jobs_of(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
      "openb-pod-0000,12000,16384,1,460,V100M16|V100M32|V100M16,LS,Running,10,110,30\n"
      "openb-pod-0001,12000,16384,0,0,,BE,Pending,10,110,\n"
      "openb-pod-0002,12000,16384,2,1000,,BE,Failed,10,20,30\n");
  REQUIRE(trace.jobs.size() == 2);
  CHECK(trace.jobs[0].submit_ms == 10'000);
  CHECK(trace.jobs[0].duration_ms == 80'000);
  CHECK(trace.jobs[0].total_gpu_milli() == 460);
  CHECK(trace.jobs[0].workers == 1);
  CHECK(trace.jobs[0].gpu_models.size() == 2);
  CHECK_FALSE(trace.jobs[1].duration_ms.has_value());
  CHECK(trace.bad_rows.by_reason.at("deletion_time: before scheduled_time") == 1);
}

constexpr const char* kPhillyJob = R"({"status": "Pass", "vc": "ee9e8c", "jobid": "application_1_2",
  "attempts": [
    {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
     "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}, {"ip": "m48", "gpus": ["gpu0"]}]},
    {"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-09 06:53:12",
     "detail": [{"ip": "m412", "gpus": ["gpu0"]}]}],
  "submitted_time": "2017-10-07 01:11:39", "user": "ce2f4c"})";

TEST_CASE("a Philly job has its tenant, the GPUs of its first attempt, and the sum of its attempts as duration") {
  const Trace trace = jobs_of(std::string("[") + kPhillyJob + "]\n");
  REQUIRE(trace.jobs.size() == 1);
  const TraceJob& job = trace.jobs[0];
  CHECK(job.id == "application_1_2");
  CHECK(job.tenant == "ee9e8c");
  CHECK(job.user == "ce2f4c");
  CHECK(job.gpus_per_worker == 3);
  CHECK_FALSE(job.workers.has_value());
  CHECK(job.submit_ms == 0);
  // 74 s, and 2 days 5 h 39 min 42 s.
  CHECK(job.duration_ms == 74'000 + (2 * 86'400 + 5 * 3'600 + 39 * 60 + 42) * 1000);
  REQUIRE(trace.start.has_value());
  CHECK(to_iso8601(*trace.start) == "2017-10-07T01:11:39.000Z");
}

TEST_CASE("a Philly job without attempts, or still running, is left out by a stated rule; a broken one is a bad row") {
  const Trace trace = jobs_of(
      R"([
{"status":"Failed","vc":"v","jobid":"none","attempts":[],"submitted_time":"2017-10-07 01:11:39","user":"u"},
{"status":"Killed","vc":"v","jobid":"runs","attempts":[{"start_time":"2017-10-07 01:12:09","end_time":null,
 "detail":[{"ip":"m1","gpus":["gpu0"]}]}],"submitted_time":"2017-10-07 01:11:39","user":"u"},
{"status":"Pass","vc":"v","jobid":"late","attempts":[],"submitted_time":"2017-13-07 01:11:39","user":"u"},
{"status":"Pass","vc":"v","jobid":5,"attempts":[],"submitted_time":"2017-10-07 01:11:39","user":"u"},
{"status":"Pass","vc":nonsense},
[1,2],
)" + std::string(kPhillyJob) +
      "]");
  CHECK(trace.jobs.size() == 1);
  CHECK(trace.rows_left_out.size() == 2);
  CHECK(trace.bad_rows.total == 4);
  CHECK(trace.bad_rows.first[0].line == 5);
  CHECK(trace.bad_rows.by_reason.at("submitted_time: not a date") == 1);
  CHECK(trace.bad_rows.by_reason.at("not a JSON object") == 1);
}

TEST_CASE("a Philly log may begin with a byte order mark and end its lines as Windows does") {
  CHECK(jobs_of("\xef\xbb\xbf\r\n[" + std::string(kPhillyJob) + "]\r\n").jobs.size() == 1);
}

TEST_CASE("a Philly log that ends too early is refused, and a million brackets are one bad row") {
  CHECK(refusal_of(std::string("[") + kPhillyJob).find("cut short") != std::string::npos);
  CHECK(refusal_of(std::string("[") + kPhillyJob + "] x").find("follows") != std::string::npos);
  CHECK(refusal_of("[,]").find("missing") != std::string::npos);
  CHECK(refusal_of("{}").find("not a JSON array") != std::string::npos);
  const Trace deep = jobs_of("[" + std::string(500'000, '[') + std::string(500'000, ']') + "]");
  CHECK(deep.bad_rows.total == 1);
}

TEST_CASE("Helios shares its totals out over its nodes") {
  const Trace trace = jobs_of(
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
      "1425511,uXBbc,vcJkd,16,17,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
      "1425512,uVMrF,vchbv,4,16,3,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"
      "1425513,uVMrF,vchbv,0,16,1,FAILED,2020-06-09 18:41,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n");
  REQUIRE(trace.jobs.size() == 2);
  CHECK(trace.jobs[0].tenant == "vcJkd");
  CHECK(trace.jobs[0].workers == 2);
  CHECK(trace.jobs[0].gpus_per_worker == 8);
  CHECK(trace.jobs[0].cpu_milli == 8500);
  CHECK(trace.jobs[0].submit_ms == 0);
  CHECK(trace.jobs[1].submit_ms == 26'000);
  CHECK(trace.jobs[1].duration_ms == 249'000);
  CHECK_FALSE(trace.jobs[1].workers.has_value());
  CHECK(trace.jobs[1].gpus_per_worker == 4);
  CHECK(trace.bad_rows.by_reason.at("submit_time: not a date") == 1);
}

constexpr const char* kSacctHeader =
    "JobID|User|Account|Partition|QOS|Submit|Start|End|ReqTRES|AllocTRES|ElapsedRaw|State|NNodes|Timelimit\n";

TEST_CASE("a sacct line is a job, its steps are left out") {
  const Trace trace = jobs_of(
      std::string(kSacctHeader) +
      "17|ann|nlp|gpu|normal|2024-03-01T10:00:00|2024-03-01T10:05:00|2024-03-01T11:05:00|"
      "billing=64,cpu=64,gres/gpu=16,mem=512G,node=2|billing=64,cpu=64,gres/gpu:a100=16,gres/gpu=16,mem=512G,node=2|"
      "3600|COMPLETED|2|1-12:00:00\n"
      "17.batch||nlp|||2024-03-01T10:05:00|2024-03-01T10:05:00|2024-03-01T11:05:00||cpu=32|3600|COMPLETED|1|\n"
      "17.0||nlp|||2024-03-01T10:05:00|2024-03-01T10:05:00|2024-03-01T11:05:00||cpu=32|3600|COMPLETED|1|\n"
      "18_3|bob|cv|gpu|high|2024-03-01T10:00:30|2024-03-01T10:00:30|2024-03-01T10:01:30||"
      "cpu=8,gres/gpu:v100=4,mem=1000K,node=1|60|CANCELLED by 1000|1|UNLIMITED\n"
      "19|bob|cv|gpu|high|2024-03-01T10:00:30|Unknown|Unknown|cpu=8,gres/gpu=4||0|PENDING|1|UNLIMITED\n"
      "20|bob|cv|gpu|high|2024-03-01T10:00:30|None|2024-03-01T10:02:00|cpu=8,gres/gpu=4||0|CANCELLED by 7|1|\n"
      "21_[4-9]|bob|cv|gpu|high|2024-03-01T10:00:30|Unknown|Unknown|cpu=8,gres/gpu=4||0|PENDING|1|UNLIMITED\n"
      "22|bob|cv|gpu|high|2024-03-01T10:00:30|Unknown|Unknown|cpu=lots,gres/gpu=4||60|FAILED|1|UNLIMITED\n");
  REQUIRE(trace.jobs.size() == 2);
  const TraceJob& first = trace.jobs[0];
  CHECK(first.id == "17");
  CHECK(first.tenant == "nlp");
  CHECK(first.partition == "gpu");
  CHECK(first.workers == 2);
  CHECK(first.gpus_per_worker == 8);
  CHECK(first.gpu_models.empty());  // asked for any, although A100s were given
  CHECK(first.cpu_milli == 32'000);
  CHECK(first.mem_mib == 256 * 1024);
  CHECK(first.duration_ms == 3'600'000);
  CHECK(first.time_limit_ms == 36 * 3'600'000);
  const TraceJob& second = trace.jobs[1];
  CHECK(second.submit_ms == 30'000);
  CHECK(second.status == "CANCELLED");
  CHECK(second.gpu_models == std::vector<std::string>{"v100"});
  CHECK(second.gpus_per_worker == 4);
  CHECK(second.mem_mib == 1);
  CHECK_FALSE(second.time_limit_ms.has_value());
  CHECK(trace.rows_left_out.at("Slurm job steps") == 2);
  CHECK(trace.rows_left_out.at("Slurm jobs that had not ended") == 1);
  CHECK(trace.rows_left_out.at("Slurm jobs that never ran") == 1);
  CHECK(trace.rows_left_out.at("Slurm array elements that never started") == 1);
  CHECK_FALSE(trace.defaults_taken.contains("job was requeued: the run times of its attempts are added up"));
  CHECK(trace.bad_rows.by_reason.at("ReqTRES: not a list of resources") == 1);
}

TEST_CASE("--format overrides detection and refuses what does not fit it") {
  ReadOptions helios;
  helios.format = TraceFormat::kHelios;
  CHECK(refusal_of("job_id,gpus_per_worker\na,1\n", helios).find("helios") != std::string::npos);
  CHECK(parse_trace_format("slurm").value() == TraceFormat::kSlurm);
  CHECK_FALSE(parse_trace_format("Slurm ").has_value());
}

TEST_CASE("the attempts of a requeued Slurm job are one job: the run times add up, the last says how it ended") {
  const std::string header = "JobID|User|Account|Submit|Elapsed|State|ReqTRES|NNodes\n";
  const std::string asks = "|cpu=8,gres/gpu=8,mem=64G,node=1|1\n";
  const Trace trace = jobs_of(header + "100|ann|lab|2026-03-01T00:00:00|01:00:00|PREEMPTED" + asks +
                              "101|bob|lab|2026-03-01T00:30:00|00:00:30|NODE_FAIL" + asks +
                              "100|ann|lab|2026-03-01T00:00:00|04:00:00|COMPLETED" + asks +
                              "101|bob|lab|2026-03-01T00:30:00|08:00:00|FAILED" + asks +
                              "102|bob|lab|2026-03-01T00:30:00|00:10:00|REQUEUED" + asks +
                              "102|bob|lab|2026-03-01T00:30:00|00:20:00|RUNNING" + asks +
                              "100|eve|lab|2026-03-01T00:00:00|04:00:00|COMPLETED" + asks);
  REQUIRE(trace.jobs.size() == 2);
  CHECK(trace.jobs[0].duration_ms == 5 * 3'600'000);
  CHECK(trace.jobs[0].status == "COMPLETED");
  CHECK(trace.jobs[1].duration_ms == 8 * 3'600'000 + 30'000);
  CHECK(trace.jobs[1].status == "FAILED");
  CHECK(trace.rows_left_out.at("Slurm jobs that had not ended") == 1);
  CHECK(trace.defaults_taken.at("job was requeued: the run times of its attempts are added up") == 2);
  CHECK(trace.bad_rows.by_reason.at("a job id that an earlier row has, of another user or account") == 1);
}

TEST_CASE("Slurm's sizes go up to P and E, and a run time without Elapsed is told") {
  const Trace sizes = jobs_of(
      "JobID|User|Account|Submit|Elapsed|State|ReqTRES|NNodes\n"
      "1|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|cpu=8,gres/gpu=8,mem=1024T,node=1|1\n"
      "2|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|cpu=8,gres/gpu=8,mem=1P,node=1|1\n"
      "3|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|cpu=256,gres/gpu=256,mem=0.5E,node=256|256\n");
  REQUIRE(sizes.jobs.size() == 3);
  CHECK(sizes.jobs[0].mem_mib == std::int64_t{1} << 30U);
  CHECK(sizes.jobs[1].mem_mib == std::int64_t{1} << 30U);
  CHECK(sizes.jobs[2].mem_mib == std::int64_t{2} << 30U);
  const Trace clocks = jobs_of(
      "JobID|User|Account|Submit|Start|End|State|ReqTRES|NNodes\n"
      "1|ann|lab|2026-10-25T01:00:00|2026-10-25T02:50:00|2026-10-25T02:10:00|COMPLETED|cpu=8,gres/gpu=8,node=1|1\n"
      "2|ann|lab|2026-03-29T01:00:00|2026-03-29T01:50:00|2026-03-29T03:10:00|COMPLETED|cpu=8,gres/gpu=8,node=1|1\n");
  REQUIRE(clocks.jobs.size() == 1);
  CHECK(clocks.defaults_taken.at(
            "run time (Elapsed) not stated: End less Start, an hour off where clocks changed between") == 1);
  CHECK(clocks.bad_rows.by_reason.at(
            "End: before Start; over a change of clocks only Elapsed or --zone says how long it ran") == 1);
}

TEST_CASE("with a zone the run time over a change of clocks is right, and a time that is there twice is a bad row") {
  ReadOptions options;
  // As Berlin's clocks in 2026: an hour ahead of UTC in winter, two from 29 March to 25 October.
  options.zone = TimeZone{"Europe/Berlin", {{{0}, 3600}, {{1'774'746'000'000}, 7200}, {{1'792'890'000'000}, 3600}}};
  const Trace trace = jobs_of(
      "JobID|User|Account|Submit|Start|End|State|ReqTRES|NNodes\n"
      "1|ann|lab|2026-03-29T01:00:00|2026-03-29T01:50:00|2026-03-29T03:10:00|COMPLETED|cpu=8,gres/gpu=8,node=1|1\n"
      "2|ann|lab|2026-10-25T01:00:00|2026-10-25T02:50:00+02:00|2026-10-25T02:10:00+01:00|COMPLETED|cpu=8,gres/"
      "gpu=8,node=1|1\n"
      "3|ann|lab|2026-10-25T02:10:00|2026-10-25T03:50:00|2026-10-25T04:10:00|COMPLETED|cpu=8,gres/gpu=8,node=1|1\n",
      options);
  REQUIRE(trace.jobs.size() == 2);
  CHECK(trace.jobs[0].duration_ms == 20 * 60'000);
  CHECK(trace.jobs[1].duration_ms == 20 * 60'000);
  CHECK(to_iso8601(*trace.start) == "2026-03-29T00:00:00.000Z");
  CHECK(trace.notes.back().starts_with("dates are read by the clocks of Europe/Berlin;"));
  REQUIRE(trace.bad_rows.total == 1);
  CHECK(trace.bad_rows.first[0].reason ==
        "Submit: the clocks of Europe/Berlin show that time twice; a date with its offset, as +01:00, is exact");
}

TEST_CASE("GPUs of Slurm jobs: typed or not, MIG types, whole nodes, array elements, heterogeneous jobs") {
  const Trace trace = jobs_of(
      "JobID|User|Account|Submit|Elapsed|State|ReqTRES|AllocTRES|NNodes\n"
      "1|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1||1\n"
      "2|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|billing=8,cpu=8,gres/gpu=2,mem=1.50T,node=1||1\n"
      "3|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|cpu=8,gres/gpu=2,mem=4000K,node=1||1\n"
      "4|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|cpu=8192,gres/gpu=2048,mem=1P,node=256||256\n"
      "5|ann|lab|2026-03-01T00:00:00|4-04:05:06|TIMEOUT|"
      "cpu=8,gres/gpu:a100=1,gres/gpu:v100=1,gres/gpu=2,mem=512G,node=1||1\n"
      "6|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|billing=2,cpu=1,mem=5G,node=1|"
      "billing=112,cpu=36,gres/gpu:a100=4,gres/gpu=4,mem=180G,node=1|1\n"
      "7|ann|lab|2026-03-01T00:00:00|01:00:00|COMPLETED|cpu=8,gres/gpu:a100_1g.5gb=3,mem=5G,node=1||1\n"
      "8_3|ann|lab|2026-03-01T00:00:00|00:30:00|COMPLETED|cpu=8,gres/gpu=1,mem=5G,node=1||1\n"
      "8_[4-9%2]|ann|lab|2026-03-01T00:00:00|00:00:00|CANCELLED by 1000|cpu=8,gres/gpu=1,mem=5G,node=1||1\n"
      "9+0|ann|lab|2026-03-01T00:00:00|00:30:00|COMPLETED|cpu=8,gres/gpu=1,mem=5G,node=1||1\n"
      "9+1|ann|lab|2026-03-01T00:00:00|00:30:00|COMPLETED|cpu=8,gres/gpu=2,mem=5G,node=1||1\n"
      "10|ann|lab|2026-03-01T00:00:00|00:30:00|NODE_FAIL|cpu=8,gres/gpu=0,mem=5G,node=1||1\n");
  CHECK(trace.bad_rows.total == 0);
  std::string gpus;
  for (const TraceJob& job : trace.jobs)
    gpus += job.id + ":" + std::to_string(job.gpus_per_worker * job.workers.value_or(1)) + " ";
  CHECK(gpus == "1:2 2:2 3:2 4:2048 5:2 6:4 7:3 8_3:1 9+0:1 9+1:2 10:0 ");
  REQUIRE(trace.jobs.size() == 11);
  CHECK(trace.jobs[4].duration_ms == ((4 * 24 + 4) * 3600 + 5 * 60 + 6) * std::int64_t{1000});
}

TEST_CASE("nodes: native, openb and Philly; a silent node is a bad row unless its size is given") {
  Trace trace;
  REQUIRE(read_nodes_text("n", "node,gpu_model,gpus,cpu_milli,mem_mib,rack\na,V100,8,96000,1024,r1\nb,,,,,r2\n", {},
                          trace));
  REQUIRE(read_nodes_text("o", "sn,cpu_milli,memory_mib,gpu,model\nc,64000,262144,2,P100\n", {}, trace));
  REQUIRE(read_nodes_text("p", "machineId, number of GPUs, single GPU mem\nm1,2, 12GB\n", {}, trace));
  REQUIRE(trace.nodes.size() == 3);
  CHECK(trace.nodes[0].rack == "r1");
  CHECK(trace.nodes[2].gpu_model == "12GB");
  CHECK(fleet_gpu_milli(trace) == 12'000);
  CHECK(trace.bad_rows.by_reason.at("gpus: empty") == 1);
  CHECK(trace.defaults_taken.at("CPU of a node not stated: it does not constrain") == 1);
  Trace given;
  ReadOptions options;
  options.gpus_of_silent_node = 8;
  REQUIRE(read_nodes_text("n", "node,gpus\nb,\n", options, given));
  CHECK(given.nodes[0].gpus == 8);
}

TEST_CASE("a node that is too large, or of one model too many, is a bad row, unless GPUs are only counted") {
  std::string text = "node,gpu_model,gpus\nlarge,A,17\nfull,A,16\ncpu,X,0\n";
  for (std::size_t i = 1; i <= kMaxGpuModels; ++i) {
    text += "m" + std::to_string(i) + ",M" + std::to_string(i) + ",8\n";
  }
  text += "last,A,8\n";
  Trace trace;
  REQUIRE(read_nodes_text("n", text, {}, trace));
  CHECK(trace.nodes.size() == 2 + kMaxGpuModels);
  CHECK(trace.bad_rows.by_reason ==
        std::map<std::string, std::int64_t>{{"more than 16 GPUs in a node", 1},
                                            {"a GPU model beyond the 12 that a fleet may have", 1}});
  REQUIRE(trace.bad_rows.first.size() == 2);
  CHECK(trace.bad_rows.first[0].line == 2);
  CHECK(trace.bad_rows.first[1].line == 4 + static_cast<std::int64_t>(kMaxGpuModels));
  Trace counted;
  ReadOptions options;
  options.gpus_only = true;
  REQUIRE(read_nodes_text("n", text, options, counted));
  CHECK(counted.bad_rows.total == 0);
  CHECK(fleet_gpu_milli(counted) == 1000 * (17 + 16 + 8 * 12 + 8));
}

TEST_CASE("a second file of jobs is refused") {
  Trace trace = jobs_of("job_id,gpus_per_worker\na,1\n");
  CHECK_FALSE(read_jobs_text("more", "job_id,gpus_per_worker\nb,1\n", {}, trace).has_value());
}

TEST_CASE("an empty file says that it is empty, not that its format is unknown") {
  CHECK(refusal_of("").find("the file is empty") != std::string::npos);
  CHECK(refusal_of("\n").find("not a format that is known") != std::string::npos);
}

TEST_CASE("a file that is not there says so") {
  Trace trace;
  const auto read = read_jobs("/nonexistent/jobs.csv", {}, trace);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code == ErrorCode::kIo);
}

}  // namespace
}  // namespace berth::sim
