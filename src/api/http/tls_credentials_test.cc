#include "api/http/tls_credentials.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "api/http/test_certificates.h"

namespace berth::http {
namespace {

namespace fs = std::filesystem;

void replace(const std::string& from, const std::string& to) {
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

TEST_CASE("tls credentials: files that cannot be used are refused with the file's name") {
  TestAuthority authority;
  authority.sign("a", "a", "DNS:localhost");
  authority.sign("b", "b");
  const auto path = [&](const char* name) { return authority.path(name); };
  const auto message = [](const TlsFiles& files) {
    const auto loaded = TlsCredentials::load(files);
    return loaded ? std::string() : loaded.error().message;
  };
  CHECK(message({path("a.pem"), path("a.key")}).empty());
  CHECK(message({path("a.pem"), path("b.key")}).find("is not the key of the certificate") != std::string::npos);
  CHECK(message({path("a.key"), path("a.key")}).find("no certificate in it") != std::string::npos);
  CHECK(message({path("a.pem"), path("a.pem")}).find("key file is refused") != std::string::npos);
  CHECK(message({path("none.pem"), path("a.key")}) == path("none.pem") + ": open: No such file or directory");
  CHECK(message({path("a.pem"), path("a.key"), path("a.key")}).find("authority") != std::string::npos);
  for (const mode_t open : {0604U, 0602U, 0644U, 0660U, 0606U}) {
    ::chmod(path("a.key").c_str(), open);
    CHECK(message({path("a.pem"), path("a.key")}).find("chmod 600") != std::string::npos);
  }
  ::chmod(path("a.key").c_str(), 0400);
  CHECK(message({path("a.pem"), path("a.key")}).empty());
}

TEST_CASE("tls credentials: a new pair is in force once it is whole; what cannot be used is told once") {
  TestAuthority authority;
  authority.sign("server", "server", "DNS:first.example");
  authority.sign("next", "next", "DNS:second.example");
  authority.sign("old", "old", "DNS:old.example", -1);
  const auto path = [&](const char* name) { return authority.path(name); };
  auto loaded = TlsCredentials::load({path("server.pem"), path("server.key")});
  REQUIRE(loaded);
  TlsCredentials& credentials = **loaded;
  CHECK(credentials.describe().find("first.example") != std::string::npos);
  CHECK_FALSE(*credentials.reload());

  replace(path("next.pem"), path("server.pem"));
  CHECK_FALSE(credentials.reload());
  const auto again = credentials.reload();
  REQUIRE(again);
  CHECK_FALSE(*again);
  CHECK(credentials.describe().find("first.example") != std::string::npos);
  replace(path("next.key"), path("server.key"));
  CHECK(*credentials.reload());
  CHECK(credentials.describe().find("second.example") != std::string::npos);

  replace(path("old.pem"), path("server.pem"));
  replace(path("old.key"), path("server.key"));
  const auto expired = credentials.reload();
  REQUIRE_FALSE(expired);
  CHECK(expired.error().message.find("has expired") != std::string::npos);
  fs::remove(path("server.key"));
  CHECK_FALSE(credentials.reload());
  CHECK_FALSE(*credentials.reload());
  CHECK(credentials.describe().find("second.example") != std::string::npos);
}

}  // namespace
}  // namespace berth::http
