#pragma once
// Who has connected to the Unix socket, as the kernel says: the user that its process had then. Root and the server's
// own user are admins there, which is the way back after a lock-out. A process of a task is nobody, whatever its user,
// so that a task which runs as the server's user is no admin by it; it may bring a token.

#include "api/http/peer.h"

namespace berth::daemon {

// May wait for the directory service of the users' names.
http::Peer peer_of_socket(int socket);

}  // namespace berth::daemon
