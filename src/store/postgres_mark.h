#pragma once
// What a data directory says of its log where that is in a database: the file `log.postgres`, with the id of the log
// and its address, and the file `log.postgres-head`, the last record that was acknowledged (head_file.h). By the first,
// no server begins on another cluster's log, or on an older one that still lies in the directory; by the second, a
// database that went back in time is found out.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace berth::store {

inline constexpr const char* kPostgresMark = "log.postgres";
inline constexpr const char* kPostgresHead = "log.postgres-head";

struct PostgresMark {
  std::string log_id;
  std::string shown;  // the address when it was written
};

// Returns nothing where there is none. Error kIo: it cannot be read, or is damaged.
Result<std::optional<PostgresMark>> read_postgres_mark(const std::filesystem::path& directory);

// Writes it durably.
Result<void> write_postgres_mark(const std::filesystem::path& directory, const PostgresMark& mark);

// Removes both files.
Result<void> remove_postgres_mark(const std::filesystem::path& directory);

}  // namespace berth::store
