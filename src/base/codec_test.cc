#include "base/codec.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

namespace berth {
namespace {

struct Before {
  std::int32_t size = 1;
  std::string name;
  static constexpr auto fields() { return field_list(field("size", &Before::size), field("name", &Before::name)); }
};

// The same with two fields that came later.
struct After {
  std::int32_t size = 1;
  std::string name;
  std::string note = "none";
  std::int32_t weight = 0;
  static constexpr auto fields() {
    return field_list(field("size", &After::size), field("name", &After::name), field_if_set("note", &After::note),
                      field_if_set("weight", &After::weight));
  }
};

After back(const std::string& bytes) {
  Decoder decoder(bytes);
  After value;
  decoder.get(value);
  CHECK(decoder.ok());
  CHECK(decoder.at_end());
  return value;
}

}  // namespace

TEST_CASE("a field that is not set leaves the bytes and the hash as they were before it came") {
  CHECK(encode(After{7, "a", "none", 0}) == encode(Before{7, "a"}));
  FieldHasher before;
  FieldHasher after;
  before.put(Before{7, "a"});
  after.put(After{7, "a", "none", 0});
  CHECK(before.digest() == after.digest());
  CHECK(encode(After{7, "a", "none", 0}) != encode(After{7, "a", "", 0}));
}

TEST_CASE("a field that is set comes back, with those before it") {
  const After noted = back(encode(After{7, "a", "x", 0}));
  CHECK(noted.note == "x");
  CHECK(noted.weight == 0);
  const After weighed = back(encode(After{7, "", "none", 3}));
  CHECK(weighed.size == 7);
  CHECK(weighed.note == "none");
  CHECK(weighed.weight == 3);
  CHECK(back(encode(Before{7, "a"})).note == "none");
}

}  // namespace berth
