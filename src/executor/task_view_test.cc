#include "executor/task_view.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>

#include <algorithm>

#include "executor/descriptor.h"
#include "executor/executor_fixture.h"
#include "model/exit_code.h"

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
  // Its checkpoints are in the volume.
  TaskLaunch saving(std::uint64_t job, const std::string& script) {
    TaskLaunch task = viewing(job, script);
    task.mounts = {{path("volume"), "job-1", "/berth/checkpoint", false}};
    task.checkpoint_mount = "/berth/checkpoint";
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
  task.mounts = {{path("volume"), "runs/1", "/berth/checkpoint", false, "scratch"}};
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
  CHECK_EQ(exited.message, "volume 'scratch': its directory runs belongs to uid " + std::to_string(kUser) +
                               ", not to the job's user; name another path");
}

TEST_CASE_FIXTURE(ViewFixture, "tasks that start together make one directory in a volume") {
  if (!is_possible()) return;
  std::string deep;  // so that the later ones come up with the first
  for (int level = 0; level < 1'000; ++level) deep += "d/";
  std::vector<TaskLaunch> tasks;
  for (std::uint64_t job = 1; job <= 12; ++job) {
    TaskLaunch task = viewing(job, "true");
    task.mounts = {{path("volume"), deep, "/berth/checkpoint", false, "scratch"}};
    tasks.push_back(std::move(task));
  }
  for (const TaskLaunch& task : tasks) REQUIRE(executor().start(task).has_value());
  for (const TaskLaunch& task : tasks) {
    const Exited& exited = wait_for_exit(task.key);
    CAPTURE(exited.message);
    CHECK(exited.reason == ExitReason::kExited);
    CHECK_EQ(exited.code, 0);
  }
}

TEST_CASE_FIXTURE(ViewFixture,
                  "a directory that another user has made in advance is not saved to, nor one of no right") {
  if (!is_possible()) return;
  const auto make = [&](const std::string& name, uid_t owner, mode_t mode) {
    std::filesystem::create_directory(path(name));
    REQUIRE_EQ(::chmod(path(name).c_str(), mode), 0);
    REQUIRE_EQ(::chown(path(name).c_str(), owner, owner), 0);
  };
  make("volume/job-1", kUser - 1, 0777);
  make("volume/closed", 0, 0755);
  make("volume/shared", 0, 01777);
  TaskLaunch task = viewing(1, "true");
  task.mounts = {{path("volume"), "job-1/checkpoint", "/berth/checkpoint", false, "scratch"}};
  CHECK_EQ(run(task).first.message, "volume 'scratch': its directory job-1 belongs to uid " +
                                        std::to_string(kUser - 1) + ", not to the job's user; name another path");
  CHECK(std::filesystem::is_empty(path("volume/job-1")));
  TaskLaunch closed = viewing(2, "true");
  closed.mounts = {{path("volume"), "closed", "/berth/checkpoint", false, "scratch"}};
  CHECK_EQ(run(closed).first.message,
           "volume 'scratch': its directory closed: the job's user cannot write to it: Permission denied");
  TaskLaunch shared = viewing(3, "touch /berth/checkpoint/x");
  shared.mounts = {{path("volume"), "shared/mine", "/berth/checkpoint", false, "scratch"}};
  CHECK_EQ(run(shared).first.code, 0);
  CHECK(std::filesystem::exists(path("volume/shared/mine/x")));
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
  missing.secrets = {{"/berth/secrets/hf", {{"token", path("no-such")}}, "hf"}};
  CHECK_EQ(run(missing).first.message,
           "secret 'hf': open the source of 'token' on this machine: No such file or directory");
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
  const TaskLaunch task = saving(1,
                                 "echo '{\"attempt\": 1, \"step\": 7, \"time\": 0}' > /berth/checkpoint/a; "
                                 "mv /berth/checkpoint/a /berth/checkpoint/ack.json");
  CHECK_EQ(run(task).first.bad_acks, 0);
  REQUIRE_EQ(checkpoints.size(), 1);
  CHECK_EQ(checkpoints[0].step, 7);
  const TaskLaunch next = saving(2, "cat /berth/checkpoint/ack.json");  // it goes on from there, and saves nothing
  CHECK_NE(run(next).second.find("\"step\": 7"), std::string::npos);
  CHECK_EQ(checkpoints.size(), 1);
}

TEST_CASE_FIXTURE(ViewFixture,
                  "an acknowledgement in a volume is read with the rights of the user, not with those of root") {
  if (!is_possible()) return;
  const TaskLaunch task = saving(1,
                                 "echo '{\"attempt\": 1, \"step\": 7, \"time\": 0}' > /berth/checkpoint/a; "
                                 "chmod 0 /berth/checkpoint/a; mv /berth/checkpoint/a /berth/checkpoint/ack.json");
  CHECK_EQ(run(task).first.bad_acks, 1);
  CHECK(checkpoints.empty());
}

namespace {

// Mounts a file system whose server is gone, as a dead NFS or FUSE mount is.
class SickMount {
 public:
  explicit SickMount(std::string path) : path_(std::move(path)) {
    if (::mkdir(path_.c_str(), 0755) != 0) return;
    const Descriptor server(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    const std::string options =
        "fd=" + std::to_string(server.get()) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
    is_there_ = server.is_open() && ::mount("gone", path_.c_str(), "fuse", 0, options.c_str()) == 0;
  }
  ~SickMount() {
    if (is_there_) ::umount2(path_.c_str(), MNT_DETACH);
    ::rmdir(path_.c_str());
  }
  SickMount(const SickMount&) = delete;
  SickMount& operator=(const SickMount&) = delete;
  bool is_there() const { return is_there_; }

 private:
  std::string path_;
  bool is_there_ = false;
};

}  // namespace

TEST_CASE_FIXTURE(ViewFixture,
                  "a sick mount in the machine's root fails no task, and as a source it is the machine's fault") {
  if (!is_possible()) return;
  const std::string sick = "/berth-sick-" + std::to_string(::getpid());
  const SickMount mount(sick);
  if (!mount.is_there()) {
    MESSAGE("SKIPPED: no FUSE");
    return;
  }
  TaskLaunch task = viewing(1, "cat /data/file");
  task.mounts = {{path("volume"), "", "/data", false}};
  CHECK_EQ(run(task).second, "hello\n");
  TaskLaunch reading = viewing(2, "true");
  reading.secrets = {{"/berth/secrets/hf", {{"token", sick + "/token"}}, "hf"}};
  const auto [exited, said] = run(reading);
  CHECK(exited.reason == ExitReason::kStartFailed);
  CHECK_EQ(exited.code, kNodeShortCode);
  CHECK_EQ(exited.message.find(sick), std::string::npos);
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
