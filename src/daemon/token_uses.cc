#include "daemon/token_uses.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "model/strict_json.h"

namespace berth::daemon {
namespace {

constexpr auto kBetween = std::chrono::minutes(1);
constexpr std::size_t kMostBytes = 64U << 20U;

// A file that is not there, or that cannot be read, is none: what is lost is a date.
AccessTable::Uses read_uses(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  std::ostringstream text;
  text << file.rdbuf();
  const auto value = decode_json(text.str(), {.bytes = kMostBytes, .depth = 2});
  const boost::json::object* object = value ? value->if_object() : nullptr;
  if (object == nullptr) {
    spdlog::warn("{} cannot be read, so it is not known when tokens were last used", path);
    return {};
  }
  AccessTable::Uses uses;
  for (const auto& [digest, time] : *object) {
    const boost::json::string* text_of_time = time.if_string();
    const auto used =
        text_of_time == nullptr ? std::nullopt : from_iso8601({text_of_time->data(), text_of_time->size()});
    if (used) uses.emplace(std::string(digest), *used);
  }
  return uses;
}

}  // namespace

TokenUses::TokenUses(const std::string& data_dir, AccessTable& access)
    : path_(data_dir + "/token-uses.json"), access_(access) {
  access_.note_uses(read_uses(path_));
  saved_ = access_.uses();
  thread_ = std::thread([this] { run(); });
}

TokenUses::~TokenUses() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  thread_.join();
  save();
}

void TokenUses::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kBetween, [this] { return stopping_; })) {
    lock.unlock();
    save();
    lock.lock();
  }
}

// Written beside and renamed into place. It is not synced: a machine that crashes may lose it.
void TokenUses::save() {
  AccessTable::Uses uses = access_.uses();
  if (uses == saved_) return;
  boost::json::object object;
  for (const auto& [digest, time] : uses) object[digest] = to_iso8601(time);
  const std::string draft = path_ + ".new";
  std::ofstream file(draft, std::ios::binary | std::ios::trunc);
  ::chmod(draft.c_str(), 0600);
  file << boost::json::serialize(object) << "\n";
  file.close();
  if (!file || std::rename(draft.c_str(), path_.c_str()) != 0) {
    spdlog::warn("{} cannot be written; when tokens were last used is lost at the next restart", path_);
    return;
  }
  saved_ = std::move(uses);
}

}  // namespace berth::daemon
