#include "model/gpu_model.h"

#include <doctest/doctest.h>

namespace berth {

TEST_CASE("a GPU model is a name, or a resource of two names") {
  for (const char* good : {"H100-SXM5-80GB", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "nvidia.com/gpu.shared"})
    CHECK(well_formed_gpu_model(good));
  for (const char* bad : {"", "/", "a/", "/a", "a/b/c", "a b", "nvidia.com/mig 1g"})
    CHECK_FALSE(well_formed_gpu_model(bad));
  CHECK(is_resource_model("nvidia.com/mig-1g.10gb"));
  CHECK_FALSE(is_resource_model("NVIDIA-H100-80GB-HBM3"));
}

}  // namespace berth
