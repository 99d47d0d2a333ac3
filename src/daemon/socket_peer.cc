#include "daemon/socket_peer.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "executor/task_process.h"
#include "model/name.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace berth::daemon {
namespace {

constexpr std::size_t kMostNameBytes = 1 << 20;

// Names the process that connected for as long as it is open, so that another one with the same pid is not taken for
// it. Kernels before 6.5 give none; there it is opened by the pid, which might be reused already.
class PeerProcess {
 public:
  PeerProcess(int socket, pid_t pid) {
    socklen_t size = sizeof descriptor_;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor_, &size) == 0) return;
    descriptor_ = errno == ENOPROTOOPT ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1;
  }
  ~PeerProcess() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  bool is_there() const {
    return descriptor_ >= 0 && (::syscall(SYS_pidfd_send_signal, descriptor_, 0, nullptr, 0) == 0 || errno == EPERM);
  }

 private:
  int descriptor_ = -1;
};

// The login name; empty if the machine knows none.
std::string login_name(uid_t user) {
  std::vector<char> text(1024);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while ((error = ::getpwuid_r(user, &entry, text.data(), text.size(), &found)) == ERANGE) {
    if (text.size() >= kMostNameBytes) return {};
    text.resize(2 * text.size());
  }
  return error == 0 && found != nullptr ? entry.pw_name : "";
}

http::Peer nobody(std::string why) { return {.refusal = std::move(why)}; }

}  // namespace

http::Peer peer_of_socket(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 || credentials.pid <= 0)
    return nobody("the kernel does not say which process has connected to the socket");
  const PeerProcess process(socket, credentials.pid);
  const auto is_task = executor::belongs_to_task(credentials.pid);
  if (!process.is_there()) return nobody("the process that has connected to the socket has ended");
  if (!is_task)
    return nobody(
        "it cannot be told whether the process that has connected to the socket is of a task (is /proc mounted "
        "with hidepid?)");
  if (*is_task) return nobody("a process of a task is nobody on the Unix socket, whatever user it has");
  const bool is_admin = credentials.uid == 0 || credentials.uid == ::geteuid();
  std::string name = login_name(credentials.uid);
  if (name.empty() && is_admin) name = "uid-" + std::to_string(credentials.uid);
  if (!well_formed_name(name))
    return nobody("user " + std::to_string(credentials.uid) +
                  " has no login name on this machine that could be a "
                  "subject's name");
  http::Peer peer{.subject = "user:" + name, .user = name, .proof = http::kBySocket, .is_admin = is_admin};
  if (!is_admin && name == "admin")
    peer.user = peer.subject;  // jobs of `admin` are those of the token in the data directory
  return peer;
}

}  // namespace berth::daemon
