#pragma once
// A document of a file as the body of a request.

#include <string>

#include "base/result.h"
#include "cli/connection.h"
#include "model/document/document.h"

namespace berth::cli {

// Returns the document as the server takes it. `read(text, file)` reads it here first, so that a mistake is told with
// its file and line. `file` `-` is the standard input.
template <class Read>
Result<std::string> document_body(const std::string& file, Read read) {
  const auto text = read_file(file, document::kMaxBytes);
  if (!text) return text.error();
  if (const auto document = read(*text, file); !document) return document.error();
  const auto tree = document::parse(*text, file);
  if (!tree) return tree.error();
  return document::to_json_text(*tree);
}

}  // namespace berth::cli
