#include "executor/user_directory.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "executor/executor_fixture.h"

namespace berth::executor {

namespace {

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

}  // namespace

TEST_CASE_FIXTURE(ExecutorFixture,
                  "a passage is passed by everybody and listed by nobody else, also if it was closed") {
  REQUIRE(make_passage(path("way")).has_value());
  CHECK((status_of(path("way")).st_mode & 0777U) == 0711U);
  ::chmod(path("way").c_str(), 0700);
  REQUIRE(make_passage(path("way")).has_value());
  CHECK((status_of(path("way")).st_mode & 0777U) == 0711U);
  CHECK_FALSE(make_passage(path("no/such/parent")).has_value());
}

TEST_CASE_FIXTURE(ExecutorFixture, "a directory is given whole, but for links and for files with another name") {
  if (::geteuid() != 0) return;  // only root gives files away
  const TaskUser ann{52'000, 52'000};
  REQUIRE(give_directory(path("given"), ann).has_value());
  CHECK(status_of(path("given")).st_uid == 52'000);
  CHECK((status_of(path("given")).st_mode & 0777U) == 0700U);
  std::ofstream(path("secret")) << "root's";
  std::filesystem::create_directories(path("given/a"));
  std::ofstream(path("given/a/own")) << "x";
  std::filesystem::create_symlink(path("secret"), path("given/link"));
  for (const char* name : {"given/a", "given/a/own", "given/link"})
    CHECK(::lchown(path(name).c_str(), ann.uid, ann.gid) == 0);
  std::filesystem::create_hard_link(path("secret"), path("given/hard"));
  const TaskUser ben{52'001, 52'002};
  REQUIRE(give_directory(path("given"), ben).has_value());
  for (const char* name : {"given", "given/a", "given/a/own", "given/link"}) {
    CAPTURE(name);
    CHECK(status_of(path(name)).st_uid == 52'001);
    CHECK(status_of(path(name)).st_gid == 52'002);
  }
  CHECK(status_of(path("secret")).st_uid == 0);
  std::filesystem::create_symlink(path("given"), path("instead"));
  CHECK_FALSE(give_directory(path("instead"), ann).has_value());
}

TEST_CASE_FIXTURE(ExecutorFixture, "only what is of the former user is given, as deep as it lies") {
  if (::geteuid() != 0) return;  // only root gives files away
  const TaskUser ann{52'000, 52'000};
  const TaskUser ben{52'001, 52'001};
  REQUIRE(give_directory(path("given"), ann).has_value());
  const auto of_ann = [&](const std::string& name) { CHECK(::lchown(path(name).c_str(), ann.uid, ann.gid) == 0); };
  // As if what was a directory when it was listed had become the way to one of root, or to one of a third user.
  std::filesystem::create_directories(path("given/roots/deep"));
  std::ofstream(path("given/roots/deep/shadow")) << "root's";
  std::filesystem::create_directories(path("given/half"));
  std::ofstream(path("given/half/rest")) << "x";
  of_ann("given/half/rest");
  CHECK(::lchown(path("given/half").c_str(), ben.uid, ben.gid) == 0);
  std::string deep = "given";
  for (int level = 0; level < 400; ++level) {
    deep += "/d";
    std::filesystem::create_directory(path(deep));
    of_ann(deep);
  }
  rlimit few{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &few) == 0);
  const rlimit before = few;
  few.rlim_cur = 100;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto given = give_directory(path("given"), ben);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(given.has_value());
  CHECK(status_of(path("given")).st_uid == ben.uid);
  CHECK(status_of(path(deep)).st_uid == ben.uid);
  CHECK(status_of(path("given/half/rest")).st_uid == ben.uid);
  for (const char* name : {"given/roots", "given/roots/deep", "given/roots/deep/shadow"}) {
    CAPTURE(name);
    CHECK(status_of(path(name)).st_uid == 0);
  }
}

TEST_CASE_FIXTURE(ExecutorFixture, "what is given stays within the tree while its directories become links to root's") {
  if (::geteuid() != 0) return;  // only root gives files away
  const TaskUser ann{52'000, 52'000};
  const TaskUser ben{52'001, 52'001};
  std::filesystem::create_directories(path("roots/sub"));
  for (const char* name : {"roots/shadow", "roots/sub/deep"}) std::ofstream(path(name)) << "root's";
  for (int round = 0; round < 20; ++round) {
    const std::string given = "given" + std::to_string(round);
    REQUIRE(give_directory(path(given), ann).has_value());
    for (int i = 0; i < 40; ++i) {
      const std::string name = given + "/" + std::to_string(i);
      std::filesystem::create_directories(path(name));
      CHECK(::lchown(path(name).c_str(), ann.uid, ann.gid) == 0);
    }
    std::thread swapping([&] {
      for (int i = 0; i < 40; ++i) {
        std::error_code ignored;
        const std::string name = path(given + "/" + std::to_string(i));
        std::filesystem::rename(name, name + ".old", ignored);
        std::filesystem::create_directory_symlink(path("roots"), name, ignored);
      }
    });
    (void)give_directory(path(given), ben).has_value();
    swapping.join();
  }
  for (const char* name : {"roots", "roots/shadow", "roots/sub", "roots/sub/deep"}) {
    CAPTURE(name);
    CHECK(status_of(path(name)).st_uid == 0);
  }
}

TEST_CASE_FIXTURE(ExecutorFixture, "what a user cannot reach is named by its start") {
  auto& executor = open();
  if (!executor.capabilities().other_users) return;
  std::filesystem::create_directories(path("closed/in"));
  std::filesystem::create_directories(path("mine"));
  std::filesystem::copy_file("/bin/true", path("closed/in/true"));
  ::chmod(path("closed").c_str(), 0700);
  const auto message_of = [&](TaskLaunch task) {
    task.user = TaskUser{52'000, 52'000, "ann", "/", "/bin/sh"};
    REQUIRE(executor.start(task).has_value());
    const auto& exited = wait_for_exit(task.key);
    CHECK(exited.reason == ExitReason::kStartFailed);
    CHECK(exited.code == 126);
    return exited.message;
  };
  const std::string who = ": user ann (uid 52000) may not enter " + path("closed") + ";";
  auto task = shell(1, "true");
  task.workdir = path("closed/in");
  CHECK(message_of(task).find("cannot enter its working directory " + task.workdir + who) == 0);
  CHECK(message_of(launch(2, {path("closed/in/true")})).find("cannot execute " + path("closed/in/true") + who) == 0);
  task = shell(5, "true");
  task.workdir = path("closed");
  CHECK(message_of(task).find("cannot enter its working directory " + task.workdir + who) == 0);
  task = shell(3, "true");
  task.workdir = "/";
  task.checkpoint_dir = path("closed/in/saved");
  CHECK(message_of(task).find("cannot use its checkpoint directory " + task.checkpoint_dir + who) == 0);
  std::ofstream(path("mine/plain")) << "not executable";
  CHECK(message_of(launch(4, {path("mine/plain")})).find("has not the right to") != std::string::npos);
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "the last task of a uid of tasks takes its shared memory with it, and no earlier one") {
  auto& executor = open();
  if (!executor.capabilities().other_users) return;
  constexpr uid_t kUid = 52'345;
  const std::string left = "/dev/shm/berth-test-" + std::to_string(::getpid());
  const auto of_uid = [&](TaskLaunch task) {
    task.user = TaskUser{kUid, kUid, "ann", "/", "/bin/sh", true};
    REQUIRE(executor.start(task).has_value());
    return task.key;
  };
  ::chmod(path(".").c_str(), 0777);
  const TaskKey longer = of_uid(shell(1, "while [ ! -e go ]; do sleep 0.05; done"));
  const TaskKey first = of_uid(shell(2, "mkdir -p " + left + "/in && echo x > " + left + "/in/file"));
  wait_for_exit(first);
  CHECK(std::filesystem::exists(left + "/in/file"));
  std::ofstream(path("go")) << "";
  wait_for_exit(longer);
  CHECK_FALSE(std::filesystem::exists(left));
  std::filesystem::remove_all(left);
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task of another user has no right of root, and no way to it") {
  auto& executor = open();
  if (!executor.capabilities().other_users) return;
  auto task = launch(1, {"sh", "-c",
                         "grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs):' /proc/self/status; "
                         "kill -STOP $PPID 2>/dev/null || echo refused; echo x > /dev/stderr"});
  task.user = TaskUser{52'000, 52'001, "ann", "/", "/bin/sh"};
  REQUIRE(executor.start(task).has_value());
  CHECK(wait_for_exit(task.key).code == 0);
  CHECK(read_log(1, LogStream::kStdout) ==
        "Uid:\t52000\t52000\t52000\t52000\nGid:\t52001\t52001\t52001\t52001\nGroups:\t52001 \n"
        "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n"
        "NoNewPrivs:\t1\nrefused\n");
  CHECK(read_log(1, LogStream::kStderr).find("x\n") != std::string::npos);
}

}  // namespace berth::executor
