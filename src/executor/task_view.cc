#include "executor/task_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <vector>

#include "executor/as_user.h"

namespace berth::executor {

namespace {

// A network file system that is away may never answer. The supervisor obeys no command meanwhile, so this is less than
// the time after which one that does not obey is killed (ExecutorOptions::obey_ms).
constexpr int kPatienceMs = 5'000;
constexpr std::size_t kMostSecretBytes = 1 << 20;  // of one file, as Kubernetes has it
constexpr const char* kStage = "/tmp";             // where the new root is put together; seen by nobody
constexpr const char* kOldRoot = ".berth-old-root";
constexpr const char* kOwnMounts = "berth";  // of the machine's root, not carried over
constexpr std::uint64_t kNoLinks = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

std::string because(int error_number) {
  if (error_number == ELOOP) return "a symbolic link is on the way, and none is followed";
  return std::generic_category().message(error_number);
}

// Returns true if a file server or a disk is the reason, and not the launch: another machine may do better.
bool is_of_machine(int error_number) {
  switch (error_number) {
    case EIO:
    case ESTALE:
    case ENOTCONN:
    case ETIMEDOUT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
      return true;
    default:
      return false;
  }
}

Error failed(const std::string& what) {
  return {is_of_machine(errno) ? ErrorCode::kUnavailable : ErrorCode::kIo, what + ": " + because(errno)};
}

std::string name_of(const TaskMount& mount) { return mount.name.empty() ? mount.target : "'" + mount.name + "'"; }
std::string name_of(const TaskSecrets& secrets) {
  return secrets.name.empty() ? secrets.target : "'" + secrets.name + "'";
}

Descriptor open_beneath(int directory, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<__u64>(flags | O_CLOEXEC);
  how.resolve = kNoLinks;
  return Descriptor(static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<Descriptor> make_tmpfs(const std::vector<std::pair<std::string, std::string>>& options, unsigned attributes) {
  const Descriptor context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context.is_open()) return failed("make a tmpfs");
  for (const auto& [name, value] : options) {
    if (::fsconfig(context.get(), FSCONFIG_SET_STRING, name.c_str(), value.c_str(), 0) != 0)
      return failed("make a tmpfs with " + name + "=" + value);
  }
  (void)!::fsconfig(context.get(), FSCONFIG_SET_FLAG, "noswap", nullptr, 0);  // since Linux 6.4
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return failed("make a tmpfs");
  Descriptor tree(::fsmount(context.get(), FSMOUNT_CLOEXEC, attributes));
  if (!tree.is_open()) return failed("make a tmpfs");
  return tree;
}

Result<void> set_attributes(const Descriptor& tree, std::uint64_t attributes) {
  mount_attr change{};
  change.attr_set = attributes;
  if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &change, sizeof change) != 0) return failed("set up a mount");
  return {};
}

Result<void> attach(const Descriptor& tree, int directory, const char* name) {
  const unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*name == '\0' ? MOVE_MOUNT_T_EMPTY_PATH : 0U);
  if (::move_mount(tree.get(), "", directory, name, flags) != 0) return failed("mount");
  return {};
}

Result<void> write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count <= 0) return failed("write");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

// Runs in a process of its own, which becomes part of the namespace that it makes.
class ViewBuilder {
 public:
  explicit ViewBuilder(const TaskLaunch& launch) : launch_(launch) {}

  Result<void> build() {
    if (launch_.user && ::setgroups(1, &launch_.user->gid) != 0) return failed("leave the groups of the server");
    if (::unshare(CLONE_NEWNS) != 0) return failed("make a mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return failed("make a mount namespace");
    if (auto made = change_root(); !made) return made;
    for (const TaskMount& mount : launch_.mounts) {
      if (auto added = add_volume(mount); !added) return prefixed("volume " + name_of(mount), added);
    }
    for (const TaskSecrets& secrets : launch_.secrets) {
      if (auto added = add_secrets(secrets); !added) return prefixed("secret " + name_of(secrets), added);
    }
    if (launch_.shm_mib > 0) {
      if (auto added = add_shm(); !added) return prefixed("/dev/shm", added);
    }
    const std::string old = "/" + std::string(kOldRoot);
    if (::umount2(old.c_str(), MNT_DETACH) != 0 || ::rmdir(old.c_str()) != 0) return failed("leave the old root");
    return set_attributes(root_, MOUNT_ATTR_RDONLY);
  }

 private:
  static Result<void> prefixed(const std::string& what, const Result<void>& result) {
    return Error{result.error().code, what + ": " + result.error().message};
  }

  Result<void> change_root() {
    auto made = make_tmpfs({{"size", "1m"}, {"mode", "0755"}}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (!made) return made.error();
    root_ = std::move(*made);
    if (auto attached = attach(root_, AT_FDCWD, kStage); !attached) return attached;
    if (::chdir(kStage) != 0 || ::mkdir(kOldRoot, 0700) != 0 || ::syscall(SYS_pivot_root, ".", kOldRoot) != 0 ||
        ::chdir("/") != 0)
      return failed("change the root");
    old_ = Descriptor(::open(kOldRoot, O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    if (!old_.is_open() || ::fstat(root_.get(), &status) != 0) return failed("change the root");
    own_device_ = status.st_dev;
    return carry_root_over();
  }

  Result<void> carry_root_over() {
    DIR* entries = ::opendir(("/" + std::string(kOldRoot)).c_str());
    if (entries == nullptr) return failed("read the root");
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(entries)) names.emplace_back(static_cast<const char*>(entry->d_name));
    ::closedir(entries);
    for (const std::string& name : names) {
      if (name == "." || name == ".." || name == kOwnMounts || name == kOldRoot) continue;
      if (auto carried = carry_over(name); !carried) return prefixed("/" + name, carried);
    }
    return {};
  }

  // Sockets, pipes and devices in the root are left out, and what cannot be looked at: a mount that is sick is none of
  // the task's, if it does not use it.
  Result<void> carry_over(const std::string& name) {
    struct stat status {};
    if (::fstatat(old_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return {};
    if (S_ISLNK(status.st_mode)) {
      std::array<char, PATH_MAX> target{};
      const ssize_t length = ::readlinkat(old_.get(), name.c_str(), target.data(), target.size() - 1);
      if (length < 0 || ::symlinkat(target.data(), root_.get(), name.c_str()) != 0) return failed("copy the link");
      return {};
    }
    if (S_ISDIR(status.st_mode)) {
      if (::mkdirat(root_.get(), name.c_str(), 0755) != 0) return failed("make it");
    } else if (S_ISREG(status.st_mode)) {
      const Descriptor file(::openat(root_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (!file.is_open()) return failed("make it");
    } else {
      return {};
    }
    const Descriptor tree(
        ::open_tree(old_.get(), name.c_str(),
                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT));
    if (!tree.is_open()) return failed("bind it");
    return attach(tree, root_.get(), name.c_str());
  }

  // Opens a directory or a file of the machine. `what` is for errors, which do not have its path.
  Result<Descriptor> open_source(const std::string& path, int flags, const std::string& what) {
    Descriptor source = open_beneath(old_.get(), path.substr(1), flags);
    if (!source.is_open()) return failed("open " + what + " on this machine");
    return source;
  }

  // Opens the place of a mount, and makes what is missing of it in the own root.
  Result<Descriptor> open_target(const std::string& path) {
    Descriptor at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    std::string way;
    for (const std::string& part : parts_of(path)) {
      way += "/" + part;
      Descriptor next = open_beneath(at.get(), part, O_PATH | O_DIRECTORY);
      struct stat status {};
      if (!next.is_open() && errno == ENOENT && ::fstat(at.get(), &status) == 0) {
        if (status.st_dev != own_device_)
          return Error{ErrorCode::kInvalid,
                       way +
                           " is not there on this machine, and berth makes no directory in the machine's own; have "
                           "it made, or mount below a directory that the machine's root does not have, such as /data"};
        if (::mkdirat(at.get(), part.c_str(), 0755) == 0) next = open_beneath(at.get(), part, O_PATH | O_DIRECTORY);
      }
      if (!next.is_open()) return failed("mount at " + way);
      at = std::move(next);
    }
    return at;
  }

  // Goes to the directory in the volume with the rights of the user, and makes what is missing. A directory of another
  // user is not entered: that user could have made it in advance, and would read and change what is saved there.
  Result<Descriptor> descend(Descriptor at, const std::string& path, bool is_written) {
    const AsUser as_user(launch_.user);
    std::string way;
    for (const std::string& part : parts_of(path)) {
      Descriptor next = open_beneath(at.get(), part, O_PATH | O_DIRECTORY);
      // Another task of the job may make it at the same time.
      if (!next.is_open() && errno == ENOENT && (::mkdirat(at.get(), part.c_str(), 0700) == 0 || errno == EEXIST))
        next = open_beneath(at.get(), part, O_PATH | O_DIRECTORY);
      if (!next.is_open()) return failed("its directory " + path + ": cannot enter or make '" + part + "'");
      way += (way.empty() ? "" : "/") + part;
      if (auto own = check_owner(next, way); !own) return own.error();
      at = std::move(next);
    }
    if (is_written && !way.empty() && !may_write(at))
      return failed("its directory " + path + ": the job's user cannot write to it");
    return at;
  }

  Result<void> check_owner(const Descriptor& directory, const std::string& path) const {
    struct stat status {};
    if (::fstat(directory.get(), &status) != 0) return failed("its directory " + path + ": look at it");
    if (!launch_.user || status.st_uid == launch_.user->uid || status.st_uid == 0) return {};
    return Error{ErrorCode::kInvalid, "its directory " + path + " belongs to uid " + std::to_string(status.st_uid) +
                                          ", not to the job's user; name another path"};
  }

  static bool may_write(const Descriptor& directory) {
    return ::syscall(SYS_faccessat2, directory.get(), "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
  }

  Result<void> add_volume(const TaskMount& mount) {
    auto source = open_source(mount.source, O_PATH | O_DIRECTORY, "its directory");
    if (!source) return source.error();
    auto wanted = descend(std::move(*source), mount.beneath, !mount.read_only);
    if (!wanted) return wanted.error();
    const Descriptor tree(::open_tree(wanted->get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH));
    if (!tree.is_open()) return failed("bind it");
    const std::uint64_t mode = mount.read_only ? MOUNT_ATTR_RDONLY : 0;
    if (auto set = set_attributes(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | mode); !set) return set;
    return put(tree, mount.target);
  }

  Result<void> put(const Descriptor& tree, const std::string& path) {
    auto target = open_target(path);
    if (!target) return target.error();
    return attach(tree, target->get(), "");
  }

  Result<void> add_secrets(const TaskSecrets& secrets) {
    const std::string uid = std::to_string(launch_.user ? launch_.user->uid : ::geteuid());
    const std::string gid = std::to_string(launch_.user ? launch_.user->gid : ::getegid());
    const std::string size = std::to_string((secrets.files.size() + 1) * (kMostSecretBytes + 65'536));
    auto tree = make_tmpfs({{"size", size}, {"mode", "0500"}, {"uid", uid}, {"gid", gid}},
                           MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (!tree) return tree.error();
    for (const auto& [name, source] : secrets.files) {
      if (auto copied = copy_secret(source, *tree, name); !copied) return copied;
    }
    if (auto set = set_attributes(*tree, MOUNT_ATTR_RDONLY); !set) return set;
    return put(*tree, secrets.target);
  }

  // The bytes are in this process alone, which ends.
  Result<void> copy_secret(const std::string& source, const Descriptor& directory, const std::string& name) {
    const std::string what = "the source of '" + name + "'";
    auto file = open_source(source, O_RDONLY | O_NOCTTY | O_NONBLOCK, what);
    if (!file) return file.error();
    struct stat status {};
    if (::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode))
      return Error{ErrorCode::kInvalid, what + " is not a regular file"};
    std::string bytes(kMostSecretBytes + 1, '\0');
    std::size_t size = 0;
    for (ssize_t count = 1; count > 0 && size < bytes.size(); size += static_cast<std::size_t>(count)) {
      count = ::read(file->get(), bytes.data() + size, bytes.size() - size);
      if (count < 0) return failed("read " + what);
    }
    if (size > kMostSecretBytes) return Error{ErrorCode::kInvalid, what + " is larger than 1 MiB"};
    const Descriptor copy(
        ::openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
    if (!copy.is_open()) return failed("write " + name);
    if (auto written = write_all(copy.get(), std::string_view(bytes).substr(0, size)); !written) return written;
    if (launch_.user && ::fchown(copy.get(), launch_.user->uid, launch_.user->gid) != 0) return failed("give " + name);
    return {};
  }

  Result<void> add_shm() {
    auto tree = make_tmpfs({{"size", std::to_string(launch_.shm_mib) + "m"}, {"mode", "1777"}},
                           MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (!tree) return tree.error();
    return put(*tree, "/dev/shm");
  }

  const TaskLaunch& launch_;
  Descriptor root_;
  Descriptor old_;
  dev_t own_device_ = 0;
};

// Closes all descriptors but these. A builder that hangs must not hold the lock of its supervisor, nor its pipes.
void keep_only(int one, int other) {
  const auto low = static_cast<unsigned>(std::min(one, other));
  const auto high = static_cast<unsigned>(std::max(one, other));
  if (low > 3) ::close_range(3, low - 1, 0);
  if (high > low + 1) ::close_range(low + 1, high - 1, 0);
  ::close_range(high + 1, ~0U, 0);
}

// Says how it went, and stays until the namespace has been taken up.
[[noreturn]] void run_builder(const TaskLaunch& launch, int said, int held) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  keep_only(said, held);
  ::umask(0);
  const auto built = ViewBuilder(launch).build();
  std::string word = "+";
  if (!built)
    word = (built.error().code == ErrorCode::kUnavailable ? "?" : "-") + built.error().message.substr(0, 2000);
  (void)!::write(said, word.data(), word.size());
  char ignored = 0;
  if (built) (void)!::read(held, &ignored, 1);
  ::_exit(0);
}

struct Ends {
  Descriptor read_end;
  Descriptor write_end;
};

Ends open_ends() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Returns what the builder says; "" if it says nothing for long, or dies.
std::string hear(int said) {
  pollfd waited{said, POLLIN, 0};
  std::array<char, 4096> bytes{};
  int ready = 0;
  do {
    ready = ::poll(&waited, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  const ssize_t count = ready > 0 ? ::read(said, bytes.data(), bytes.size()) : 0;
  return count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : std::string();
}

Result<TaskView> take_up(const TaskLaunch& launch, pid_t builder) {
  const std::string process = "/proc/" + std::to_string(builder);
  TaskView view;
  view.mounts = Descriptor(::open((process + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  if (!view.mounts.is_open()) return failed("take up the mount namespace");
  if (launch.checkpoint_mount.empty()) return view;
  const std::string place = process + "/root" + launch.checkpoint_mount;
  view.checkpoints = Descriptor(::open(place.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!view.checkpoints.is_open()) return failed("open its checkpoint directory");
  return view;
}

}  // namespace

bool needs_view(const TaskLaunch& launch) {
  return !launch.mounts.empty() || !launch.secrets.empty() || launch.shm_mib > 0;
}

Result<TaskView> make_task_view(const TaskLaunch& launch) {
  Ends said = open_ends();
  Ends held = open_ends();
  if (!said.read_end.is_open() || !held.read_end.is_open()) return failed("open a pipe");
  const pid_t builder = ::fork();
  if (builder < 0) return failed("fork");
  if (builder == 0) run_builder(launch, said.write_end.get(), held.read_end.get());
  said.write_end.reset();
  held.read_end.reset();
  const std::string word = hear(said.read_end.get());
  Result<TaskView> view =
      Error{ErrorCode::kUnavailable, "its volumes do not answer within " + std::to_string(kPatienceMs / 1000) + " s"};
  if (word == "+")
    view = take_up(launch, builder);
  else if (!word.empty())
    view = Error{word.front() == '?' ? ErrorCode::kUnavailable : ErrorCode::kInvalid, word.substr(1)};
  // A process that waits for a file server may not end for long: it is not waited for.
  ::kill(builder, SIGKILL);
  ::waitpid(builder, nullptr, word.empty() ? WNOHANG : 0);
  return view;
}

}  // namespace berth::executor
