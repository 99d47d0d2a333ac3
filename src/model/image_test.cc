#include "model/image.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace berth {
namespace {

std::string refused(const std::vector<std::string>& images) {
  const auto ok = check_images(images);
  return ok ? "" : ok.error().message;
}

}  // namespace

TEST_CASE("the name of an image is a reference without spaces, quotes and control characters") {
  for (const char* name : {"a", "pytorch:2.4", "registry.example:5000/team/llama@sha256:0f", "x/y_z-1.0+b"})
    CHECK(well_formed_image(name));
  for (const char* name : {"", ":2", "/x", "a b", "a,b", "a'b", "a\nb", "\xc3\xa4"}) CHECK(!well_formed_image(name));
  CHECK(well_formed_image(std::string(kMaxImageName, 'a')));
  CHECK(!well_formed_image(std::string(kMaxImageName + 1, 'a')));
}

TEST_CASE("a node names few images, sorted, none of them twice") {
  CHECK(refused({}).empty());
  CHECK(refused({"a", "b:1", "b:2"}).empty());
  CHECK(refused({"b", "a"}) == "images: 'a' stands out of order; sort the names");
  CHECK(refused({"a", "a"}) == "images: 'a' is given twice");
  CHECK(refused({"a", "b c"}).starts_with("images[1] is not the name of an image: use "));
  std::vector<std::string> many;
  for (std::size_t i = 0; i < kMaxImagesPerNode; ++i) many.push_back("i" + std::to_string(1000 + i));
  CHECK(refused(many).empty());
  many.push_back("z");
  CHECK(refused(many) == "images: there are 129; a node names 128 at most");
}

}  // namespace berth
