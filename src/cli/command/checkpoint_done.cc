#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "cli/command/commands.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

Error io_error(const std::string& path) { return {ErrorCode::kIo, path + ": " + std::strerror(errno)}; }

// Written beside, made durable, then renamed into place: whoever looks sees the old or the new one, never half.
Result<void> replace_file(const std::string& path, const std::string& bytes) {
  const std::string beside = path + "." + std::to_string(::getpid());
  const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return io_error(beside);
  const bool whole = ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const bool durable = whole && ::fsync(file) == 0;
  ::close(file);
  if (durable && std::rename(beside.c_str(), path.c_str()) == 0) return {};
  const Error failed = io_error(path);
  ::unlink(beside.c_str());
  return failed;
}

// From inside a pod: to the server, by the token that may do that alone.
Result<int> acknowledge_from_pod(const CheckpointDoneOptions& options, Session& session) {
  const std::string job = process_environment("BERTH_JOB");
  const std::string file = process_environment("BERTH_SAVE_TOKEN_FILE");
  client::ClientOptions server;
  server.base_url = process_environment("BERTH_SAVE_SERVER");
  server.ca_file = process_environment("BERTH_CA");
  if (server.base_url.empty() || file.empty())
    return Error{ErrorCode::kUnsupported,
                 "this server takes no acknowledgement from inside a pod (berth serve --url); from outside: `berth "
                 "checkpoint-done --job ID --attempt N --step N`"};
  std::ifstream(file) >> server.token;
  if (server.token.empty()) return Error{ErrorCode::kIo, file + " has no token (BERTH_SAVE_TOKEN_FILE)"};
  const auto path = job_path(job, "/checkpoint");
  if (!path) return path.error();
  client::Client own(std::move(server));
  const auto answer = answer_of(own.post(*path, "{\"attempt\": " + process_environment("BERTH_ATTEMPT") +
                                                    ", \"step\": " + std::to_string(options.step) + "}"));
  if (!answer) return answer.error();
  session.out << "step " << options.step << " acknowledged\n";
  return kOk;
}

// From inside the job: its supervisor looks for the acknowledgement in the checkpoint directory, so that a task needs
// neither a token nor the server's address.
Result<int> acknowledge_inside(const CheckpointDoneOptions& options, Session& session) {
  // The variable is in every container of Kubernetes, and in no task on a machine.
  if (!process_environment("KUBERNETES_SERVICE_HOST").empty() || !process_environment("BERTH_SAVE_SERVER").empty())
    return acknowledge_from_pod(options, session);
  const std::string directory = process_environment("BERTH_CHECKPOINT_DIR");
  const std::string attempt = process_environment("BERTH_ATTEMPT");
  if (directory.empty() || !document::parse_integer(attempt, 1, 1'000'000'000)) {
    return invalid(
        "this is not inside a berth job (BERTH_CHECKPOINT_DIR and BERTH_ATTEMPT are not set); name it with --job ID "
        "--attempt N");
  }
  const std::int64_t now_s = clock_now().ms / 1000;
  const auto put =
      replace_file(directory + "/ack.json", "{\"attempt\": " + attempt + ", \"step\": " + std::to_string(options.step) +
                                                ", \"time\": " + std::to_string(now_s) + "}\n");
  if (!put) return put.error();
  session.out << "step " << options.step << " acknowledged\n";
  return kOk;
}

}  // namespace

Result<int> run(const CheckpointDoneOptions& options, Session& session) {
  if (options.job.empty()) return acknowledge_inside(options, session);
  const auto path = job_path(options.job, "/checkpoint");
  if (!path) return path.error();
  if (options.attempt < 1)
    return invalid("--job needs --attempt too; `berth job " + options.job + "` tells its number");
  const auto answer = answer_of(session.server.post(
      *path, "{\"attempt\": " + std::to_string(options.attempt) + ", \"step\": " + std::to_string(options.step) + "}"));
  if (!answer) return answer.error();
  session.out << "step " << options.step << " of job " << options.job << " acknowledged\n";
  return kOk;
}

}  // namespace berth::cli
