// `berth`: one program. The supervisor of a task, the server, and the commands that talk to it.

#include <string_view>

#include "cli/cli_main.h"
#include "daemon/serve.h"
#include "executor/supervise.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "supervise" && argc == 3) return berth::executor::supervise_main(argv[2]);
  if (command == "serve") return berth::daemon::serve_main(argc - 1, argv + 1);
  if (command == "dev") return berth::daemon::dev_main(argc - 1, argv + 1);
  if (command == "verify") return berth::daemon::verify_main(argc - 1, argv + 1);
  return berth::cli::cli_main(argc, argv);
}
