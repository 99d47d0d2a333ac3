#pragma once
// Where a change came from: the request that asked for it. It is stored beside the first event of the change
// (EventRecord::by), so that the log says of each one who asked, and how that was proved. It has no secrets.

#include <string>

#include "base/fields.h"

namespace berth {

struct Origin {
  std::string subject;       // `user:corp:ada`, `token:ci`; empty: no request asked for it
  std::string proof = {};    // how it was authenticated: token, certificate, socket, session, issuer
  std::string address = {};  // of the client, without its port; "unix" on the Unix socket
  std::string request = {};  // the id of the request
  // What the event is about, where it has only an id: the queue of its job, the name of its node.
  std::string queue = {};
  std::string node = {};
  bool empty() const { return subject.empty(); }
  bool operator==(const Origin&) const = default;
  static constexpr auto fields() {
    return field_list(field("subject", &Origin::subject), field("proof", &Origin::proof),
                      field("address", &Origin::address), field("request", &Origin::request),
                      field_if_set("queue", &Origin::queue), field_if_set("node", &Origin::node));
  }
};

}  // namespace berth
