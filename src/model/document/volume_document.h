#pragma once
// `volumes` and `secrets` of a configuration: maps by name, at the top and at queues (docs/data.md).

#include <vector>

#include "model/document/reading.h"
#include "model/volume.h"

namespace berth::document {

// Mistakes in a definition are told at its place.
std::vector<VolumeConfig> read_volumes(const Value& value);
std::vector<SecretConfig> read_secret_references(const Value& value);

Node volumes_node(const std::vector<VolumeConfig>& volumes);
Node secret_references_node(const std::vector<SecretConfig>& secrets);

}  // namespace berth::document
