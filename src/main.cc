// `berth`: one program. The supervisor of a task, the server, the simulator, and the commands that talk to the server.

#include <string_view>
#include <vector>

#include "api/page/page.h"
#include "base/large_pages.h"
#include "cli/cli_main.h"
#include "daemon/backup_command.h"
#include "daemon/serve.h"
#include "executor/supervise.h"
#include "sim/simulate/simulate_main.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "supervise" && argc == 3 && argv[2][0] != '-') return berth::executor::supervise_main(argv[2]);
  if (command == "serve" || command == "dev" || command == "simulate") berth::take_large_pages();
  if (command == "serve") return berth::daemon::serve_main(argc - 1, argv + 1, berth::api::built_page());
  if (command == "dev") return berth::daemon::dev_main(argc - 1, argv + 1, berth::api::built_page());
  if (command == "verify") return berth::daemon::verify_main(argc - 1, argv + 1);
  if (command == "backup") return berth::daemon::backup_main(argc - 1, argv + 1);
  if (command == "restore") return berth::daemon::restore_main(argc - 1, argv + 1);
  if (command == "simulate") return berth::sim::simulate_main(std::vector<std::string_view>(argv + 2, argv + argc));
  return berth::cli::cli_main(argc, argv);
}
