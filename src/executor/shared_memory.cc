#include "executor/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "executor/descriptor.h"
#include "executor/process.h"
#include "executor/tree_walk.h"

namespace berth::executor {

namespace {

// The directory is everybody's, with the sticky bit: what lies in it can be replaced by its owner alone.
void remove_files(const char* directory, uid_t uid) {
  const Descriptor shared(::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = shared.is_open() ? ::opendir(directory) : nullptr;
  if (entries == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries)) names.emplace_back(static_cast<const char*>(entry->d_name));
  ::closedir(entries);
  for (const std::string& name : names) {
    struct stat status {};
    if (name == "." || name == "..") continue;
    if (::fstatat(shared.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_uid != uid) continue;
    if (S_ISDIR(status.st_mode))
      (void)remove_tree(std::string(directory) + "/" + name).has_value();
    else
      ::unlinkat(shared.get(), name.c_str(), 0);
  }
}

void remove_segments(uid_t uid) {
  shmid_ds info{};
  const int highest = ::shmctl(0, SHM_INFO, &info);
  for (int index = 0; index <= highest; ++index) {
    shmid_ds one{};
    const int id = ::shmctl(index, SHM_STAT, &one);
    if (id >= 0 && one.shm_perm.uid == uid) ::shmctl(id, IPC_RMID, nullptr);
  }
}

void remove_semaphores(uid_t uid) {
  seminfo info{};
  const int highest = ::semctl(0, 0, SEM_INFO, &info);
  for (int index = 0; index <= highest; ++index) {
    semid_ds one{};
    const int id = ::semctl(index, 0, SEM_STAT, &one);
    if (id >= 0 && one.sem_perm.uid == uid) ::semctl(id, 0, IPC_RMID);
  }
}

void remove_messages(uid_t uid) {
  msqid_ds info{};
  const int highest = ::msgctl(0, MSG_INFO, &info);
  for (int index = 0; index <= highest; ++index) {
    msqid_ds one{};
    const int id = ::msgctl(index, MSG_STAT, &one);
    if (id >= 0 && one.msg_perm.uid == uid) ::msgctl(id, IPC_RMID, nullptr);
  }
}

}  // namespace

bool has_processes(uid_t uid) {
  for (const ProcessSeen& process : see_all_processes()) {
    struct stat status {};
    const std::string entry = "/proc/" + std::to_string(process.pid);
    const bool is_alive = process.state != 'Z' && process.state != 'X';
    if (is_alive && ::stat(entry.c_str(), &status) == 0 && status.st_uid == uid) return true;
  }
  return false;
}

void remove_shared_memory(uid_t uid) {
  for (const char* directory : {"/dev/shm", "/dev/mqueue"}) remove_files(directory, uid);
  remove_segments(uid);
  remove_semaphores(uid);
  remove_messages(uid);
}

}  // namespace berth::executor
