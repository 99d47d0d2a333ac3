#include "slurm/script.h"

#include <algorithm>

namespace berth::slurm {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

std::string_view next_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

void split_directive(std::string_view text, std::vector<std::string>& words) {
  std::string word;
  bool open = false;  // a word has begun
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
      open = true;
    } else if (c == '"' || c == '\'') {
      quote = c;
      open = true;
    } else if (c == '#') {
      break;
    } else if (kBlanks.find(c) != std::string_view::npos) {
      if (open) words.push_back(word);
      word.clear();
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (open) words.push_back(word);
}

}  // namespace

std::vector<std::string> faults_of_script(std::string_view script) {
  if (script.empty()) return {"Batch script is empty!"};
  if (script.find_first_not_of(kBlanks) == std::string_view::npos) return {"Batch script contains only whitespace!"};
  if (!script.starts_with("#!")) {
    return {"This does not look like a batch script.  The first",
            "line must start with #! followed by the path to an interpreter.", "For instance: #!/bin/sh"};
  }
  if (script.find('\0') != std::string_view::npos) {
    return {"The Slurm controller does not allow scripts that", "contain a NULL character '\\0'."};
  }
  if (script.find("\r\n") != std::string_view::npos)
    return {"Batch script contains DOS line breaks (\\r\\n)", "instead of expected UNIX line breaks (\\n)."};
  return {};
}

std::vector<std::string> directives_of(std::string_view script) {
  constexpr std::string_view kMark = "#SBATCH";
  std::vector<std::string> words;
  while (!script.empty()) {
    const std::string_view line = next_line(script);
    if (line.starts_with(kMark)) {
      split_directive(line.substr(kMark.size()), words);
      continue;
    }
    const std::size_t first = line.find_first_not_of(kBlanks);
    if (first != std::string_view::npos && line[first] != '#') break;
  }
  return words;
}

Interpreter interpreter_of(std::string_view script) {
  std::string_view line = next_line(script);
  line.remove_prefix(std::min<std::size_t>(2, line.size()));
  const auto trim = [](std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return std::string_view();
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
  };
  line = trim(line);
  const std::size_t blank = line.find_first_of(" \t");
  if (blank == std::string_view::npos) return {std::string(line), ""};
  return {std::string(line.substr(0, blank)), std::string(trim(line.substr(blank)))};
}

std::string wrapped(std::string_view command) {
  return "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + std::string(command) + "\n";
}

}  // namespace berth::slurm
