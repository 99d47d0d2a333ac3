#include "backend/kubernetes/object_stream.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace berth::backend;

namespace {

struct Got {
  std::vector<std::string> objects;
  std::vector<std::string> too_large;
  ObjectReceiver receiver() {
    return {[this](std::string_view text) { objects.emplace_back(text); },
            [this](std::string_view text) { too_large.emplace_back(text); }};
  }
};

}  // namespace

TEST_CASE("a list is cut into its items, wherever the bytes are split") {
  const std::string text =
      R"({"kind":"PodList","metadata":{"continue":"x","items":[1]},"items":[{"a":"]}\"{"}, {"b":[{"c":1}]},{}],"z":"items"})";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    Got got;
    ListSplitter splitter(got.receiver());
    for (std::size_t at = 0; at < text.size(); at += piece) splitter.feed(std::string_view(text).substr(at, piece));
    CAPTURE(piece);
    REQUIRE(got.objects.size() == 3);
    CHECK(got.objects[0] == R"({"a":"]}\"{"})");
    CHECK(got.objects[1] == R"({"b":[{"c":1}]})");
    CHECK(got.objects[2] == "{}");
    CHECK(splitter.envelope() ==
          R"({"kind":"PodList","metadata":{"continue":"x","items":[1]},"items":[],"z":"items"})");
  }
}

TEST_CASE("a list without items, and one that was cut") {
  Got got;
  ListSplitter empty(got.receiver());
  empty.feed(R"({"items":null,"metadata":{}})");
  CHECK(empty.envelope() == R"({"items":null,"metadata":{}})");
  ListSplitter cut(got.receiver());
  cut.feed(R"({"metadata":{},"items":[{"a":1},{"b)");
  CHECK(got.objects.size() == 1);
  CHECK(cut.envelope() == R"({"metadata":{},"items":[)");
}

TEST_CASE("a watch is cut into its lines; one that was cut is not given") {
  Got got;
  LineSplitter splitter(got.receiver());
  splitter.feed("{\"a\"");
  splitter.feed(":1}\n\n{\"b\":2}\n{\"c\":");
  CHECK(got.objects == std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"});
}

TEST_CASE("of an object over the limit only the beginning is given, and the next one is whole") {
  Got got;
  LineSplitter lines(got.receiver(), 8192);
  const std::string large = R"({"metadata":{"name":"big","namespace":"team"},"x":")" + std::string(100'000, 'y');
  for (std::size_t at = 0; at < large.size(); at += 1000) lines.feed(std::string_view(large).substr(at, 1000));
  lines.feed("\"}\n{}\n");
  ListSplitter list(got.receiver(), 8192);
  list.feed("{\"items\":[" + large + "\"},{\"b\":1}]}");
  REQUIRE(got.too_large.size() == 2);
  CHECK(got.too_large[0].size() == kKeptOfTooLarge);
  CHECK(got.too_large[1].size() == kKeptOfTooLarge);
  CHECK(got.objects == std::vector<std::string>{"{}", "{\"b\":1}"});
  CHECK(name_in(got.too_large[0]) == "team/big");
}

TEST_CASE("the name of an object is printable, and cut") {
  CHECK(name_in("{}") == "an object without a name");
  CHECK(name_in("{\"name\":\"a\x1b[31m\n\"}") == "a?[31m?");
  CHECK(name_in("{\"name\":\"" + std::string(1000, 'n') + "\"}").size() == 253);
}
