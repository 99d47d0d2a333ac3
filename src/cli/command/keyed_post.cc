#include "cli/command/keyed_post.h"

#include <chrono>
#include <random>
#include <thread>

namespace berth::cli {
namespace {

constexpr int kTries = 3;

}  // namespace

std::string random_key() {
  std::random_device device;
  std::string key = "cli-";
  for (int i = 0; i < 32; ++i) key += "0123456789abcdef"[device() & 15U];
  return key;
}

Result<client::Reply> post_until_answered(const std::string& path, const std::string& body, const std::string& key,
                                          Session& session) {
  auto reply = session.server.post(path, body, key);
  for (int tried = 1; tried < kTries && !reply && reply.error().code == ErrorCode::kUnavailable; ++tried) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200 * tried));
    reply = session.server.post(path, body, key);
  }
  return reply;
}

}  // namespace berth::cli
