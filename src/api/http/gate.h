#pragma once
// What watches over requests at their head: it asks clients to wait that ask too often. Called on I/O threads; must not
// block.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace berth::http {

struct Gate {
  // Counts a request of the subject; `address` (without its port) counts where nobody is proved, and then `subject` is
  // empty. Returns 0, or the milliseconds that it has to wait.
  std::function<std::int64_t(const std::string& subject, const std::string& address)> take = {};
};

// "10.2.0.7" of "10.2.0.7:40112", "2001:db8::" of "[2001:db8::17]:40112": of IPv6 the first 64 bits, since one client
// has all addresses below them.
std::string address_of(std::string_view peer);

}  // namespace berth::http
