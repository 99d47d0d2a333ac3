#include "identity/issuer.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "identity/test_keys.h"
#include "model/issuer_url.h"

namespace berth::identity {
namespace {

std::string mistake_in(const std::string& text) {
  const auto read = read_issuers(text, "issuers.yaml");
  return read ? "" : read.error().message;
}
using test::mentions;

TEST_CASE("issuers: what the file says, and what is the default") {
  const auto read = read_issuers(
      "issuers:\n"
      "  - {name: corp, url: https://login.example.com/realm/, audience: [berth, other], username_claim: email}\n"
      "  - {name: lab, url: 'http://127.0.0.1:3000', audience: berth, groups_claim: roles, clock_skew: 5s, keep: 1h}\n",
      "issuers.yaml");
  REQUIRE_MESSAGE(read, read.error().message);
  REQUIRE_EQ(read->size(), 2);
  CHECK_EQ(read->at(0).url, "https://login.example.com/realm/");
  CHECK_EQ(read->at(0).audiences, std::vector<std::string>{"berth", "other"});
  CHECK_EQ(read->at(0).username_claim, "email");
  CHECK_EQ(read->at(0).groups_claim, "groups");
  CHECK_EQ(read->at(0).keep_s, 86'400);
  CHECK_EQ(read->at(1).username_claim, "sub");
  CHECK_EQ(read->at(1).clock_skew_s, 5);
  CHECK_EQ(read->at(1).keep_s, 3'600);
}

TEST_CASE("issuers: a mistake is told with its place") {
  const std::string corp = "issuers:\n  - {name: corp, url: https://login.example.com, audience: berth";
  CHECK_EQ(mistake_in(corp + "}\n"), "");
  CHECK(mentions(mistake_in(corp + ", claims: x}\n"), "issuers.yaml:2:"));
  CHECK(mentions(mistake_in("issuers:\n  - {name: corp, url: http://login.example.com, audience: berth}\n"),
                 "use https://"));
  CHECK(mentions(mistake_in("issuers:\n  - {name: corp, url: https://login.example.com}\n"), "needs an audience"));
  CHECK(mentions(mistake_in("issuers:\n  - {name: spiffe, url: https://x, audience: berth}\n"), "reserved"));
  CHECK(mentions(mistake_in("issuers:\n  - {name: 'a:b', url: https://x, audience: berth}\n"), "letters, digits"));
  CHECK(mentions(mistake_in(corp + "}\n  - {name: corp, url: https://x, audience: y}\n"), "already"));
  CHECK(mentions(mistake_in(corp + ", clock_skew: 1h}\n"), "clock_skew"));
  CHECK(mentions(mistake_in(corp + ", keep: 30d}\n"), "keep"));
  const std::string page = ", page: {client_id: berth, url: https://berth.example.com}";
  CHECK_EQ(mistake_in(corp + page + "}\n  - {name: lab, url: https://x, audience: y" + page + "}\n"), "");
  CHECK(
      mentions(mistake_in(corp + page + "}\n  - {name: lab, url: https://x, audience: y, page: {client_id: berth}}\n"),
               "issuers.yaml:3:5: issuers[1]: page.url is the address of this server"));
}

// The file belongs to root where the tests run as root, and to the user who runs them elsewhere.
TEST_CASE("issuers: the secret of a client is read by the server alone, and is known to no other user") {
  const std::string path = "/tmp/berth-page-secret-" + std::to_string(::getpid());
  const std::string text =
      "issuers:\n  - {name: corp, url: https://x, audience: berth, page: {client_id: berth, "
      "client_secret_file: " +
      path + "}}\n";
  CHECK(mentions(mistake_in(text), "cannot read " + path));
  CHECK(check_issuers(*document::parse(text, "issuers.yaml")).value);  // the file is on the server
  std::ofstream(path) << "s3cret\n";
  ::chmod(path.c_str(), 0600);
  const auto read = read_issuers(text, "issuers.yaml");
  REQUIRE(read);
  CHECK_EQ(read->front().page.secret, "s3cret");
  ::chmod(path.c_str(), 0440);  // as Kubernetes mounts a Secret, whose files are root's
  CHECK_EQ(mistake_in(text).empty(), ::geteuid() == 0);
  ::chmod(path.c_str(), 0444);
  CHECK(mentions(mistake_in(text), "others may read it"));
  ::unlink(path.c_str());
}

TEST_CASE("issuers: http is for this machine alone") {
  for (const char* good : {"https://x", "http://127.0.0.1:1/a", "http://localhost", "http://[::1]:80/x"})
    CHECK_EQ(flaw_of_issuer_url(good), "");
  for (const char* bad : {"http://127.0.0.1.example.com", "http://localhost.example.com", "ftp://x", "https://",
                          "https://a@b", "https://x?y", "https://x#y", "file:///etc/passwd", "http://[::2]", "x"})
    CHECK_MESSAGE(flaw_of_issuer_url(bad) != "", bad);
}

}  // namespace
}  // namespace berth::identity
