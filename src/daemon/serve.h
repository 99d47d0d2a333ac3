#pragma once
// The subcommands that are the server itself: `berth serve`, `berth dev`, `berth verify`.

namespace berth::daemon {

// argv[0] is the name of the subcommand. Return the exit code of the process.
int serve_main(int argc, const char* const* argv);
int dev_main(int argc, const char* const* argv);
int verify_main(int argc, const char* const* argv);

}  // namespace berth::daemon
