#pragma once
// The file backup.json of a backup: what is in it, so that a damaged one, or one put together from two, is noticed. Its
// own checksum is in it as well. It is no signature: a program that can write the backup can write another one.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "daemon/verify.h"

namespace berth::daemon {

inline constexpr const char* kManifestFile = "backup.json";

struct BackupFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;  // in hexadecimal, as are all hashes here
  static constexpr auto fields() {
    return field_list(field("name", &BackupFile::name), field("bytes", &BackupFile::bytes),
                      field("sha256", &BackupFile::sha256));
  }
};

struct BackupManifest {
  std::int64_t format = 1;
  std::string version;  // of the berth that made it
  Timestamp made;
  std::uint64_t first_seq = 0;
  std::uint64_t seq = 0;  // of the last event; 0: none
  Timestamp time;         // of the last event
  std::uint64_t history_rows = 0;
  std::uint64_t jobs = 0;  // live ones
  std::string chain_hash;  // of the last event's record
  std::string state_hash;  // of the state that the log folds to
  std::vector<BackupFile> files;
  static constexpr auto fields() {
    return field_list(field("format", &BackupManifest::format), field("version", &BackupManifest::version),
                      field("made", &BackupManifest::made), field("first_seq", &BackupManifest::first_seq),
                      field("seq", &BackupManifest::seq), field("time", &BackupManifest::time),
                      field("history_rows", &BackupManifest::history_rows), field("jobs", &BackupManifest::jobs),
                      field("chain_hash", &BackupManifest::chain_hash),
                      field("state_hash", &BackupManifest::state_hash), field("files", &BackupManifest::files));
  }
};

std::string text_of(const BackupManifest& manifest);
// Errors: kCorrupt: it is none, or was changed; kUnsupported: of a newer berth. `where` names it in the message.
Result<BackupManifest> read_manifest(std::string_view text, const std::string& where);
// Error kNotFound: the directory has no manifest, so it is no finished backup.
Result<BackupManifest> manifest_of(const std::filesystem::path& backup);

// Returns the bytes of all its files.
std::uint64_t bytes_of(const BackupManifest& manifest);
// Whether a log that folds to this is the log of the backup.
bool is_end_of(const BackupManifest& manifest, const LogFold& fold);

}  // namespace berth::daemon
