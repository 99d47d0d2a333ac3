#pragma once
// Which server, and by what credentials. The flag wins over the environment, the environment over the default:
//   server       --server, $BERTH_SERVER, the context (--context, else the current one; login/contexts.h), the first
//                socket below that a server listens on, http://127.0.0.1:6380
//   token        --token-file, $BERTH_TOKEN_FILE, $BERTH_TOKEN, the context's if it is of this server,
//                ~/.local/state/berth/token (under $XDG_STATE_HOME if set); the last not for a Unix socket, where the
//                login name says who asks
//   authorities  --ca, $BERTH_CA, those of the system
//   certificate  --cert, $BERTH_CERT; --cert-key, $BERTH_KEY, the file of the certificate
// A token goes to http:// on this machine only if root, this user, the owner of the token's file or $BERTH_SERVER_USER
// (a name or uid) listens there. Sockets: ~/.local/state/berth/berth.sock, /run/berth/berth.sock,
// /var/lib/berth/berth.sock, /var/lib/berth-dev/berth.sock.

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/client/client.h"
#include "cli/login/contexts.h"
#include "cli/options.h"

namespace berth::cli {

inline constexpr const char* kDefaultServer = "http://127.0.0.1:6380";

// The value of an environment variable; empty when it is not set (Environment: login/contexts.h).
std::string process_environment(const std::string& name);

// A token file that was named and cannot be read is an error; a default one that is not there is no token.
// A context's token that has ended is renewed, unless `sign_in` is false: then no context's token is looked at.
Result<client::ClientOptions> find_server(const ConnectionOptions& options, const Environment& environment,
                                          bool sign_in = true);

// The whole content of a file; "-" is standard input. At most `limit` bytes.
Result<std::string> read_file(const std::string& path, std::size_t limit);

}  // namespace berth::cli
