#include "api/http/authenticator.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace berth::http {
namespace {

// A directory of its own, gone at the end of the test.
struct Directory {
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-token-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string file() const { return path + "/token"; }
  std::string path;
};

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

TEST_CASE("tokens: each names its subject, and nothing else does") {
  const std::string one(64, 'a');
  const std::string two(64, 'b');
  Authenticator authenticator;
  REQUIRE(authenticator.add(one, {.name = "ann", .user = "ann"}));
  REQUIRE(authenticator.add(two, {.name = "bob", .user = "bob"}));
  CHECK(authenticator.subject_of("Bearer " + one)->name == "ann");
  CHECK(authenticator.subject_of("bearer  " + two)->name == "bob");
  for (const std::string& header :
       std::vector<std::string>{"", one, "Bearer", "Bearer ", "Basic " + one, "Bearer " + one + "a",
                                "Bearer " + one.substr(1), "Bearer " + one + " " + two, "Bearer\t" + one}) {
    CAPTURE(header);
    CHECK_FALSE(authenticator.subject_of(header));
  }
  CHECK_FALSE(Authenticator().subject_of("Bearer " + one));
  CHECK_FALSE(authenticator.add("short", {.name = "eve", .user = "eve"}));
  CHECK_FALSE(authenticator.add(one, {.name = "", .user = ""}));
}

TEST_CASE("token file: made once, for the owner alone, and read again") {
  const Directory directory;
  const auto made = load_or_create_token(directory.file());
  REQUIRE(made);
  CHECK(made->size() == 64);
  CHECK(mode_of(directory.file()) == 0600);
  CHECK(load_or_create_token(directory.file()).value() == *made);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path), {}) == 1);
  const Directory other;
  CHECK(load_or_create_token(other.file()).value() != *made);
}

TEST_CASE("token file: exposed, linked, damaged or missing is refused with what to do") {
  const Directory directory;
  REQUIRE(load_or_create_token(directory.file()));
  for (const mode_t mode : {mode_t{0640}, mode_t{0604}, mode_t{0620}, mode_t{0666}}) {
    ::chmod(directory.file().c_str(), mode);
    const auto refused = load_or_create_token(directory.file());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kDenied);
    CHECK(refused.error().message.find("chmod 600") != std::string::npos);
  }
  ::chmod(directory.file().c_str(), 0600);
  const std::string link = directory.path + "/link";
  std::filesystem::create_symlink(directory.file(), link);
  CHECK(load_or_create_token(link).error().code == ErrorCode::kDenied);
  for (const std::string& damage : {std::string(), std::string("abc\n"), std::string(64, 'g'), std::string(65, 'a')}) {
    std::ofstream(directory.file(), std::ios::trunc) << damage;
    CHECK(load_or_create_token(directory.file()).error().code == ErrorCode::kCorrupt);
  }
  CHECK(load_or_create_token(directory.path + "/no/such/place").error().code == ErrorCode::kIo);
}

}  // namespace
}  // namespace berth::http
