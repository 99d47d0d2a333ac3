#pragma once
// Signing in on the web page, by the server: GET /sign-in/session, /sign-in/begin, /sign-in/answer (the issuer sends
// the browser there), and POST /sign-in/out. They are the page's own, and no part of /openapi.json.
//
// No route redirects to an address of the request: only to the issuer's own, and to `/` of this server. Why a sign-in
// did not work is one of a few words; the server's log has the rest.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/router.h"

namespace berth::api {

// What the routes need of the server (daemon/sign_in_desk.h). For any thread; blocks none.
class SignIn {
 public:
  virtual ~SignIn() = default;

  // The names of the issuers by which people may sign in here.
  virtual std::vector<std::string> issuers() const = 0;
  // Cookies are sent over https alone.
  virtual bool secure() const = 0;
  // The port that browsers reach this server at.
  virtual std::string port() const = 0;

  struct Begun {
    std::string address;  // of the issuer
    std::string secret;   // that the browser keeps until the answer comes
    std::string failure;  // a word; empty: none
  };
  virtual void begin(const std::string& issuer, std::function<void(Begun)> done) = 0;

  // What the issuer answered by way of the browser, and what the browser kept.
  struct Answered {
    std::string secret;
    std::string state;
    std::string code;
    std::string issuer;  // `iss`
    std::string error;
  };
  struct Finished {
    std::string session;  // the secret of the new session
    std::string failure;
  };
  virtual void finish(Answered answered, std::function<void(Finished)> done) = 0;

  // What a change by the session must carry; nothing if there is no such session.
  virtual std::optional<std::string> change_token(std::string_view session) = 0;
  // Returns false if `change_token` is not that of the session.
  virtual bool end(std::string_view session, std::string_view change_token) = 0;
};

// The cookies' names. Over https a browser takes them from this very host alone (__Host-). Over http it sends them to
// every port of the host, so the name has the port: servers on two ports do not sign each other's users out.
std::string session_cookie(const SignIn& sign_in);
std::string sign_in_cookie(const SignIn& sign_in);

// `sign_in` must outlive the router.
void add_sign_in_routes(http::Router& router, SignIn& sign_in);

}  // namespace berth::api
