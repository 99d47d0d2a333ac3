#pragma once
// The flags of `berth submit` and `berth run`: which flag sets which key of a job document, as the rows of the keys say
// (model/document/job_keys.h). Flags are put onto the document, and the document is read by the model's own reader, so
// that a job means the same however it is written.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "cli/options.h"
#include "model/document/document.h"

namespace berth::cli {

enum class FlagKind {
  kText,    // a string
  kWhen,    // a time as people write it (cli/when.h)
  kPlain,   // a number, an amount or a time
  kSwitch,  // true when given, takes no value
  kList,    // repeated, each time one item
  kPairs,   // repeated, each time KEY=VALUE
  kTerms,   // repeated, each time KEY=VALUE[,KEY=VALUE...][@LEVEL]
};

struct JobFlag {
  std::string_view flag;
  std::string_view key;  // of the document; a dot leads into a map
  FlagKind kind = FlagKind::kText;
  std::string value_name;
  std::string says;
};

std::span<const JobFlag> job_flags();

// Where the job is submitted from, as far as it shapes the job.
struct Surroundings {
  std::string directory;  // where a command given as flags runs unless --workdir says otherwise
  std::string (*variable)(const std::string& name) = nullptr;  // for --env NAME without a value
  // Returns the absolute path of a program that PATH leads to here, or "".
  std::string (*program)(const std::string& name) = nullptr;
  // Returns all variables as NAME=VALUE, for --export ALL.
  std::vector<std::string> (*variables)() = nullptr;
  Timestamp now = {};  // for times that are given as words
};

// Puts the flags and the command onto `document` (empty, or the tree of a file).
Result<void> put_flags(const JobOptions& options, const Surroundings& where, document::Node& document);

// The whole job document of a submission, read once by the model's reader so that mistakes are told before anything
// is sent. `text` is the content of options.file, if there is one.
Result<document::Node> job_document(const JobOptions& options, std::string_view text, const Surroundings& where);

}  // namespace berth::cli
