#pragma once
// How the local backend asks NVML about a GPU before a start and after an end (backend/local/gpu_check.h). The library
// is loaded at the first look, and anew after one that failed: a driver that was loaded again answers then.

#include <functional>
#include <string>

#include "backend/local/gpu_check.h"

namespace berth::daemon {

// Returns a function that any thread may call, and that outlives everything but the process.
std::function<backend::GpuLook(const std::string& gpu)> gpu_look();

}  // namespace berth::daemon
