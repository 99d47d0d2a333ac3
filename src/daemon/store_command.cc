#include "daemon/store_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "daemon/exit_code.h"
#include "store/hash_chain.h"
#include "store/log_transfer.h"

namespace berth::daemon {

namespace {

int told(const Error& error) {
  std::fprintf(stderr, "berth: %s\n", error.message.c_str());
  return exit_code_of(error.code);
}

int run_copy(const std::string& from, const std::string& to) {
  ::umask(077);  // a log keeps secrets of jobs
  const auto report = store::transfer_log(from, to);
  if (!report) return told(report.error());
  const std::string text = fmt::format(
      "copied      {} to {}\nevents      {}, the last of epoch {}\nhistory     {} finished jobs\ncheckpoint  {}\n"
      "chain       {}, the same in both\n",
      from, to, report->records, report->head.epoch, report->history_rows,
      report->checkpoint == 0 ? "none" : fmt::format("at event {}", report->checkpoint),
      store::to_hex(report->head.hash));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

int store_main(int argc, const char* const* argv) {
  CLI::App app(
      "Copy an event log as it is now from a data directory to PostgreSQL or back, with the same numbers and hashes, "
      "and "
      "compare\nboth. Stop the server before, or what it writes meanwhile is not in the copy.\n\nExamples:\n"
      "  berth store copy /var/lib/berth postgresql://berth@db/berth?passfile=/etc/berth/pgpass\n"
      "  berth store copy postgresql://berth@db/berth?passfile=/etc/berth/pgpass /backup/berth-monday\n",
      "berth store");
  app.require_subcommand(1);
  CLI::App* copy = app.add_subcommand("copy", "Copy a log to where none is, and compare");
  copy->footer(
      "Exit codes: 0 done; 1 the log is damaged, or the copy differs; 2 the words are wrong, or what is asked of "
      "PostgreSQL "
      "is\n  not so; 3 there is no log; 4 TO has a log already; 5 PostgreSQL cannot be reached; 6 a right is "
      "missing.\n");
  std::string from;
  std::string to;
  copy->add_option("FROM", from, "A data directory, or postgresql://...")->required();
  copy->add_option("TO", to, "A database without a log, or a directory without one: new, or the one of the server")
      ->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return told(invalid(fmt::format("{} (berth store --help)", error.what())));
  }
  return run_copy(from, to);
}

}  // namespace berth::daemon
