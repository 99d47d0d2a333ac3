#include "backend/kubernetes/watcher.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend/kubernetes/fake_api_server.h"

namespace berth::backend {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPods = "/api/v1/pods";
// Far more than a loaded machine takes; no passing test waits for it.
constexpr auto kLong = 60s;

boost::json::object pod(const std::string& name) {
  return {{"metadata", boost::json::object{{"namespace", "team"}, {"name", name}}}};
}

// Keeps what a watcher reports as kube::Cluster does: the names of the objects that there are.
class Mirror final : public WatchReceiver {
 public:
  void begin_list(kube::Kind) override {
    ++lists_begun;
    marked.clear();
    listing = true;
  }
  void observe(kube::Kind, const boost::json::object& object, bool deleted) override {
    const std::string name(object.at("metadata").at("name").as_string());
    if (deleted) {
      names.erase(name);
      return;
    }
    ++observed;
    names.insert(name);
    if (listing) marked.insert(name);
  }
  void end_list(kube::Kind) override {
    ++lists_ended;
    listing = false;
    std::erase_if(names, [this](const std::string& name) { return !marked.contains(name); });
  }
  void denied(kube::Kind) override { ++denials; }
  void passed_over(std::string what) override { passed.push_back(std::move(what)); }
  void works(const kube::Resource&) override { ++worked; }
  void failed(const kube::Resource&, const HttpAnswer& answer) override { failures.push_back(answer.status); }

  std::set<std::string> names;
  std::set<std::string> marked;
  bool listing = false;
  int lists_begun = 0;
  int lists_ended = 0;
  int observed = 0;
  int worked = 0;
  int denials = 0;
  std::vector<std::string> passed;
  std::vector<int> failures;
};

WatchOptions quick() {
  WatchOptions options;
  options.page = 3;
  options.silence = kLong;
  options.first_pause = 5ms;
  options.longest_pause = 40ms;
  options.absent_pause = 20ms;
  return options;
}

Credentials credentials_of(const FakeApiServer& server) {
  Credentials credentials;
  credentials.server = server.url();
  return credentials;
}

struct Watched {
  explicit Watched(WatchOptions options = quick(), bool optional = false)
      : http(credentials_of(server)),
        watcher({kube::Kind::kPod, kPods, "fieldSelector=status.phase!%3DFailed", optional}, options, http, mirror, 1) {
  }
  // Lets the watcher work until this holds.
  template <class Condition>
  bool until(Condition&& holds) {
    const auto end = Clock::now() + kLong;
    while (!holds()) {
      if (Clock::now() > end) return false;
      watcher.tick(Clock::now());
      http.run(Clock::now() + 2ms);
    }
    return true;
  }
  bool until_watching() {
    return until([this] { return watcher.was_listed() && server.watches(kPods) == 1; });
  }

  FakeApiServer server;
  Http http;
  Mirror mirror;
  Watcher watcher;
};

}  // namespace

TEST_CASE("a kind that may not be read is an empty list that says so, until it may be") {
  FakeApiServer server;
  server.put(kPods, pod("a"));
  server.fail(std::string("GET ") + kPods, 403, 1);
  Http http(credentials_of(server));
  Mirror mirror;
  WatchOptions options = quick();
  options.extra_pause = 20ms;
  Watcher watcher({kube::Kind::kPod, kPods, "", true, true}, options, http, mirror, 1);
  const auto end = Clock::now() + kLong;
  bool denied_first = false;
  while (mirror.names.empty() && Clock::now() < end) {
    watcher.tick(Clock::now());
    http.run(Clock::now() + 2ms);
    denied_first = denied_first || (mirror.denials == 1 && mirror.lists_ended == 1 && watcher.was_listed());
  }
  CHECK(denied_first);
  CHECK(mirror.names == std::set<std::string>{"a"});
  CHECK(mirror.denials == 1);
}

TEST_CASE("a kind that could be read is gone only when it has been denied for a while") {
  for (const bool for_ever : {false, true}) {
    CAPTURE(for_ever);
    FakeApiServer server;
    server.put(kPods, pod("a"));
    Http http(credentials_of(server));
    Mirror mirror;
    Watcher watcher({kube::Kind::kPod, kPods, "", true, true}, quick(), http, mirror, 1);
    const auto until = [&](auto&& holds) {
      const auto end = Clock::now() + kLong;
      while (!holds() && Clock::now() < end) {
        watcher.tick(Clock::now());
        http.run(Clock::now() + 2ms);
      }
      return holds();
    };
    REQUIRE(until([&] { return server.watches(kPods) == 1; }));
    server.fail("GET /api/v1/pods?limit", 403, for_ever ? 1000 : 4);
    server.cut_watches();
    server.put(kPods, pod("b"));  // seen by a list alone
    server.compact();
    REQUIRE(until([&] { return for_ever ? mirror.denials == 1 : mirror.names.contains("b"); }));
    CHECK(mirror.denials == (for_ever ? 1 : 0));
    CHECK(mirror.names.empty() == for_ever);
    CHECK(mirror.names.contains("a") == !for_ever);
    CHECK(std::count(mirror.failures.begin(), mirror.failures.end(), 403) == (for_ever ? 8 : 4));
  }
}

TEST_CASE("a kind is listed in pages and watched from the version of the list on") {
  Watched all;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) all.server.put(kPods, pod(name));
  REQUIRE(all.until_watching());
  CHECK(all.mirror.names.size() == 7);
  CHECK(all.mirror.lists_begun == 1);
  CHECK(all.mirror.lists_ended == 1);
  const auto lists = all.server.requests("GET /api/v1/pods?limit=3");
  REQUIRE(lists.size() == 3);
  CHECK(lists[0].ends_with("&fieldSelector=status.phase!%3DFailed"));
  CHECK(lists[1].find("&continue=107%2F3") != std::string::npos);
  const auto watches = all.server.requests("GET /api/v1/pods?watch=1");
  REQUIRE(watches.size() == 1);
  CHECK(watches[0].find("allowWatchBookmarks=true&resourceVersion=107&timeoutSeconds=") != std::string::npos);
  CHECK(watches[0].ends_with("&fieldSelector=status.phase!%3DFailed"));
  all.server.put(kPods, pod("h"));
  all.server.remove(kPods, "team", "a");
  REQUIRE(all.until([&] { return all.mirror.names.contains("h") && !all.mirror.names.contains("a"); }));
  CHECK(all.mirror.observed == 8);
}

TEST_CASE("a watch that is cut in the middle of a line is resumed from the last version, without a list") {
  Watched all;
  all.server.put(kPods, pod("a"));
  REQUIRE(all.until_watching());
  all.server.put(kPods, pod("b"));
  REQUIRE(all.until([&] { return all.mirror.names.contains("b"); }));
  all.server.bookmark(kPods);
  all.server.put("/api/v1/nodes", pod("n"));
  all.server.cut_watches();
  REQUIRE(all.until([&] { return all.server.requests("GET /api/v1/pods?watch=1").size() == 2; }));
  all.server.put(kPods, pod("c"));
  REQUIRE(all.until([&] { return all.mirror.names.contains("c"); }));
  // 101: a, 102: b, 103: the bookmark.
  CHECK(all.server.requests("GET /api/v1/pods?watch=1")[1].find("resourceVersion=103&") != std::string::npos);
  CHECK(all.mirror.lists_begun == 1);
  CHECK(all.mirror.observed == 3);
  CHECK(all.mirror.passed.empty());
  CHECK(all.mirror.failures.empty());
}

TEST_CASE("410 in a watch leads to a new list, in which what is gone is missing") {
  Watched all;
  all.server.put(kPods, pod("a"));
  all.server.put(kPods, pod("b"));
  REQUIRE(all.until_watching());
  all.server.fail("GET /api/v1/pods?watch=1", 500, 1);  // keeps it away while things happen
  all.server.cut_watches();
  REQUIRE(all.until([&] { return all.mirror.failures == std::vector<int>{500}; }));
  all.server.remove(kPods, "team", "a");
  all.server.put(kPods, pod("c"));
  all.server.compact();
  REQUIRE(all.until([&] { return all.mirror.lists_ended == 2; }));
  CHECK(all.mirror.names == std::set<std::string>{"b", "c"});
}

TEST_CASE("410 for a page begins the list anew") {
  Watched all;
  for (const char* name : {"a", "b", "c", "d"}) all.server.put(kPods, pod(name));
  all.server.fail("GET /api/v1/pods?limit=3&fieldSelector=status.phase!%3DFailed&continue=", 410, 1);
  REQUIRE(all.until_watching());
  CHECK(all.mirror.lists_begun == 2);
  CHECK(all.mirror.lists_ended == 1);
  CHECK(all.mirror.names.size() == 4);
}

TEST_CASE("a page that fails is asked for again, and not the whole list") {
  Watched all;
  for (const char* name : {"a", "b", "c", "d"}) all.server.put(kPods, pod(name));
  all.server.fail("GET /api/v1/pods?limit=3&fieldSelector=status.phase!%3DFailed&continue=", 503, 2);
  REQUIRE(all.until_watching());
  CHECK(all.mirror.lists_begun == 1);
  CHECK(all.mirror.failures == std::vector<int>{503, 503});
  CHECK(all.mirror.names.size() == 4);
}

TEST_CASE("the Retry-After of a 429 is obeyed") {
  Watched all;
  all.server.put(kPods, pod("a"));
  all.server.fail("GET /api/v1/pods", 429, 1, "Retry-After: 1");
  const auto begin = Clock::now();
  REQUIRE(all.until_watching());
  CHECK(Clock::now() - begin >= 1s);
}

TEST_CASE("a silent watch is given up; one that never said a byte leads to a new list") {
  WatchOptions options = quick();
  options.silence = 100ms;
  Watched all(options);
  all.server.put(kPods, pod("a"));
  REQUIRE(all.until([&] { return all.mirror.lists_ended == 3; }));
  CHECK(all.mirror.names == std::set<std::string>{"a"});
}

TEST_CASE("a slow list is given up and asked for again") {
  WatchOptions options = quick();
  options.list_timeout = 50ms;
  Watched all(options);
  all.server.put(kPods, pod("a"));
  all.server.delay("GET /api/v1/pods?limit", 10s, 1);
  REQUIRE(all.until_watching());
  CHECK(all.mirror.failures == std::vector<int>{0});
}

TEST_CASE("what is no object is named and passed over, and the watch goes on") {
  Watched all;
  all.server.put(kPods, pod("a"));
  REQUIRE(all.until_watching());
  all.server.send_raw(kPods,
                      "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"team\",\"name\":\"bad\"},}}\n");
  all.server.send_raw(kPods, "[1,2]\n{\"type\":\"ADDED\"}\n{\"type\":7,\"object\":{}}\n");
  all.server.send_raw(kPods, "{\"type\":\"NEW\",\"object\":{\"metadata\":{\"name\":\"x\"}}}\n");
  all.server.put(kPods, pod("b"));
  REQUIRE(all.until([&] { return all.mirror.names.contains("b"); }));
  CHECK(all.mirror.names == std::set<std::string>{"a", "b"});
  REQUIRE(all.mirror.passed.size() == 2);
  CHECK(all.mirror.passed[0].find("a change of /api/v1/pods was passed over: team/bad is no JSON") == 0);
  CHECK(all.mirror.passed[1].find("an object without a name is no object") != std::string::npos);
  CHECK(all.mirror.lists_begun == 1);
}

TEST_CASE("an optional kind that the server does not have is an empty list, until it has it") {
  Watched all(quick(), true);
  REQUIRE(all.until([&] { return all.mirror.lists_ended == 2; }));
  CHECK(all.watcher.was_listed());
  CHECK(all.mirror.failures.empty());
  all.server.put(kPods, pod("a"));
  REQUIRE(all.until([&] { return all.mirror.names.contains("a"); }));
}

TEST_CASE("another kind that the server does not have is a failure") {
  Watched all;
  REQUIRE(all.until([&] { return all.mirror.failures.size() == 2; }));
  CHECK(all.mirror.failures[0] == 404);
  CHECK(!all.watcher.was_listed());
}

TEST_CASE("failures are tried again after times that grow and are not equal") {
  Watched all;
  REQUIRE(all.until([&] { return all.mirror.failures.size() == 4; }));
  CHECK(all.watcher.due_at() - Clock::now() <= 40ms);
  CHECK(all.watcher.due_at() - Clock::now() > 10ms);  // at least half of 5 ms times eight
}

}  // namespace berth::backend
