#pragma once
// The text of a file of the repository, for tests of documents and pages.

#include <fstream>
#include <sstream>
#include <string>

namespace berth {

// Returns the whole text; empty where the file cannot be read.
inline std::string text_of_file(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace berth
