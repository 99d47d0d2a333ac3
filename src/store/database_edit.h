#pragma once
// Changes the database of a log directly, for tests of what the log notices.

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace berth::store {

inline void edit_database(const std::filesystem::path& directory, const std::string& sql,
                          int flags = SQLITE_OPEN_READWRITE) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open_v2((directory / "log.db").c_str(), &database, flags, nullptr) == SQLITE_OK);
  const int code = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
  REQUIRE_MESSAGE(code == SQLITE_OK, sqlite3_errmsg(database));
  REQUIRE(sqlite3_close(database) == SQLITE_OK);
}

inline std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  REQUIRE(out.flush());
}

}  // namespace berth::store
