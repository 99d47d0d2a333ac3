#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/utf8.h"
#include "cli/cli_main.h"
#include "cli/command/commands.h"
#include "cli/command_line.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/printable.h"
#include "sim/scenario/scenario.h"

namespace berth::cli {
namespace {

// A file with several mistakes has a line for each.
int fail(const Error& error) {
  for (std::size_t begin = 0; begin <= error.message.size();) {
    const std::size_t end = std::min(error.message.find('\n', begin), error.message.size());
    std::cerr << "berth: " << printable(error.message.substr(begin, end - begin)) << "\n";
    begin = end + 1;
  }
  return exit_code_of(error.code);
}

winsize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  if (size.ws_col == 0) size.ws_col = 80;
  return size;
}

// Commands that can do without a server must not fail for want of a token file.
bool needs_server(const Command& command) {
  if (const auto* done = std::get_if<CheckpointDoneOptions>(&command)) return !done->job.empty();
  return !std::holds_alternative<CompletionOptions>(command) && !std::holds_alternative<CheckOptions>(command) &&
         !std::holds_alternative<JobTokenOptions>(command) && !std::holds_alternative<VersionOptions>(command) &&
         !std::holds_alternative<LoginOptions>(command) && !std::holds_alternative<LogoutOptions>(command) &&
         !std::holds_alternative<ContextOptions>(command);
}

// A denied request that brought nothing to say whose it is is told what is missing.
Error with_hint(Error error, const client::ClientOptions& server) {
  const bool is_socket = server.base_url.starts_with(client::kSocketScheme);
  if (error.code == ErrorCode::kDenied && server.token.empty() && server.cert_file.empty() && !is_socket) {
    error.message += " (no token was found; run `berth login`, give --token-file FILE or set BERTH_TOKEN_FILE)";
  }
  return error;
}

// Commands about contexts need no token, and must work where one cannot be renewed. Returns false for all others.
bool is_about_contexts(Command& command, const ConnectionOptions& connection) {
  const bool server_given = !connection.server.empty() || !process_environment("BERTH_SERVER").empty();
  if (auto* login = std::get_if<LoginOptions>(&command)) {
    login->context = connection.context;
    login->server_given = server_given;
    return true;
  }
  if (auto* logout = std::get_if<LogoutOptions>(&command)) {
    logout->context = connection.context;
    return true;
  }
  if (auto* context = std::get_if<ContextOptions>(&command)) {
    context->server_given = server_given;
    return true;
  }
  return false;
}

int perform(CommandLine line) {
  const bool sign_in = !is_about_contexts(line.command, line.connection);
  if (!sign_in && !std::holds_alternative<LogoutOptions>(line.command)) line.connection.context.clear();
  auto found = find_server(line.connection, &process_environment, sign_in);
  if (!found && needs_server(line.command)) return fail(found.error());
  const client::ClientOptions server = found ? *found : client::ClientOptions{.base_url = kDefaultServer};
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  Session session{std::cout, std::cerr, client::Client(server), server.base_url, terminal};
  if (terminal) {
    const winsize size = terminal_size();
    session.width = size.ws_col;
    session.height = size.ws_row;
  }
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {
    session.confirm = [](const std::string& question) {
      std::cerr << question << " [y/N] " << std::flush;
      std::string answer;
      return std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
    };
  }
  const auto code = std::visit([&session](const auto& options) { return run(options, session); }, line.command);
  if (!std::cout.flush()) return fail({ErrorCode::kIo, "the output could not be written"});
  return code ? *code : fail(sign_in ? with_hint(code.error(), server) : code.error());
}

}  // namespace

int cli_main(int argc, const char* const* argv) {
  std::vector<std::string_view> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_utf8(words[i])) return fail(invalid("word " + std::to_string(i + 1) + " of the command line is not UTF-8"));
  }
  const bool asks_help =
      std::any_of(words.begin(), words.end(), [](auto one) { return one == "--help" || one == "-h"; });
  if (!words.empty() && words.front() == "scenario" && !asks_help) {
    return sim::scenario_main(std::span(words).subspan(1));
  }
  if (!words.empty() && words.front() == "--version") words.front() = "version";  // as most programs take it
  const auto parsed = parse_command_line({words.begin(), words.end()});
  if (!parsed) return fail(parsed.error());
  if (const auto* help = std::get_if<HelpText>(&*parsed)) {
    std::cout << help->text;
    return std::cout.flush() ? kOk : kFailed;
  }
  return perform(std::get<CommandLine>(*parsed));
}

}  // namespace berth::cli
