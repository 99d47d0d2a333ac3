#include "slurm/shell.h"

#include <pwd.h>

#include "cli/printable.h"

namespace berth::slurm {

void Shell::error(std::string_view text) { err() << name_of(tool) << ": error: " << cli::printable(text) << "\n"; }

void Shell::warning(std::string_view text) { err() << name_of(tool) << ": warning: " << cli::printable(text) << "\n"; }

void Shell::hint(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    err() << name_of(tool) << ": berth: " << cli::printable(text.substr(0, end)) << "\n";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

int complain(Shell& shell, const Complaint& complaint, std::string_view failed) {
  for (const std::string& line : complaint.plain) shell.err() << cli::printable(line) << "\n";
  for (const std::string& line : complaint.errors) shell.error(line);
  if (!complaint.refusal.empty()) shell.error(std::string(failed) + complaint.refusal);
  shell.hint(complaint.hint);
  return complaint.code;
}

Begun begin_tool(Shell& shell, const std::vector<std::string>& words) {
  const std::string name(name_of(shell.tool));
  const bool submits = shell.tool == Tool::kSbatch || shell.tool == Tool::kSrun;
  auto parsed = parse_words(shell.tool, words);
  if (!parsed) {
    shell.err() << name << ": " << cli::printable(parsed.error().message) << "\n";
    if (shell.tool != Tool::kSacct) shell.err() << "Try \"" << name << " --help\" for more information\n";
    return {{}, submits ? 255 : 1};
  }
  if (parsed->has("version")) {
    shell.out() << kVersionText << "\n";
    return {{}, 0};
  }
  if (parsed->has("help") || parsed->has("usage")) {
    shell.out() << "Usage: " << name << " [OPTIONS]\n";
    for (const Option& option : options_of(shell.tool)) {
      shell.out() << "  " << (option.letter != 0 ? "-" + std::string(1, option.letter) + ", " : "    ") << "--"
                  << option.name << (option.takes == Takes::kValue ? "=VALUE" : "")
                  << (option.takes == Takes::kMaybe ? "[=VALUE]" : "") << "  " << name_of(option.held) << ": "
                  << option.says << "\n";
    }
    return {{}, 0};
  }
  const NotHeld lacking = not_held(*parsed);
  for (const std::string& one : lacking.warnings) shell.warning(one);
  if (lacking.refusal) {
    shell.error(*lacking.refusal);
    return {{}, submits ? 255 : 1};
  }
  return {std::move(*parsed), std::nullopt};
}

int server_failed(Shell& shell, const Error& error, std::string_view what) {
  const bool away = error.code == ErrorCode::kUnavailable;
  shell.err() << what << (away ? "Unable to contact slurm controller (connect failure)" : "Access/permission denied")
              << "\n";
  shell.hint(error.message);
  return 1;
}

Result<std::vector<cli::Json>> all_items(cli::Session& session, const std::string& path) {
  std::vector<cli::Json> all;
  std::string cursor;
  do {
    const std::string mark = path.find('?') == std::string::npos ? "?" : "&";
    const auto page =
        cli::get(session, path + (cursor.empty() ? "" : mark + "cursor=" + client::encode_segment(cursor)));
    if (!page) return page.error();
    for (const cli::Json& item : cli::items(*page, "items")) all.push_back(item);
    cursor = cli::show(*page, "next_cursor");
  } while (!cursor.empty());
  return all;
}

std::string user_named(const std::string& text) {
  const bool is_number = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  const passwd* account = is_number ? ::getpwuid(static_cast<uid_t>(std::stoul(text))) : nullptr;
  return account == nullptr ? text : account->pw_name;
}

std::vector<std::string> comma_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(',');
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

}  // namespace berth::slurm
