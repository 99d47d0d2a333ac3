#include "api/http/json_decode.h"

#include <doctest/doctest.h>

#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

namespace berth::http {
namespace {

std::string error_of(std::string_view text) {
  const auto value = decode_json(text);
  return value ? "" : value.error().message;
}

TEST_CASE("json: what is accepted keeps its meaning") {
  const auto value =
      decode_json(" {\"a\": [1, -2, 1.5, true, null, \"x\\u00e9\"], \"b\": {\"a\": 1}, \"c\": {\"a\": 2}} \n");
  REQUIRE(value);
  CHECK(boost::json::serialize(*value) ==
        "{\"a\":[1,-2,1.5E0,true,null,\"x\xc3\xa9\"],\"b\":{\"a\":1},\"c\":{\"a\":2}}");
  CHECK(decode_json("9223372036854775807")->as_int64() == 9223372036854775807);
  CHECK(decode_json("-9223372036854775808")->is_int64());
  CHECK(decode_json("18446744073709551615")->as_uint64() == 18446744073709551615u);
}

TEST_CASE("json: what two readers could take differently is refused, with its place") {
  struct Row {
    std::string text;
    std::string part_of_message;
  };
  const std::vector<Row> rows{
      {"{\"a\":1,\"a\":2}", "the key \"a\" is given twice"},
      {"{\"a\":1,\"\\u0061\":2}", "given twice"},
      {"[{\"x\":{\"k\":1,\"m\":{},\"k\":2}}]", "the key \"k\" is given twice"},
      {"18446744073709551616", "an integer is beyond 64 bits"},
      {"-9223372036854775809", "an integer is beyond 64 bits"},
      {"[12345678901234567890123]", "an integer is beyond 64 bits"},
      {"1e400", "a number is too large"},
      {"[-1e999999]", "number"},
      {"\"a\\u0000b\"", "NUL"},
      {"{\"a\\u0000\":1}", "NUL"},
      {"\"\\ud800\"", ""},
      {"\"\\udc00\\ud800\"", ""},
      {"\"\xff\"", ""},
      {"\"\xc0\xaf\"", ""},
      {"\"\xed\xa0\x80\"", ""},
      {"\xef\xbb\xbf{}", ""},
      {"NaN", ""},
      {"[Infinity]", ""},
      {"[1,]", ""},
      {"{\"a\":1,}", ""},
      {"// x\n1", ""},
      {"01", ""},
      {"'a'", ""},
      {"\"a\nb\"", ""},
      {"{} {}", "something after the value"},
      {"1\n2", "something after the value at line 2, column 1 (byte 2)"},
      {"", "ends too early"},
      {"   ", "ends too early"},
      {"{\"a\":", "ends too early"},
      {"{\n  \"a\": 1,\n  \"b\": nil\n}", "at line 3"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string message = error_of(row.text);
    CHECK(message.find("line ") != std::string::npos);
    CHECK(message.find(row.part_of_message) != std::string::npos);
  }
}

TEST_CASE("json: nesting and size have limits, and a million brackets are cheap to refuse") {
  CHECK(error_of(std::string(32, '[') + std::string(32, ']')).empty());
  CHECK(error_of(std::string(33, '[') + std::string(33, ']')).find("deeper than 32") != std::string::npos);
  CHECK(error_of(std::string(1'000'000, '[')).find("deeper than 32") != std::string::npos);
  const auto large = decode_json("\"" + std::string(1024 * 1024, 'x') + "\"");
  REQUIRE_FALSE(large);
  CHECK(large.error().code == ErrorCode::kTooLarge);
}

TEST_CASE("json: a hundred thousand keys are told apart") {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"" + std::to_string(i) + "\":1,";
  CHECK(decode_json(text + "\"x\":1}", {.bytes = 4 * 1024 * 1024}));
  CHECK_FALSE(decode_json(text + "\"77\":1}", {.bytes = 4 * 1024 * 1024}));
}

TEST_CASE("json: the fuzz entry takes anything") {
  for (const std::string_view text : {"", "{}", "{\"a\":1e5}", "\xff\x00", "[[[[1.25]]]]", "-0", "-0.0", "1e-400"}) {
    CHECK(fuzz_json_decode(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()) == 0);
  }
}

}  // namespace
}  // namespace berth::http
