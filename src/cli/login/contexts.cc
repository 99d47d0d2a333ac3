#include "cli/login/contexts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "model/json_fields.h"
#include "model/strict_json.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostBytes = 1024 * 1024;

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

Error file_error(const std::string& path) { return {ErrorCode::kIo, path + ": " + std::strerror(errno)}; }

Result<std::string> read_private(const std::string& path, const Descriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return file_error(path);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return Error{ErrorCode::kDenied, path +
                                         " holds tokens, so it must be a plain file of yours that nobody else may "
                                         "read: chmod 600, or remove it and run `berth login` again"};
  }
  std::string text(kMostBytes, '\0');
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  if (count < 0) return file_error(path);
  text.resize(static_cast<std::size_t>(count));
  return text;
}

// Written whole under another name and renamed, so that half a file is never seen.
Result<void> write_private(const std::string& path, const std::string& text) {
  const std::string draft = path + "." + std::to_string(::getpid()) + ".new";
  {
    ::unlink(draft.c_str());
    const Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open()) return file_error(draft);
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fsync(file.get()) != 0)
      return file_error(draft);
  }
  if (::rename(draft.c_str(), path.c_str()) != 0) return file_error(path);
  return {};
}

}  // namespace

Context* Contexts::find(const std::string& name) {
  const auto found =
      std::find_if(contexts.begin(), contexts.end(), [&](const Context& one) { return one.name == name; });
  return found == contexts.end() ? nullptr : &*found;
}

Context& Contexts::set(Context context) {
  if (Context* known = find(context.name)) return *known = std::move(context);
  contexts.push_back(std::move(context));
  return contexts.back();
}

std::string contexts_path(const Environment& environment) {
  const std::string config = environment("XDG_CONFIG_HOME");
  return (config.empty() ? environment("HOME") + "/.config" : config) + "/berth/credentials.json";
}

Result<Contexts> load_contexts(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) return errno == ENOENT || errno == ENOTDIR ? Result<Contexts>(Contexts()) : file_error(path);
  const auto text = read_private(path, file);
  if (!text) return text.error();
  const auto value = decode_json(*text);
  if (!value) return invalid(path + ": " + value.error().message);
  auto contexts = from_json<Contexts>(*value);
  if (!contexts) return invalid(path + ": " + contexts.error().message);
  return contexts;
}

Result<void> change_contexts(const std::string& path, const std::function<Result<void>(Contexts&)>& change) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (std::filesystem::create_directories(folder, failed)) ::chmod(folder.c_str(), 0700);
  if (failed) return Error{ErrorCode::kIo, folder.string() + ": " + failed.message()};
  const std::string lock_file = path + ".lock";
  const Descriptor lock(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open() || ::flock(lock.get(), LOCK_EX) != 0) return file_error(lock_file);
  auto contexts = load_contexts(path);
  if (!contexts) return contexts.error();
  if (auto changed = change(*contexts); !changed) return changed;
  return write_private(path, boost::json::serialize(to_json(*contexts)) + "\n");
}

}  // namespace berth::cli
