#include "model/gpu_model.h"

#include "model/name.h"

namespace berth {

bool well_formed_gpu_model(std::string_view model) {
  const std::size_t slash = model.find('/');
  if (slash == std::string_view::npos) return well_formed_name(model);
  return well_formed_name(model.substr(0, slash)) && well_formed_name(model.substr(slash + 1));
}

}  // namespace berth
