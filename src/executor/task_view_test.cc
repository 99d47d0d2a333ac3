#include "executor/task_view.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "executor/executor_fixture.h"

namespace berth::executor {
namespace {

constexpr uid_t kUser = 65534;

struct ViewFixture : ExecutorFixture {
  ViewFixture() {
    std::filesystem::create_directory(path("volume"));
    ::chmod(path("volume").c_str(), 0777);
    std::ofstream(path("volume/file")) << "hello\n";
    std::ofstream(path("token")) << "s3cr3t\n";
    ::chmod(path("token").c_str(), 0600);
  }
  // Without root there is nothing to test.
  bool is_possible() {
    if (open().capabilities().other_users) return true;
    MESSAGE("SKIPPED: mounts need root");
    return false;
  }
  TaskLaunch viewing(std::uint64_t job, const std::string& script) {
    TaskLaunch task = shell(job, script);
    task.user = TaskUser{kUser, kUser};
    return task;
  }
  // Returns the end of the task, and what it wrote.
  std::pair<Exited, std::string> run(const TaskLaunch& task) {
    REQUIRE(executor().start(task).has_value());
    const Exited& exited = wait_for_exit(task.key);
    return {exited, read_log(task.key.job, LogStream::kStdout) + read_log(task.key.job, LogStream::kStderr)};
  }
  Executor& executor() { return *opened; }
  Executor& open() { return *(opened = &ExecutorFixture::open()); }
  Executor* opened = nullptr;
};

}  // namespace

TEST_CASE_FIXTURE(ViewFixture, "a task reads a volume at its place, which the machine does not have") {
  if (!is_possible()) return;
  TaskLaunch task =
      viewing(1, "cat /data/set/file; echo more > /data/set/new; ls /berth 2>&1; mount | grep -c berth-old");
  task.mounts = {{path("volume"), "", "/data/set", false}};
  const auto [exited, said] = run(task);
  CHECK_NE(said.find("hello"), std::string::npos);
  CHECK_NE(said.find("\n0\n"), std::string::npos);  // nothing of the machine's root is left over
  CHECK_EQ(read_file("volume/new"), "more\n");
  CHECK_FALSE(std::filesystem::exists("/data/set"));
}

TEST_CASE_FIXTURE(ViewFixture, "a read-only volume is not written to, and the root of the view neither") {
  if (!is_possible()) return;
  TaskLaunch task = viewing(1, "echo x > /data/new; echo y > /other; cat /data/file");
  task.user->uid = task.user->gid = 0;
  task.mounts = {{path("volume"), "", "/data", true}};
  const auto [exited, said] = run(task);
  CHECK_EQ(std::count(said.begin(), said.end(), '\n'), 3);
  CHECK_NE(said.find("Read-only file system"), std::string::npos);
  CHECK_EQ(read_file("volume/new"), "");
  CHECK_FALSE(std::filesystem::exists("/other"));
}

TEST_CASE_FIXTURE(ViewFixture, "a link is followed on no way: to a source, within a volume, or to a place") {
  if (!is_possible()) return;
  std::filesystem::create_directory(path("elsewhere"));
  ::chmod(path("elsewhere").c_str(), 0777);
  std::filesystem::create_symlink(path("elsewhere"), path("volume/out"));
  std::filesystem::create_symlink(path("volume"), path("link"));
  const std::vector<TaskMount> mounts = {{path("link"), "", "/data", false},
                                         {path("volume"), "out", "/data", false},
                                         {path("volume"), "out/deeper", "/data", false},
                                         {path("volume"), "", path("link"), false}};
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    TaskLaunch task = viewing(i + 1, "true");
    task.mounts = {mounts[i]};
    const auto [exited, said] = run(task);
    CHECK(exited.reason == ExitReason::kStartFailed);
    CHECK_NE(exited.message.find("a symbolic link is on the way"), std::string::npos);
  }
  TaskLaunch above = viewing(9, "true");
  above.mounts = {{path("volume"), "../elsewhere", "/data", false}};
  CHECK(run(above).first.reason == ExitReason::kStartFailed);
  CHECK(std::filesystem::is_empty(path("elsewhere")));
}

TEST_CASE_FIXTURE(ViewFixture,
                  "a directory in a volume is made by the user, and is not reached through that of another") {
  if (!is_possible()) return;
  TaskLaunch task = viewing(1, "echo saved > $PLACE/x; ls $PLACE");
  task.env.emplace_back("PLACE", "/berth/checkpoint");
  task.mounts = {{path("volume"), "runs/1", "/berth/checkpoint", false}};
  CHECK_EQ(run(task).second, "x\n");
  CHECK_EQ(read_file("volume/runs/1/x"), "saved\n");
  struct stat status {};
  REQUIRE_EQ(::stat(path("volume/runs").c_str(), &status), 0);
  CHECK_EQ(status.st_uid, kUser);
  TaskLaunch other = task;
  other.key.job = 2;
  other.log_dir = path("logs/2");
  other.user = TaskUser{kUser - 1, kUser - 1};
  const auto [exited, said] = run(other);
  CHECK(exited.reason == ExitReason::kStartFailed);
  CHECK_NE(exited.message.find("Permission denied"), std::string::npos);
}

TEST_CASE_FIXTURE(ViewFixture, "a secret is a file in memory that its user alone may read, and nothing else has it") {
  if (!is_possible()) return;
  TaskLaunch task = viewing(1,
                            "cat /berth/secrets/hf/token; stat -c '%a %u' /berth/secrets/hf/token; "
                            "echo x > /berth/secrets/hf/y; stat -f -c %T /berth/secrets/hf");
  task.secrets = {{"/berth/secrets/hf", {{"token", path("token")}}}};
  const auto [exited, said] = run(task);
  CHECK_NE(said.find("s3cr3t\n400 65534\n"), std::string::npos);
  CHECK_NE(said.find("Read-only file system"), std::string::npos);
  CHECK_NE(said.find("tmpfs"), std::string::npos);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("run"))) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    CHECK_EQ(std::string(std::istreambuf_iterator<char>(file), {}).find("s3cr3t"), std::string::npos);
  }
  TaskLaunch missing = viewing(2, "true");
  missing.secrets = {{"/berth/secrets/hf", {{"token", path("no-such")}}}};
  CHECK_NE(run(missing).first.message.find("no-such: No such file"), std::string::npos);
}

TEST_CASE_FIXTURE(ViewFixture, "all ranks of a task share its /dev/shm, which has the size that was asked for") {
  if (!is_possible()) return;
  TaskLaunch task = viewing(1,
                            "df -m --output=size /dev/shm | tail -1; echo $RANK > /dev/shm/$RANK; "
                            "until [ -e /dev/shm/0 ] && [ -e /dev/shm/1 ]; do sleep 0.05; done");
  task.rank_env = {{{"RANK", "0"}}, {{"RANK", "1"}}};
  task.shm_mib = 7;
  const auto [exited, said] = run(task);
  CHECK_EQ(exited.code, 0);
  CHECK_NE(said.find(" 7"), std::string::npos);
}

TEST_CASE_FIXTURE(ViewFixture, "an acknowledgement is seen in the volume of the checkpoints") {
  if (!is_possible()) return;
  TaskLaunch task = viewing(1,
                            "echo '{\"attempt\": 1, \"step\": 7, \"time\": 0}' > /berth/checkpoint/a; "
                            "mv /berth/checkpoint/a /berth/checkpoint/ack.json");
  task.mounts = {{path("volume"), "job-1", "/berth/checkpoint", false}};
  task.checkpoint_mount = "/berth/checkpoint";
  CHECK_EQ(run(task).first.bad_acks, 0);
  REQUIRE_EQ(checkpoints.size(), 1);
  CHECK_EQ(checkpoints[0].step, 7);
}

TEST_CASE_FIXTURE(ViewFixture, "a place below a directory of the machine must be there, and is not made") {
  if (!is_possible()) return;
  TaskLaunch task = viewing(1, "true");
  task.mounts = {{path("volume"), "", "/etc/no-such-place", false}};
  const auto [exited, said] = run(task);
  CHECK(exited.reason == ExitReason::kStartFailed);
  CHECK_NE(exited.message.find("/etc/no-such-place is not there on this machine"), std::string::npos);
  CHECK_FALSE(std::filesystem::exists("/etc/no-such-place"));
}

}  // namespace berth::executor
