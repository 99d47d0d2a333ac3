#pragma once
// The subresource pods/exec of an API server: what it is asked, and the messages of its WebSocket. Each is a channel,
// one byte, and bytes (v5.channel.k8s.io). Its channels 0 to 4 are those of model/shell_message.h; what they hold
// differs.

#include <optional>
#include <string>
#include <string_view>

#include "model/shell_message.h"

namespace berth::kube {

// The newest first. With v4, of API servers before 1.30, the end of the input cannot be told.
inline constexpr std::string_view kExecProtocol = "v5.channel.k8s.io";
inline constexpr std::string_view kOlderExecProtocol = "v4.channel.k8s.io";

// Returns the path and query of a command in a container. A terminal has one stream of output.
std::string exec_path(std::string_view space, std::string_view pod, std::string_view container,
                      const ShellBegin& begin);

// Returns the message for the API server that a message of the user becomes; nothing: it has none for that, as for a
// signal, or the message is malformed.
std::optional<std::string> exec_message(std::string_view shell_message);

// Returns how the command has ended, from the Status of channel 3. There is a code if the command has ended by itself,
// and 127 or 126 if there is no such program or it may not be executed. Otherwise the message says what the API server
// says.
ShellEnd end_of_exec(std::string_view status);

}  // namespace berth::kube
