// `berth`: one program. The supervisor of a task, the server, the simulator, and the commands that talk to the server;
// by the name of a link also the commands of Slurm.

#include <string_view>
#include <vector>

#include "api/page/page.h"
#include "base/large_pages.h"
#include "cli/cli_main.h"
#include "daemon/backup_command.h"
#include "daemon/serve.h"
#include "daemon/store_command.h"
#include "executor/supervise.h"
#include "sim/simulate/simulate_main.h"
#include "slurm/slurm_main.h"

int main(int argc, char** argv) {
  if (const auto tool = berth::slurm::tool_named(argc > 0 ? argv[0] : ""))
    return berth::slurm::tool_main(*tool, argc, argv);
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "supervise" && argc == 3 && argv[2][0] != '-') return berth::executor::supervise_main(argv[2]);
  if (command == "serve" || command == "dev" || command == "simulate") berth::take_large_pages();
  if (command == "serve") return berth::daemon::serve_main(argc - 1, argv + 1, berth::api::built_page());
  if (command == "dev") return berth::daemon::dev_main(argc - 1, argv + 1, berth::api::built_page());
  if (command == "verify") return berth::daemon::verify_main(argc - 1, argv + 1);
  if (command == "backup") return berth::daemon::backup_main(argc - 1, argv + 1);
  if (command == "restore") return berth::daemon::restore_main(argc - 1, argv + 1);
  if (command == "store") return berth::daemon::store_main(argc - 1, argv + 1);
  if (command == "simulate") return berth::sim::simulate_main(std::vector<std::string_view>(argv + 2, argv + argc));
  if (command == "slurm" && !(argc > 2 && std::string_view(argv[2]) == "--help"))
    return berth::slurm::slurm_main(argc - 1, argv + 1);
  return berth::cli::cli_main(argc, argv);
}
