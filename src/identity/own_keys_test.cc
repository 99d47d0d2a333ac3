#include "identity/own_keys.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>

#include "identity/job_claims.h"
#include "identity/job_token.h"
#include "identity/key_set.h"
#include "identity/test_keys.h"

namespace berth::identity {
namespace {

namespace own {

constexpr Timestamp kStart{1'800'000'000'000};

struct Directory {
  std::string path = "/tmp/berth-own-keys-" + std::to_string(::getpid());
  std::string file = path + "/signing-keys.json";
  Directory() { std::filesystem::create_directory(path); }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
};

std::string signed_claims(const OwnKeys& keys) {
  return keys
      .sign(boost::json::serialize(
          job_claims({JobId(17), 2, "research/nlp", "corp:ada"}, "https://berth.example.com", "vault", "id-1", kStart)))
      .value();
}

bool is_proved(const std::string& token, const std::string& published) {
  const auto set = KeySet::read(published);
  const auto read = read_token(token);
  return set && read && set->has_key_for(*read) && set->check_signature(token, *read);
}

std::size_t count_of(const std::string& published) {
  return boost::json::parse(published).at("keys").as_array().size();
}

}  // namespace own

TEST_CASE("what is signed is proved by the published keys, which have nothing private in them") {
  const own::Directory directory;
  const OwnKeys keys = OwnKeys::load_or_create(directory.file, own::kStart).value();
  const std::string published = keys.published(own::kStart);
  CHECK(own::is_proved(own::signed_claims(keys), published));
  for (const char* member : {"\"d\"", "\"p\"", "\"q\"", "\"dp\"", "\"dq\"", "\"qi\""})
    CHECK_FALSE(test::mentions(published, member));
  struct stat status {};
  REQUIRE_EQ(::stat(directory.file.c_str(), &status), 0);
  CHECK_EQ(status.st_mode & 0777U, 0600U);
}

TEST_CASE("the claims name queue, job, attempt and owner, for one audience and ten minutes") {
  const auto claims =
      job_claims({JobId(17), 2, "research/nlp", "corp:ada"}, "https://berth.example.com", "vault", "id-1", own::kStart);
  CHECK_EQ(boost::json::serialize(claims),
           R"({"iss":"https://berth.example.com","sub":"queue:research/nlp:job:17:attempt:2","aud":"vault",)"
           R"("iat":1800000000,"nbf":1800000000,"exp":1800000600,"jti":"id-1","berth_queue":"research/nlp",)"
           R"("berth_job":17,"berth_attempt":2,"berth_user":"corp:ada"})");
}

TEST_CASE("the keys and the secret are the same after a restart") {
  const own::Directory directory;
  const OwnKeys first = OwnKeys::load_or_create(directory.file, own::kStart).value();
  const OwnKeys second = OwnKeys::load_or_create(directory.file, own::kStart + 1).value();
  CHECK_EQ(first.published(own::kStart), second.published(own::kStart));
  CHECK_EQ(first.job_secret(), second.job_secret());
  CHECK(own::is_proved(own::signed_claims(second), first.published(own::kStart)));
}

TEST_CASE("an earlier key is public until its tokens have ended, and is forgotten at the rotation after that") {
  const own::Directory directory;
  OwnKeys keys = OwnKeys::load_or_create(directory.file, own::kStart).value();
  const std::string before = own::signed_claims(keys);
  const Timestamp rotated = own::kStart + 86'400'000;
  REQUIRE(keys.rotate(rotated, false));
  const std::string after = own::signed_claims(keys);
  for (const std::int64_t later : {std::int64_t{0}, kJobTokenLifetimeMs}) {
    CHECK(own::is_proved(before, keys.published(rotated + later)));
    CHECK(own::is_proved(after, keys.published(rotated + later)));
  }
  const Timestamp ended = rotated + kJobTokenLifetimeMs + 5 * 60'000;
  CHECK(own::is_proved(before, keys.published(ended + -1)));
  CHECK_FALSE(own::is_proved(before, keys.published(ended)));
  CHECK(own::is_proved(after, keys.published(ended)));
  REQUIRE(keys.rotate(ended, false));
  CHECK_EQ(own::count_of(keys.published(rotated)), 2);  // also at an earlier time the first one is not there
  const OwnKeys loaded = OwnKeys::load_or_create(directory.file, ended).value();
  CHECK_EQ(own::count_of(loaded.published(ended)), 2);
}

TEST_CASE("a withdrawn key proves nothing from then on") {
  const own::Directory directory;
  OwnKeys keys = OwnKeys::load_or_create(directory.file, own::kStart).value();
  const std::string before = own::signed_claims(keys);
  REQUIRE(keys.rotate(own::kStart, true));
  CHECK_FALSE(own::is_proved(before, keys.published(own::kStart)));
  CHECK(own::is_proved(own::signed_claims(keys), keys.published(own::kStart)));
}

TEST_CASE("a rotation that cannot be stored leaves the key in force, and so do too many at once") {
  const own::Directory directory;
  OwnKeys keys = OwnKeys::load_or_create(directory.file, own::kStart).value();
  const std::string before = keys.published(own::kStart);
  std::filesystem::rename(directory.path, directory.path + ".away");
  CHECK_FALSE(keys.rotate(own::kStart, false));
  CHECK_EQ(keys.published(own::kStart), before);
  std::filesystem::rename(directory.path + ".away", directory.path);
  CHECK(own::is_proved(own::signed_claims(keys), before));
  int made = 0;
  while (made < 100 && keys.rotate(own::kStart, false)) ++made;
  CHECK_EQ(made, 19);
  CHECK_EQ(own::count_of(keys.published(own::kStart)), 20);
  CHECK(keys.rotate(own::kStart, true));
}

TEST_CASE("a file of keys that others may read, or that is none, is refused with what to do") {
  const own::Directory directory;
  REQUIRE(OwnKeys::load_or_create(directory.file, own::kStart));
  ::chmod(directory.file.c_str(), 0640);
  const auto open = OwnKeys::load_or_create(directory.file, own::kStart);
  REQUIRE_FALSE(open);
  CHECK(test::mentions(open.error().message, "chmod 600"));
  ::chmod(directory.file.c_str(), 0600);
  for (const char* text : {"", "{}", R"({"job_secret":"00","keys":[{}]})", "[1]"}) {
    CAPTURE(text);
    std::ofstream(directory.file, std::ios::trunc) << text;
    const auto other = OwnKeys::load_or_create(directory.file, own::kStart);
    REQUIRE_FALSE(other);
    CHECK(test::mentions(other.error().message, "remove it"));
  }
}

TEST_CASE("a token of a job is good for its attempt alone, with the secret alone") {
  const std::string secret(64, 'a');
  const JobAttempt attempt{JobId(17), 2};
  const std::string token = job_token(secret, attempt);
  CHECK(read_job_token(secret, token) == attempt);
  CHECK_FALSE(read_job_token(std::string(64, 'b'), token));
  std::string other = token;
  other.replace(other.find("-17-"), 4, "-18-");
  CHECK_FALSE(read_job_token(secret, other));
  other = token;
  other.replace(other.find("-2-"), 3, "-3-");
  CHECK_FALSE(read_job_token(secret, other));
  for (const std::string& bad : {std::string(), std::string("berth-job-"), std::string("berth-job-17-2"),
                                 std::string("berth-job-17-2-"), token + "0", token.substr(0, token.size() - 1),
                                 "berth-job-017-2-" + token.substr(15), std::string("berth-job--1-2-") + secret})
    CHECK_FALSE(read_job_token(secret, bad));
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    CHECK_FALSE(read_job_token(secret, changed));
  }
}

TEST_CASE("a token for saves is no token of the job, nor the other way round") {
  const std::string secret(64, 'a');
  const JobAttempt attempt{JobId(17), 2};
  const std::string token = save_token(secret, attempt);
  CHECK(read_save_token(secret, token) == attempt);
  CHECK_FALSE(read_job_token(secret, token));
  CHECK_FALSE(read_save_token(secret, job_token(secret, attempt)));
  CHECK_FALSE(read_job_token(secret, "berth-job-" + token.substr(std::string("berth-save-").size())));
  CHECK_FALSE(read_save_token(std::string(64, 'b'), token));
}

}  // namespace
}  // namespace berth::identity
