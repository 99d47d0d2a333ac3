#include "daemon/backup_manifest.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <sstream>

#include "model/json_fields.h"
#include "model/strict_json.h"
#include "store/hash_chain.h"

namespace berth::daemon {

namespace {

constexpr const char* kChecksumKey = "sha256";

// Of a manifest, or of the files of one, without the checksum itself.
std::string checksum_of(const boost::json::object& manifest) {
  return store::to_hex(store::sha256(boost::json::serialize(manifest)));
}

}  // namespace

std::string text_of(const BackupManifest& manifest) {
  boost::json::object object = to_json(manifest).as_object();
  object[kChecksumKey] = checksum_of(object);
  return boost::json::serialize(object) + "\n";
}

Result<BackupManifest> read_manifest(std::string_view text, const std::string& where) {
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorCode::kCorrupt, where + " is no manifest of a backup: " + what};
  };
  auto value = decode_json(text);
  if (!value) return damaged(value.error().message);
  boost::json::object* object = value->if_object();
  if (object == nullptr) return damaged("it is no object");
  const boost::json::value* checksum = object->if_contains(kChecksumKey);
  if (checksum == nullptr || !checksum->is_string()) return damaged("it has no checksum");
  const std::string stated(checksum->get_string());
  object->stable_erase(kChecksumKey);
  if (checksum_of(*object) != stated) return damaged("its checksum does not hold");
  const boost::json::value* format = object->if_contains("format");
  if (format != nullptr && format->is_int64() && format->get_int64() > BackupManifest().format)
    return Error{ErrorCode::kUnsupported, where + " is of a newer berth; use that one"};
  auto manifest = from_json<BackupManifest>(*value);
  if (!manifest) return damaged(manifest.error().message);
  return manifest;
}

Result<BackupManifest> manifest_of(const std::filesystem::path& backup) {
  const std::string path = (backup / kManifestFile).string();
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found(path + " cannot be read: " + backup.string() + " is no finished backup of berth backup");
  std::ostringstream text;
  text << in.rdbuf();
  return read_manifest(text.str(), path);
}

std::uint64_t bytes_of(const BackupManifest& manifest) {
  std::uint64_t bytes = 0;
  for (const BackupFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

bool is_end_of(const BackupManifest& manifest, const LogFold& fold) {
  return manifest.seq == fold.seq && manifest.chain_hash == store::to_hex(fold.chain_hash) &&
         manifest.state_hash == store::to_hex(fold.state_hash);
}

}  // namespace berth::daemon
