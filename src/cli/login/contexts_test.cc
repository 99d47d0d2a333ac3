#include "cli/login/contexts.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "cli/connection.h"

namespace berth::cli {
namespace {

// A home of its own; nothing of the real environment is seen.
class Home {
 public:
  Home() {
    char name[] = "/tmp/berth-contexts-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Home() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  Environment environment() const {
    return [home = path_](const std::string& name) { return name == "HOME" ? home : std::string(); };
  }
  std::string file() const { return contexts_path(environment()); }
  void put(const Context& context, bool current = true) const {
    REQUIRE(change_contexts(file(), [&](Contexts& contexts) -> Result<void> {
      contexts.set(context);
      if (current) contexts.current = context.name;
      return {};
    }));
  }

 private:
  std::string path_;
};

constexpr std::int64_t kFar = 4'000'000'000;  // a token that does not end soon

Context with_token(const std::string& name, const std::string& server) {
  Context context;
  context.name = name;
  context.server = server;
  context.token = "token-of-" + name;
  context.expires_s = kFar;
  return context;
}

TEST_CASE("contexts: what is written is read again, and only the user may read the file") {
  const Home home;
  CHECK(load_contexts(home.file())->contexts.empty());
  home.put(with_token("lab", "https://lab.example"));
  home.put(with_token("prod", "https://prod.example"), false);
  const auto known = load_contexts(home.file());
  REQUIRE(known);
  CHECK(known->current == "lab");
  REQUIRE(known->contexts.size() == 2);
  CHECK(known->contexts[1].token == "token-of-prod");
  struct stat status {};
  REQUIRE(::stat(home.file().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("contexts: a file that others may read, a link and one that is no JSON are refused with what to do") {
  const Home home;
  home.put(with_token("lab", "https://lab.example"));
  REQUIRE(::chmod(home.file().c_str(), 0640) == 0);
  const auto open = load_contexts(home.file());
  REQUIRE_FALSE(open);
  CHECK(open.error().code == ErrorCode::kDenied);
  CHECK(open.error().message.find("chmod 600") != std::string::npos);
  CHECK(open.error().message.find("token-of-lab") == std::string::npos);
  REQUIRE(::chmod(home.file().c_str(), 0600) == 0);
  std::filesystem::rename(home.file(), home.file() + ".real");
  std::filesystem::create_symlink(home.file() + ".real", home.file());
  CHECK_FALSE(load_contexts(home.file()));
  std::filesystem::remove(home.file());
  std::ofstream(home.file()) << "not json";
  REQUIRE(::chmod(home.file().c_str(), 0600) == 0);
  CHECK(load_contexts(home.file()).error().message.find(home.file()) != std::string::npos);
}

TEST_CASE("contexts: a change that fails leaves the file, and changes at once lose nothing") {
  const Home home;
  home.put(with_token("lab", "https://lab.example"));
  CHECK_FALSE(change_contexts(home.file(), [](Contexts& contexts) -> Result<void> {
    contexts.contexts.clear();
    return invalid("no");
  }));
  CHECK(load_contexts(home.file())->contexts.size() == 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&home, i] { home.put(with_token("c" + std::to_string(i), "https://h"), false); });
  for (std::thread& thread : threads) thread.join();
  CHECK(load_contexts(home.file())->contexts.size() == 9);
}

TEST_CASE(
    "contexts: the current one gives server and token; a named one goes before it; its token to no other server") {
  const Home home;
  home.put(with_token("lab", "https://lab.example"));
  home.put(with_token("prod", "https://prod.example"), false);
  CHECK(find_server({}, home.environment())->base_url == "https://lab.example");
  CHECK(find_server({}, home.environment())->token == "token-of-lab");
  CHECK(find_server({.context = "prod"}, home.environment())->token == "token-of-prod");
  CHECK(find_server({.server = "https://other.example"}, home.environment())->token != "token-of-lab");
  CHECK(find_server({.context = "none"}, home.environment()).error().code == ErrorCode::kNotFound);
}

TEST_CASE("contexts: no token is sent over http to another machine") {
  const Home home;
  home.put(with_token("lab", "http://lab.example:6380"));
  const auto refused = find_server({}, home.environment());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message.find("http://lab.example:6380") != std::string::npos);
  CHECK(refused.error().message.find("https://") != std::string::npos);
  CHECK(refused.error().message.find("token-of-lab") == std::string::npos);
  home.put(with_token("lab", "http://127.0.0.1:6380"));
  CHECK(find_server({}, home.environment())->token == "token-of-lab");
}

}  // namespace
}  // namespace berth::cli
