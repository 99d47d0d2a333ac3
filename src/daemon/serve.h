#pragma once
// The subcommands that are the server itself: `berth serve`, `berth dev`, `berth verify`.

#include "api/page/page.h"

namespace berth::daemon {

// argv[0] is the name of the subcommand. Return the exit code of the process. `page` is served at /.
int serve_main(int argc, const char* const* argv, const api::Page& page);
int dev_main(int argc, const char* const* argv, const api::Page& page);
int verify_main(int argc, const char* const* argv);

}  // namespace berth::daemon
