#pragma once
// Which server, and by what credentials. The flag wins over the environment, the environment over the default:
//   server       --server, $BERTH_SERVER, the first socket below that a server listens on, http://127.0.0.1:6380
//   token        --token-file, $BERTH_TOKEN_FILE, $BERTH_TOKEN, ~/.local/state/berth/token (under $XDG_STATE_HOME if
//                set); the last not for a Unix socket, where the login name says who asks
//   authorities  --ca, $BERTH_CA, those of the system
//   certificate  --cert, $BERTH_CERT; --cert-key, $BERTH_KEY, the file of the certificate
// Sockets: ~/.local/state/berth/berth.sock, /run/berth/berth.sock, /var/lib/berth/berth.sock.

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/client/client.h"
#include "cli/options.h"

namespace berth::cli {

inline constexpr const char* kDefaultServer = "http://127.0.0.1:6380";

// The value of an environment variable; empty when it is not set.
using Environment = std::function<std::string(const std::string&)>;
std::string process_environment(const std::string& name);

// A token file that was named and cannot be read is an error; a default one that is not there is no token.
Result<client::ClientOptions> find_server(const ConnectionOptions& options, const Environment& environment);

// The whole content of a file; "-" is standard input. At most `limit` bytes.
Result<std::string> read_file(const std::string& path, std::size_t limit);

}  // namespace berth::cli
