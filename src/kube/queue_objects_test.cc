#include "kube/queue_objects.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace berth::kube {
namespace {

// Plays the API server: it keeps what is written.
struct QueueServer {
  QueueObjects queues;
  std::map<std::string, boost::json::object> objects;
  std::vector<Request> seen;
  std::vector<std::string> warnings;
  Timestamp now{1'000'000};
  bool defined = true;
  bool may_list = true;
  bool may_write = true;

  int apply(const Request& request, std::string& body) {
    const std::string prefix = "/apis/berth.dev/v1alpha1/queues";
    REQUIRE(request.path.starts_with(prefix));
    if (!defined) return 404;
    if (request.method == Method::kGet ? !may_list : !may_write) {
      body = R"({"message":"no right to patch"})";
      return 403;
    }
    if (request.method == Method::kGet) {
      boost::json::array items;
      for (const auto& [name, object] : objects) items.emplace_back(object);
      body = boost::json::serialize(boost::json::object{{"items", items}});
      return 200;
    }
    const std::string name = request.path.substr(prefix.size() + 1, request.path.find('?') - prefix.size() - 1);
    if (request.method == Method::kDelete) return objects.erase(name) == 1 ? 200 : 404;
    objects[name] = boost::json::parse(request.body).as_object();
    body = request.body;
    return 200;
  }
  void round(const std::vector<QueueSummary>& all) {
    queues.show(all, now);
    for (std::vector<Request> sent = queues.take(); !sent.empty(); sent = queues.take()) {
      for (const Request& request : sent) {
        seen.push_back(request);
        std::string body;
        const int status = apply(request, body);
        queues.answered(request.id, status, body, now);
      }
    }
    for (std::string& one : queues.take_warnings()) warnings.push_back(std::move(one));
    now = now + 15'000;
  }
  std::size_t writes() const {
    return static_cast<std::size_t>(
        std::count_if(seen.begin(), seen.end(), [](const Request& one) { return one.method == Method::kPatch; }));
  }
};

QueueSummary queue_using(const std::string& path, std::int64_t used_milli = 0) {
  QueueSummary one;
  one.path = path;
  one.used_milli = used_milli;
  return one;
}

TEST_CASE("a queue is an object of the name of its path, and no two have one name") {
  CHECK_EQ(queue_object_name("research/nlp"), "research.nlp");
  CHECK_EQ(queue_object_name("a"), "a");
  CHECK(queue_object_name("a.b").starts_with("a.b-"));
  CHECK(queue_object_name("Vision_2").starts_with("vision-2-"));
  CHECK_NE(queue_object_name("a/b"), queue_object_name("a.b"));
  CHECK_NE(queue_object_name("A"), queue_object_name("a"));
  CHECK_LE(queue_object_name(std::string(2000, 'x')).size(), 253);
  CHECK_NE(queue_object_name(std::string(2000, 'x')), queue_object_name(std::string(2001, 'x')));
}

TEST_CASE("an object is written when it differs, and not again") {
  QueueServer server;
  server.round({queue_using("a"), queue_using("a/b", 2500)});
  REQUIRE_EQ(server.objects.size(), 2);
  CHECK_EQ(server.objects.at("a.b").at("status").at("usedGPUs").as_string(), "2.5");
  CHECK_EQ(server.objects.at("a.b").at("spec").at("parent").as_string(), "a");
  CHECK_EQ(server.writes(), 2);
  server.round({queue_using("a"), queue_using("a/b", 2500)});
  CHECK_EQ(server.writes(), 2);
  server.round({queue_using("a"), queue_using("a/b", 3000)});
  CHECK_EQ(server.writes(), 3);
}

TEST_CASE("a round writes a bounded number, and the next goes on where it ended") {
  QueueServer server;
  std::vector<QueueSummary> many;
  for (int i = 0; i < 120; ++i) many.push_back(queue_using("q" + std::to_string(i), 1000));
  server.round(many);
  CHECK_EQ(server.objects.size(), 50);
  server.round(many);
  server.round(many);
  CHECK_EQ(server.objects.size(), 120);
  CHECK_EQ(server.writes(), 120);
}

TEST_CASE("an object that somebody changed is told and written over; one of a queue that is gone is deleted") {
  QueueServer server;
  server.round({queue_using("a"), queue_using("b")});
  server.objects["a"]["spec"].as_object()["weight"] = 99;
  server.objects["mine"] = boost::json::parse(R"({"metadata":{"name":"mine"},"spec":{}})").as_object();
  for (int i = 0; i < 5; ++i) server.round({queue_using("a")});
  CHECK_EQ(server.objects.at("a").at("spec").at("weight").as_int64(), 1);
  CHECK_FALSE(server.objects.contains("b"));
  CHECK(server.objects.contains("mine"));  // not berth's to delete
  CHECK(std::any_of(server.warnings.begin(), server.warnings.end(),
                    [](const std::string& one) { return one.starts_with("Queue a was changed"); }));
  CHECK(std::any_of(server.warnings.begin(), server.warnings.end(),
                    [](const std::string& one) { return one.starts_with("Queue mine is no queue"); }));
}

TEST_CASE("a change is told, too, of an object that an earlier server has written") {
  QueueServer before;
  before.round({queue_using("a")});
  QueueServer server;
  server.objects = before.objects;
  server.round({queue_using("a")});
  CHECK_EQ(server.writes(), 0);
  server.objects["a"]["spec"].as_object()["weight"] = 99;
  for (int i = 0; i < 5; ++i) server.round({queue_using("a")});
  REQUIRE_EQ(server.warnings.size(), 1);
  CHECK(server.warnings.front().starts_with("Queue a was changed"));
  CHECK_EQ(server.objects.at("a").at("spec").at("weight").as_int64(), 1);
}

TEST_CASE("without the definition nothing is written, and it is looked for again after a while") {
  QueueServer server;
  server.defined = false;
  for (int i = 0; i < 10; ++i) server.round({queue_using("a")});
  CHECK_EQ(server.seen.size(), 1);
  server.defined = true;
  for (int i = 0; i < 20; ++i) server.round({queue_using("a")});
  CHECK_EQ(server.objects.size(), 1);
}

TEST_CASE("without the right to write it is told once, and tried again after a while") {
  QueueServer server;
  server.may_write = false;
  for (int i = 0; i < 10; ++i) server.round({queue_using("a"), queue_using("b"), queue_using("c")});
  CHECK_EQ(server.writes(), 3);
  REQUIRE_EQ(server.warnings.size(), 1);
  CHECK_EQ(server.warnings.front(), "queues are not shown as objects: no right to patch");
  server.may_write = true;
  for (int i = 0; i < 20; ++i) server.round({queue_using("a")});
  CHECK_EQ(server.objects.size(), 1);
}

TEST_CASE("without the right to list it is told once, and tried again after a while") {
  QueueServer server;
  server.may_list = false;
  for (int i = 0; i < 10; ++i) server.round({queue_using("a")});
  CHECK_EQ(server.seen.size(), 1);
  CHECK_EQ(server.warnings.size(), 1);
  server.may_list = true;
  for (int i = 0; i < 20; ++i) server.round({queue_using("a")});
  CHECK_EQ(server.objects.size(), 1);
}

TEST_CASE("a request without an answer is made again, and what others wrote breaks nothing") {
  QueueServer server;
  server.objects["odd"] = boost::json::parse(R"({"metadata":{"name":"odd"},"spec":[1],"status":"x"})").as_object();
  server.queues.show({queue_using("a")}, server.now);
  for (const Request& request : server.queues.take()) server.queues.answered(request.id, 0, {}, server.now);
  CHECK(server.objects.contains("odd"));
  server.now = server.now + Waits().list_queues_ms;
  server.round({queue_using("a")});
  CHECK(server.objects.contains("a"));
}

}  // namespace
}  // namespace berth::kube
