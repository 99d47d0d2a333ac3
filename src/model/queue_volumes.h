#pragma once
// What the jobs of a queue may mount, their default image, and whether shells are opened in them: what the
// configuration defines at the queue, at the queues above it and at the top. Of one name, the definition nearest to the
// queue counts.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster_config.h"

namespace berth {

// Return the definition, or null. The pointer is into the configuration.
const VolumeConfig* volume_of(const ClusterConfig& config, std::string_view queue, std::string_view name);
const SecretConfig* secret_of(const ClusterConfig& config, std::string_view queue, std::string_view name);

// Return the names that a job of the queue may use, sorted.
std::vector<std::string_view> volume_names_of(const ClusterConfig& config, std::string_view queue);
std::vector<std::string_view> secret_names_of(const ClusterConfig& config, std::string_view queue);

// Returns the image of tasks that name none, or nothing.
std::string default_image_of(const ClusterConfig& config, std::string_view queue);

// Returns the path of a queue that forbids shells in the jobs of `queue`, itself or above it: "/" for the root. Absent:
// none does.
std::optional<std::string> queue_without_shell(const ClusterConfig& config, std::string_view queue);

// Returns "queue 'a' has no volume 'x'", with the nearest name or those that there are.
std::string no_such_mount(std::string_view what, std::string_view queue, std::string_view name,
                          const std::vector<std::string_view>& known);

}  // namespace berth
