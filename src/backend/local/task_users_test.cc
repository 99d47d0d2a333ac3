#include "backend/local/task_users.h"

#include <doctest/doctest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace berth::backend {

namespace {

class Directory {
 public:
  Directory() {
    path_ = ::mkdtemp(name_);
    ::setenv("BERTH_LOCK_DIR", path_.c_str(), 1);  // other servers of this machine are none of the test's
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  char name_[40] = "/tmp/berth-task-users-test-XXXXXX";
  std::string path_;
};

uid_t uid_of(TaskUsers& users, const std::string& submitter) {
  const auto user = users.user_of(submitter);
  REQUIRE(user.has_value());
  REQUIRE(user->has_value());
  return (*user)->uid;
}

// Names that are no account of a person on any machine, however it is set up.
constexpr const char* kAnn = "ann of the tests";
constexpr const char* kBen = "ben of the tests";

}  // namespace

TEST_CASE("a range of uids is FROM-TO, without those of the system and without nobody's") {
  CHECK(read_uid_range("1000-1000").has_value());
  CHECK(read_uid_range("50000-59999")->last == 59'999);
  for (const char* wrong : {"", "-", "50000", "50000-", "-50000", "59999-50000", "999-2000", "0-0", "65000-66000",
                            "a-b", "50000-4294967294", "50000-99999999999999999999", "50000 -50001"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_uid_range(wrong).has_value());
  }
}

TEST_CASE("a server that is not root runs everything as itself, and takes no flag that says otherwise") {
  if (::geteuid() == 0) return;  // the cases below
  const Directory directory;
  auto users = TaskUsers::open({}, directory.path());
  REQUIRE(users.has_value());
  CHECK_FALSE(users->user_of("ann")->has_value());
  CHECK_FALSE(TaskUsers::open({"nobody", ""}, directory.path()).has_value());
}

TEST_CASE("each name gets a uid of its own and keeps it, and root gets one too") {
  if (::geteuid() != 0) return;
  const Directory directory;
  auto users = TaskUsers::open({"", "52000-52003"}, directory.path()).value();
  const uid_t ann = uid_of(users, kAnn);
  const uid_t ben = uid_of(users, kBen);
  const uid_t root = uid_of(users, "root");
  CHECK(uid_of(users, kAnn) == ann);
  CHECK(ann != ben);
  for (const uid_t uid : {ann, ben, root}) CHECK((uid >= 52'000 && uid <= 52'003));
  users = TaskUsers();  // its server has ended
  auto later = TaskUsers::open({"", "52000-52003"}, directory.path()).value();
  CHECK(uid_of(later, "root") == root);
  CHECK(uid_of(later, kBen) == ben);
  later = TaskUsers();
  auto moved = TaskUsers::open({"", "53000-53001"}, directory.path()).value();
  CHECK(uid_of(moved, kBen) >= 53'000);
  moved = TaskUsers();
  auto back = TaskUsers::open({"", "52000-52003"}, directory.path()).value();
  CHECK(uid_of(back, kBen) == ben);
  CHECK(uid_of(back, "nobody") == 52'003);
  const auto full = back.user_of("one too many");
  REQUIRE_FALSE(full.has_value());
  CHECK(full.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("the account that is named runs the tasks of names without an account, and is never root") {
  if (::geteuid() != 0) return;
  const Directory directory;
  auto users = TaskUsers::open({"daemon", ""}, directory.path()).value();
  for (const char* name : {kAnn, "root", "bin", "nobody", "", "0", "+"})
    CHECK(uid_of(users, name) == ::getpwnam("daemon")->pw_uid);
  CHECK(users.shares_uid(kAnn));
  CHECK_FALSE(TaskUsers::open({"", ""}, directory.path())->shares_uid(kAnn));
  CHECK_FALSE(TaskUsers::open({"root", ""}, directory.path()).has_value());
  CHECK_FALSE(TaskUsers::open({"no such account", ""}, directory.path()).has_value());
  CHECK_FALSE(TaskUsers::open({"daemon", "50000-50001"}, directory.path()).has_value());
}

TEST_CASE("a damaged list of uids is an error, and not a new list") {
  if (::geteuid() != 0) return;
  const Directory directory;
  for (const char* line : {"0 ann\n", "50000\n", "x ann\n", "50000 ann\n\n"}) {
    std::ofstream(directory.path() + "/task-uids") << line;
    CAPTURE(line);
    const auto users = TaskUsers::open({}, directory.path());
    REQUIRE_FALSE(users.has_value());
    CHECK(users.error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("the first closed directory on the way is found") {
  const Directory directory;  // mode 0700
  CHECK(closed_to_others(directory.path() + "/a/b") == directory.path());
  ::chmod(directory.path().c_str(), 0711);
  CHECK(closed_to_others(directory.path()).empty());
  ::mkdir((directory.path() + "/a").c_str(), 0700);
  CHECK(closed_to_others(directory.path() + "/a") == directory.path() + "/a");
}

TEST_CASE("two servers of root on one machine give no uid twice, also where both had it before") {
  if (::geteuid() != 0) return;
  const Directory first_data;
  const Directory second_data;  // the directory of the locks of both
  auto first = TaskUsers::open({"", "52000-52009"}, first_data.path());
  REQUIRE(first.has_value());
  const uid_t ann = uid_of(*first, kAnn);
  CHECK(ann == 52'000);
  {
    auto second = TaskUsers::open({"", "52000-52009"}, second_data.path());
    REQUIRE(second.has_value());
    CHECK(second->note().empty());
    CHECK(uid_of(*second, kBen) == 52'001);
    CHECK(uid_of(*first, kBen) == 52'002);
  }
  // A release that did not look gave ben the uid that ann has at the other server.
  std::ofstream(second_data.path() + "/task-uids") << "52000 " << kBen << "\n";
  auto second = TaskUsers::open({"", "52000-52009"}, second_data.path());
  REQUIRE(second.has_value());
  CHECK(uid_of(*second, kBen) == 52'001);
  CHECK(second->note().find("1 user of jobs gets another uid") != std::string::npos);
  CHECK(uid_of(*first, kAnn) == ann);
}

}  // namespace berth::backend
