#pragma once
// The address of a log on PostgreSQL, as an operator writes it: a URI of libpq with one or several hosts.
//
//   postgresql://berth@db1.example.com,db2.example.com/berth?sslrootcert=/etc/berth/ca.pem&passfile=/etc/berth/pgpass
//
// What berth adds: only a server that takes writes is connected to, and beyond this machine only one that proves by TLS
// who it is. No secret may stand in an address, which others see in lists of processes, logs and errors.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::store {

// Returns true for postgresql://... and postgres://...
bool is_postgres_address(std::string_view text);

enum class PostgresUse { kServe, kRead };

struct PostgresAddress {
  std::vector<std::pair<std::string, std::string>> parameters;  // of libpq
  std::size_t servers = 1;                                      // more than one: commits must be replicated
  std::string shown;                                            // for messages: hosts and database
};

// Errors kInvalid: no such address, a secret in it, no TLS that proves the server beyond this machine, a
// connect_timeout without an end, a target_session_attrs under which no server would take writes (kRead takes any), or
// a variable of libpq in the environment (PGHOST, PGHOSTADDR, PGSERVICE) that would name another server.
Result<PostgresAddress> parse_postgres_address(const std::string& text, PostgresUse use);

}  // namespace berth::store
