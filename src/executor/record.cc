#include "executor/record.h"

#include <boost/json.hpp>
#include <exception>

#include "executor/state_file.h"

namespace berth::executor {

namespace {

namespace json = boost::json;

constexpr std::size_t kRecordLimit = 64 << 20;

json::array encode_environment(const Environment& environment) {
  json::array array;
  for (const auto& [name, value] : environment) array.push_back(json::array{json::string(name), json::string(value)});
  return array;
}

Environment decode_environment(const json::value& value) {
  Environment environment;
  for (const auto& entry : value.as_array()) {
    const auto& pair = entry.as_array();
    environment.emplace_back(pair.at(0).as_string(), pair.at(1).as_string());
  }
  return environment;
}

json::array encode_strings(const std::vector<std::string>& strings) {
  json::array array;
  for (const auto& text : strings) array.push_back(json::string(text));
  return array;
}

std::vector<std::string> decode_strings(const json::value& value) {
  std::vector<std::string> strings;
  for (const auto& text : value.as_array()) strings.emplace_back(text.as_string());
  return strings;
}

template <class Number>
Number number_at(const json::object& object, std::string_view name) {
  return object.at(name).to_number<Number>();
}

std::string string_at(const json::object& object, std::string_view name) {
  return std::string(object.at(name).as_string());
}

json::object encode_user(const TaskUser& user) {
  json::object object{
      {"uid", user.uid}, {"gid", user.gid}, {"name", user.name}, {"home", user.home}, {"shell", user.shell}};
  if (user.only_runs_tasks) object["only_runs_tasks"] = true;
  return object;
}

TaskUser decode_user(const json::object& object) {
  TaskUser user{number_at<uid_t>(object, "uid"), number_at<gid_t>(object, "gid"), {}, {}, {}};
  if (!object.contains("name")) return user;  // of an earlier release
  user.name = string_at(object, "name");
  user.home = string_at(object, "home");
  user.shell = string_at(object, "shell");
  user.only_runs_tasks = object.contains("only_runs_tasks");
  return user;
}

// Written where there is something: an older supervisor reads the rest.
void encode_view(const TaskLaunch& launch, json::object& object) {
  json::array mounts;
  for (const TaskMount& one : launch.mounts)
    mounts.push_back(json::object{{"source", one.source},
                                  {"beneath", one.beneath},
                                  {"target", one.target},
                                  {"read_only", one.read_only},
                                  {"name", one.name}});
  json::array secrets;
  for (const TaskSecrets& one : launch.secrets)
    secrets.push_back(
        json::object{{"target", one.target}, {"files", encode_environment(one.files)}, {"name", one.name}});
  if (!mounts.empty()) object["mounts"] = std::move(mounts);
  if (!secrets.empty()) object["secrets"] = std::move(secrets);
  if (launch.shm_mib > 0) object["shm_mib"] = launch.shm_mib;
  if (!launch.checkpoint_mount.empty()) object["checkpoint_mount"] = launch.checkpoint_mount;
}

// An earlier release wrote none.
std::string name_of_mount(const json::object& one) { return one.contains("name") ? string_at(one, "name") : ""; }

void decode_view(const json::object& object, TaskLaunch& launch) {
  if (const auto* mounts = object.if_contains("mounts")) {
    for (const auto& value : mounts->as_array()) {
      const json::object& one = value.as_object();
      launch.mounts.push_back({string_at(one, "source"), string_at(one, "beneath"), string_at(one, "target"),
                               one.at("read_only").as_bool(), name_of_mount(one)});
    }
  }
  if (const auto* secrets = object.if_contains("secrets")) {
    for (const auto& value : secrets->as_array()) {
      const json::object& one = value.as_object();
      launch.secrets.push_back({string_at(one, "target"), decode_environment(one.at("files")), name_of_mount(one)});
    }
  }
  if (object.contains("shm_mib")) launch.shm_mib = number_at<std::int64_t>(object, "shm_mib");
  if (object.contains("checkpoint_mount")) launch.checkpoint_mount = string_at(object, "checkpoint_mount");
}

json::object encode_launch(const TaskLaunch& launch) {
  json::array rank_env;
  for (const auto& environment : launch.rank_env) rank_env.push_back(encode_environment(environment));
  json::object object{
      {"key", to_string(launch.key)},
      {"argv", encode_strings(launch.argv)},
      {"env", encode_environment(launch.env)},
      {"rank_env", std::move(rank_env)},
      {"workdir", launch.workdir},
      {"memory_limit_mib", launch.memory_limit_mib},
      {"cpu_milli", launch.cpu_milli},
      {"pids_limit", launch.pids_limit},
      {"signal_workers", launch.signal_workers},
      {"time_limit_ms", launch.time_limit_ms},
      {"grace_ms", launch.grace_ms},
      {"stop_signal", launch.stop_signal},
      {"log_dir", launch.log_dir},
      {"max_log_bytes", launch.max_log_bytes},
      {"log_segments", launch.log_segments},
      {"checkpoint_dir", launch.checkpoint_dir},
      {"lease_ms", launch.lease_ms},
  };
  if (launch.terminal) object["terminal"] = json::object{{"detached_ms", launch.detached_ms}};
  if (launch.user) object["user"] = encode_user(*launch.user);
  if (!launch.gpus.empty()) object["gpus"] = encode_strings(launch.gpus);
  encode_view(launch, object);
  return object;
}

TaskLaunch decode_launch(const json::object& object) {
  TaskLaunch launch;
  const auto key = parse_task_key(string_at(object, "key"));
  if (!key) throw std::invalid_argument("bad key");
  launch.key = *key;
  launch.argv = decode_strings(object.at("argv"));
  launch.env = decode_environment(object.at("env"));
  for (const auto& environment : object.at("rank_env").as_array()) {
    launch.rank_env.push_back(decode_environment(environment));
  }
  launch.workdir = string_at(object, "workdir");
  launch.memory_limit_mib = number_at<std::int64_t>(object, "memory_limit_mib");
  launch.cpu_milli = number_at<std::int64_t>(object, "cpu_milli");
  if (object.contains("signal_workers")) launch.signal_workers = object.at("signal_workers").as_bool();
  if (object.contains("pids_limit")) launch.pids_limit = number_at<std::int64_t>(object, "pids_limit");
  launch.time_limit_ms = number_at<std::int64_t>(object, "time_limit_ms");
  launch.grace_ms = number_at<std::int64_t>(object, "grace_ms");
  launch.stop_signal = number_at<int>(object, "stop_signal");
  launch.log_dir = string_at(object, "log_dir");
  launch.max_log_bytes = number_at<std::int64_t>(object, "max_log_bytes");
  launch.log_segments = number_at<int>(object, "log_segments");
  launch.checkpoint_dir = string_at(object, "checkpoint_dir");
  launch.lease_ms = number_at<std::int64_t>(object, "lease_ms");
  decode_view(object, launch);
  if (const auto* user = object.if_contains("user")) {
    launch.user = decode_user(user->as_object());
  }
  if (const auto* terminal = object.if_contains("terminal")) {
    launch.terminal = true;
    launch.detached_ms = number_at<std::int64_t>(terminal->as_object(), "detached_ms");
  }
  if (const auto* gpus = object.if_contains("gpus")) launch.gpus = decode_strings(*gpus);
  return launch;
}

ExitReason decode_reason(std::string_view name) {
  using enum ExitReason;
  for (const auto reason :
       {kExited, kSignalled, kTimeLimit, kOutOfMemory, kKilled, kStartFailed, kSupervisorLost, kLeaseExpired}) {
    if (name == name_of(reason)) return reason;
  }
  throw std::invalid_argument("unknown reason " + std::string(name));
}

json::value parse(std::string_view bytes) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;  // arguments and variables are bytes
  return json::parse(json::string_view(bytes.data(), bytes.size()), {}, options);
}

// Reads, parses and decodes; the library's exceptions end here.
template <class Decode>
auto read_record(const std::string& path, Decode decode) -> Result<decltype(decode(json::object()))> {
  const auto bytes = read_state_file(path, kRecordLimit);
  if (!bytes) return bytes.error();
  try {
    return decode(parse(*bytes).as_object());
  } catch (const std::exception& problem) {
    return Error{ErrorCode::kCorrupt, path + ": " + problem.what()};
  }
}

}  // namespace

std::string encode(const LaunchRecord& record) {
  const auto& places = record.places;
  return json::serialize(json::object{
      {"launch", encode_launch(record.launch)},
      {"token", record.token},
      {"cgroups",
       json::object{
           {"memory", places.memory}, {"cpu", places.cpu}, {"pids", places.pids}, {"tracking", places.tracking}}},
  });
}

std::string encode(const SupervisorRecord& record) {
  return json::serialize(json::object{{"pid", record.pid},
                                      {"boot", record.boot},
                                      {"time", record.time.ms},
                                      {"cgroups", encode_strings(record.cgroups.directories)}});
}

std::string encode(const StartedRecord& record) {
  json::array ranks;
  for (const auto& rank : record.ranks) {
    ranks.push_back(json::object{{"pid", rank.pid}, {"start_ticks", rank.start_ticks}});
  }
  return json::serialize(json::object{{"time", record.time.ms}, {"ranks", std::move(ranks)}});
}

std::string encode(const CheckpointRecord& record) {
  return json::serialize(json::object{
      {"count", record.count}, {"attempt", record.attempt}, {"step", record.step}, {"time", record.time.ms}});
}

std::string encode(const Exited& exited) {
  return json::serialize(json::object{{"time", exited.time.ms},
                                      {"reason", name_of(exited.reason)},
                                      {"code", exited.code},
                                      {"signal", exited.signal},
                                      {"rank", exited.rank},
                                      {"ran_ms", exited.ran_ms},
                                      {"cpu_ms", exited.cpu_ms},
                                      {"peak_rss_mib", exited.peak_rss_mib},
                                      {"bad_acks", exited.bad_acks},
                                      {"message", exited.message}});
}

std::string encode(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kSignal:
      return json::serialize(json::object{{"signal", command.signo}});
    case Command::Kind::kStop:
      return json::serialize(json::object{{"stop_within_ms", command.grace_ms}});
  }
  return {};
}

Result<LaunchRecord> read_launch(const std::string& task_dir) {
  return read_record(task_dir + "/launch.json", [](const json::object& object) {
    const auto& places = object.at("cgroups").as_object();
    const std::string pids = places.contains("pids") ? string_at(places, "pids") : "";  // absent in older records
    return LaunchRecord{
        decode_launch(object.at("launch").as_object()), string_at(object, "token"),
        CgroupPlaces{string_at(places, "memory"), string_at(places, "cpu"), pids, string_at(places, "tracking")}};
  });
}

Result<SupervisorRecord> read_supervisor(const std::string& task_dir) {
  return read_record(task_dir + "/supervisor.json", [](const json::object& object) {
    return SupervisorRecord{number_at<pid_t>(object, "pid"), string_at(object, "boot"),
                            Timestamp{number_at<std::int64_t>(object, "time")},
                            TaskCgroups{decode_strings(object.at("cgroups"))}};
  });
}

Result<StartedRecord> read_started(const std::string& task_dir) {
  return read_record(task_dir + "/started.json", [](const json::object& object) {
    StartedRecord record{Timestamp{number_at<std::int64_t>(object, "time")}, {}};
    for (const auto& rank : object.at("ranks").as_array()) {
      ProcessSeen seen;
      seen.pid = number_at<pid_t>(rank.as_object(), "pid");
      seen.start_ticks = number_at<std::uint64_t>(rank.as_object(), "start_ticks");
      record.ranks.push_back(seen);
    }
    return record;
  });
}

Result<CheckpointRecord> read_checkpoint(const std::string& task_dir) {
  return read_record(task_dir + "/checkpoint.json", [](const json::object& object) {
    return CheckpointRecord{number_at<std::uint64_t>(object, "count"), number_at<std::uint32_t>(object, "attempt"),
                            number_at<std::int64_t>(object, "step"),
                            Timestamp{number_at<std::int64_t>(object, "time")}};
  });
}

Result<Exited> read_exit(const std::string& task_dir, const TaskKey& key) {
  return read_record(task_dir + "/exit.json", [&key](const json::object& object) {
    Exited exited;
    exited.key = key;
    exited.time = Timestamp{number_at<std::int64_t>(object, "time")};
    exited.reason = decode_reason(string_at(object, "reason"));
    exited.code = number_at<int>(object, "code");
    exited.signal = number_at<int>(object, "signal");
    exited.rank = number_at<int>(object, "rank");
    exited.ran_ms = number_at<std::int64_t>(object, "ran_ms");
    exited.cpu_ms = number_at<std::int64_t>(object, "cpu_ms");
    exited.peak_rss_mib = number_at<std::int64_t>(object, "peak_rss_mib");
    exited.bad_acks = number_at<std::uint64_t>(object, "bad_acks");
    exited.message = string_at(object, "message");
    return exited;
  });
}

Result<Command> read_command(const std::string& path) {
  return read_record(path, [](const json::object& object) {
    Command command;
    if (object.contains("signal")) {
      command.signo = number_at<int>(object, "signal");
    } else {
      command.kind = Command::Kind::kStop;
      command.grace_ms = number_at<std::int64_t>(object, "stop_within_ms");
    }
    return command;
  });
}

Result<CheckpointAck> decode_ack(std::string_view bytes) {
  try {
    const auto value = json::parse(json::string_view(bytes.data(), bytes.size()));
    const auto& object = value.as_object();
    const CheckpointAck ack{number_at<std::int64_t>(object, "attempt"), number_at<std::int64_t>(object, "step")};
    if (ack.attempt < 0 || ack.step < 0) return invalid("attempt and step may not be negative");
    return ack;
  } catch (const std::exception& problem) {
    return invalid(problem.what());
  }
}

}  // namespace berth::executor
