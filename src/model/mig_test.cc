#include "model/mig.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

namespace berth {
namespace {

constexpr const char* kNames[] = {"a30-24gb", "a100-40gb", "a100-80gb", "h100-80gb", "h200-141gb", "b200-180gb"};

TEST_CASE("as many instances of each profile fit on an idle GPU as NVIDIA's tables say") {
  const MigGeometry& h100 = *mig_geometry("h100-80gb");
  const auto instances = [](const MigGeometry& of, const char* profile) {
    return instances_beside(*of.profile_named(profile), 0);
  };
  CHECK_EQ(instances(h100, "1g.10gb"), 7);
  CHECK_EQ(instances(h100, "1g.20gb"), 4);
  CHECK_EQ(instances(h100, "2g.20gb"), 3);
  CHECK_EQ(instances(h100, "3g.40gb"), 2);
  CHECK_EQ(instances(h100, "4g.40gb"), 1);
  CHECK_EQ(instances(h100, "7g.80gb"), 1);
  const MigGeometry& a30 = *mig_geometry("a30-24gb");
  CHECK_EQ(instances(a30, "1g.6gb"), 4);
  CHECK_EQ(instances(a30, "2g.12gb"), 2);
  CHECK_EQ(instances(a30, "4g.24gb"), 1);
  CHECK_EQ(a30.milli_of(*a30.profile_named("1g.6gb")), 250);
  CHECK_EQ(h100.milli_of(*h100.profile_named("3g.40gb")), 500);
  CHECK(mig_geometry("t4") == nullptr);
  CHECK(h100.profile_named("1g.5gb") == nullptr);
}

// Returns the largest number of instances over all ways of placing them.
std::int32_t most_instances(const MigProfile& profile, MigSlices used) {
  std::int32_t most = 0;
  for (std::uint32_t start = 0; start < 8; ++start) {
    if ((profile.starts >> start & 1U) == 0 || (profile.at(start) & used) != 0) continue;
    most = std::max(most, 1 + most_instances(profile, used | profile.at(start)));
  }
  return most;
}

TEST_CASE("the count of instances beside used slices is the most that any order gives, and the place keeps most") {
  for (const char* name : kNames) {
    const MigGeometry& geometry = *mig_geometry(name);
    for (std::uint32_t bits = 0; bits <= geometry.all(); ++bits) {
      const auto used = static_cast<MigSlices>(bits);
      for (const MigProfile& profile : geometry.profiles) {
        REQUIRE_EQ(instances_beside(profile, used), most_instances(profile, used));
        const auto place = best_place(geometry, profile, used);
        REQUIRE_EQ(place.has_value(), most_instances(profile, used) > 0);
        if (!place) continue;
        CHECK_EQ(std::popcount(place->slices), profile.width);
        CHECK_EQ(place->slices & used, 0);
        for (std::uint32_t start = 0; start < 8; ++start) {
          if ((profile.starts >> start & 1U) == 0 || (profile.at(start) & used) != 0) continue;
          CHECK_LE(place->loss, mig_loss(geometry, used, profile.at(start)));
        }
      }
    }
  }
}

TEST_CASE("instances go where they leave the large places") {
  const MigGeometry& h100 = *mig_geometry("h100-80gb");
  const auto places = [&](const std::vector<const char*>& profiles) {
    MigSlices used = 0;
    std::vector<std::string> found;
    for (const char* profile : profiles) {
      const auto place = best_place(h100, *h100.profile_named(profile), used);
      found.push_back(place ? slices_text(place->slices) : "none");
      if (place) used |= place->slices;
    }
    return found;
  };
  using Places = std::vector<std::string>;
  CHECK_EQ(places({"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}), Places{"4-7", "2-3", "1", "0"});
  CHECK_EQ(places({"1g.10gb", "2g.20gb", "4g.40gb"}), Places{"6", "4-5", "0-3"});
  CHECK_EQ(places({"1g.10gb", "7g.80gb"}), Places{"6", "none"});
  CHECK_EQ(places({"3g.40gb", "3g.40gb", "1g.10gb"}), Places{"4-7", "0-3", "none"});
}

}  // namespace
}  // namespace berth
