#pragma once
// What a handler joins the WebSocket of its client to (relay.h).

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace berth::http {

struct RelayOffer {
  std::shared_ptr<const int> stream;  // a connected Unix socket; closed with its last holder
  std::string key;                    // Sec-WebSocket-Key of the request
  std::string protocol;               // the subprotocol that is agreed on
  // Told once, on an I/O thread, when it is over: the last message of the stream, or nothing.
  std::function<void(std::string_view last)> ended;
};

}  // namespace berth::http
