#pragma once
// The subcommand `berth store copy`: an event log is copied between a data directory and PostgreSQL (docs/store.md).

namespace berth::daemon {

// argv[0] is the name of the subcommand. Returns the exit code of the process (docs/cli.md).
int store_main(int argc, const char* const* argv);

}  // namespace berth::daemon
