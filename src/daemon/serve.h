#pragma once
// The subcommands that are the server rather than talk to it: `berth serve`, `berth dev`, `berth verify`.

namespace berth::daemon {

// argv[0] is the subcommand's name. Return the process's exit code.
int serve_main(int argc, const char* const* argv);
int dev_main(int argc, const char* const* argv);
int verify_main(int argc, const char* const* argv);

}  // namespace berth::daemon
