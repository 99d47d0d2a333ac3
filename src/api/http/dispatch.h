#pragma once
// What the head of a request decides before a byte of the body is read: which route serves it and who asks, or the
// answer that refuses it. So nobody without a token can make the server read a body. Pure.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/authenticator.h"
#include "api/http/gate.h"
#include "api/http/message.h"
#include "api/http/router.h"

namespace berth::http {

struct Head {
  std::string_view method;
  std::string_view target;
  std::vector<Header> headers;  // names in lower case
  bool has_body = false;
  std::string fresh_id = {};  // the id of the request, unless it brings one
};

struct Admitted {
  const Route* route;
  Request request;  // without its body
  bool expects_continue = false;
};

// Who asks is not known yet. Calls back once when it is time to ask again with the same head.
struct Waiting {
  std::function<void(std::function<void()>)> until_known;
};

// The answer (401) to a request without a valid proof of its subject. `refusal`: what is wrong with its token.
Response unauthenticated(const Peer& peer, std::string_view refusal = {});

// The id of a request with this head: its X-Request-Id where that is at most 64 visible ASCII characters, else
// `fresh_id`.
std::string request_id_of(const Head& head);

// A Response is a refusal, or the whole answer (OPTIONS). `gate` is asked once for each head that is decided.
std::variant<Admitted, Response, Waiting> admit(Head head, const Router& router, const Authenticator& authenticator,
                                                const Peer& peer = {}, const Gate& gate = {});

}  // namespace berth::http
