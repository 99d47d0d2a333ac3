#pragma once
// Whether what is sent to an address could be read on the way there.

#include <string>

namespace berth::client {

// Returns true for http:// to a host that is not this machine (localhost, 127.0.0.0/8, [::1]). The host is the one that
// libcurl would connect to.
bool crosses_network_unencrypted(const std::string& base_url);

// Returns true for http:// to a host that is this machine.
bool is_plain_on_this_machine(const std::string& base_url);

}  // namespace berth::client
