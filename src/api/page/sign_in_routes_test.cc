#include "api/page/sign_in_routes.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace berth::api {
namespace {

// One that nobody signs in by.
class NoSignIn : public SignIn {
 public:
  NoSignIn(bool secure, std::string port) : secure_(secure), port_(std::move(port)) {}
  std::vector<std::string> issuers() const override { return {}; }
  bool secure() const override { return secure_; }
  std::string port() const override { return port_; }
  void begin(const std::string&, std::function<void(Begun)>) override {}
  void finish(Answered, std::function<void(Finished)>) override {}
  std::optional<std::string> change_token(std::string_view) override { return std::nullopt; }
  bool end(std::string_view, std::string_view) override { return true; }

 private:
  bool secure_;
  std::string port_;
};

}  // namespace

TEST_CASE("cookies are this host's alone over https, and of one port by their names over http") {
  CHECK(session_cookie(NoSignIn(true, "443")) == "__Host-berth-session");
  CHECK(sign_in_cookie(NoSignIn(true, "443")) == "__Host-berth-sign-in");
  CHECK(session_cookie(NoSignIn(false, "6380")) == "berth-session-6380");
  CHECK(sign_in_cookie(NoSignIn(false, "6380")) == "berth-sign-in-6380");
  CHECK(session_cookie(NoSignIn(false, "6380")) != session_cookie(NoSignIn(false, "6381")));
}

}  // namespace berth::api
