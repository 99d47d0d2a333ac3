#pragma once
// This terminal, or what is piped into this program, joined to a shell of the server until the shell ends.

#include <string>

#include "base/result.h"
#include "cli/client/web_socket_link.h"
#include "cli/session.h"
#include "model/shell_message.h"

namespace berth::cli {

struct ShellLineOptions {
  bool input = false;     // what is read from standard input goes to the shell
  bool terminal = false;  // standard input is a terminal, which gives all keys to the shell
};

// Returns the size of the terminal that standard input is, or 80 by 24.
WindowSize window_size_here();

// Returns the exit code of the shell. The settings of the terminal are as before. Error: the shell did not start, or
// the connection was lost.
Result<int> follow_shell(client::WebSocketLink& line, const ShellLineOptions& options, Session& session);

}  // namespace berth::cli
