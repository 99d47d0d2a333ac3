#pragma once
// The command line of berth: everything but the commands that are a server (serve, dev, verify, supervise), which the
// program's main takes before it comes here. Returns the exit code; the codes are in exit_code.h and docs/cli.md.

namespace berth::cli {

int cli_main(int argc, const char* const* argv);

}  // namespace berth::cli
