#pragma once
// What watches over requests at their head: it asks clients to wait that ask too often, and is told of those
// that prove nobody, and of those that have signed in. Called on I/O threads; must not
// block.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "policy/authorize.h"

namespace berth::http {

struct Gate {
  // Counts a request of the subject; `address` (without its port) counts where nobody is proved, and then `subject` is
  // empty. Returns 0, or the milliseconds that it has to wait.
  std::function<std::int64_t(const std::string& subject, const std::string& address)> take = {};
  // Is told of each request that was refused because nobody was proved, and of its address.
  std::function<void(const std::string& address)> unauthenticated = {};
  // Is told of each request of a subject that an identity provider proves: its session on the web page (empty: none),
  // and its address.
  std::function<void(const policy::Subject& subject, const std::string& session, const std::string& address)>
      signed_in = {};
};

// "10.2.0.7" of "10.2.0.7:40112", "2001:db8::" of "[2001:db8::17]:40112": of IPv6 the first 64 bits, since one client
// has all addresses below them.
std::string address_of(std::string_view peer);

}  // namespace berth::http
