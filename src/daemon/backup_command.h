#pragma once
// The subcommands `berth backup` and `berth restore`. They work on files and need no server (docs/store.md).

namespace berth::daemon {

// argv[0] is the name of the subcommand. Return the exit code of the process (docs/cli.md).
int backup_main(int argc, const char* const* argv);
int restore_main(int argc, const char* const* argv);

}  // namespace berth::daemon
