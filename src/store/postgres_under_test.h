#pragma once
// A PostgreSQL for the tests of this program: tests/e2e/postgres.py starts it once, and ends it with this process.
// Where there is none to be had, what needs it is left out, and says so.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "store/postgres_log.h"
#include "store/temporary_directory.h"

namespace berth::store {

class PostgresProcess {
 public:
  // Returns null where PostgreSQL cannot be had. `standby`: a pair of servers instead of one.
  static PostgresProcess* get(bool standby = false) {
    static PostgresProcess one(false);
    static std::unique_ptr<PostgresProcess> pair;
    if (standby && !pair) pair.reset(new PostgresProcess(true));
    PostgresProcess* const found = standby ? pair.get() : &one;
    if (!found->skipped_.empty()) MESSAGE("skipped: no PostgreSQL to be had here: ", found->skipped_);
    return found->skipped_.empty() ? found : nullptr;
  }
  ~PostgresProcess() {
    if (to_ != nullptr) std::fclose(to_);
    if (from_ != nullptr) std::fclose(from_);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }
  PostgresProcess(const PostgresProcess&) = delete;
  PostgresProcess& operator=(const PostgresProcess&) = delete;

  std::string address() const { return facts_.at("address"); }  // by TLS and password; of a pair both
  std::string socket() const { return facts_.at("socket"); }    // the same server, cheaper to connect to
  void tell(const std::string& command) {
    std::fprintf(to_, "%s\n", command.c_str());
    std::fflush(to_);
    const std::string answer = line();
    REQUIRE_MESSAGE(answer == "ok", command << ": " << answer);
  }
  void sql(const std::string& text) { tell("sql " + text); }
  pid_t pid() const {
    std::ifstream file(facts_.at("pidfile"));
    pid_t pid = 0;
    file >> pid;
    REQUIRE(pid > 0);
    return pid;
  }

 private:
  explicit PostgresProcess(bool standby) {
    int in[2];
    int out[2];
    REQUIRE(::pipe2(in, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::execlp("python3", "python3", "tests/e2e/postgres.py", standby ? "--standby" : nullptr, nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = ::fdopen(in[1], "w");
    from_ = ::fdopen(out[0], "r");
    ::signal(SIGPIPE, SIG_IGN);
    for (std::string said = line(); said != "ready"; said = line()) {
      if (said.starts_with("skipped: ") || said.empty()) {
        skipped_ = said.empty() ? "tests/e2e/postgres.py ended" : said.substr(9);
        REQUIRE_MESSAGE(!said.empty(), skipped_);
        return;
      }
      const std::size_t at = said.find('=');
      facts_[said.substr(0, at)] = said.substr(at + 1);
    }
  }
  std::string line() {
    std::string text;
    for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) text += static_cast<char>(c);
    return text;
  }

  std::map<std::string, std::string> facts_;
  std::string skipped_;
  pid_t child_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

// A database without a log, and a data directory.
struct PostgresPlace {
  explicit PostgresPlace(PostgresProcess& process) : server(process) {
    server.sql("DROP SCHEMA IF EXISTS berth CASCADE");
  }
  PostgresOptions options() const {
    PostgresOptions options;
    options.directory = directory.path();
    options.deadline_ms = 60'000;
    return options;
  }
  std::unique_ptr<PostgresLog> open() const {
    auto log = PostgresLog::open(server.socket(), options());
    REQUIRE_MESSAGE(log.has_value(), (log ? std::string() : log.error().message));
    return std::move(*log);
  }
  // The error of an opening that is refused.
  Error refusal(const std::string& address = {}) const {
    auto log = PostgresLog::open(address.empty() ? server.socket() : address, options());
    REQUIRE_FALSE(log.has_value());
    return log.error();
  }

  PostgresProcess& server;
  TemporaryDirectory directory;
};

}  // namespace berth::store
