#include "slurm/parser.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace berth::slurm {
namespace {

std::string message_of(Tool tool, const std::vector<std::string>& words) {
  const auto parsed = parse_words(tool, words);
  return parsed ? "" : parsed.error().message;
}

TEST_CASE("options are read as getopt_long reads them") {
  const auto parsed =
      parse_words(Tool::kSbatch, {"-N1", "--part=train", "-J", "a b", "--gres", "gpu:2", "-HQ", "job.sh", "-x"});
  REQUIRE(parsed);
  CHECK(parsed->value("nodes") == "1");
  CHECK(parsed->value("partition") == "train");
  CHECK(parsed->value("job-name") == "a b");
  CHECK(parsed->value("gres") == "gpu:2");
  CHECK(parsed->has("hold"));
  CHECK(parsed->has("quiet"));
  CHECK(parsed->operands == std::vector<std::string>{"job.sh", "-x"});
}

TEST_CASE("options of scontrol may stand behind its words") {
  const auto parsed = parse_words(Tool::kScontrol, {"show", "jobid", "-dd", "7", "-o"});
  REQUIRE(parsed);
  CHECK(parsed->has("details"));
  CHECK(parsed->has("oneliner"));
  CHECK(parsed->operands == std::vector<std::string>{"show", "jobid", "7"});
}

TEST_CASE("squeue knows its options in the singular and the plural") {
  const auto parsed = parse_words(Tool::kSqueue, {"--account=a", "--accounts=b", "--partition=p", "--nodes=n1", "-P"});
  REQUIRE(parsed);
  CHECK(parsed->value("accounts") == "b");
  CHECK(parsed->value("partitions") == "p");
  CHECK(not_held(*parsed).warnings == std::vector<std::string>{"--priority is not held: a job has one pool"});
}

TEST_CASE("operands and options of squeue may be mixed") {
  const auto parsed = parse_words(Tool::kSqueue, {"extra", "-h", "--", "-r"});
  REQUIRE(parsed);
  CHECK(parsed->has("noheader"));
  CHECK_FALSE(parsed->has("array"));
  CHECK(parsed->operands == std::vector<std::string>{"extra", "-r"});
}

TEST_CASE("a wrong option is told in the words of the C library") {
  CHECK(message_of(Tool::kSbatch, {"--nosuch"}) == "unrecognized option '--nosuch'");
  CHECK(message_of(Tool::kSbatch, {"-@"}) == "invalid option -- '@'");
  CHECK(message_of(Tool::kSbatch, {"-J"}) == "option requires an argument -- 'J'");
  CHECK(message_of(Tool::kSbatch, {"--wrap"}) == "option '--wrap' requires an argument");
  CHECK(message_of(Tool::kSbatch, {"--hold=1"}) == "option '--hold' doesn't allow an argument");
  CHECK(message_of(Tool::kSqueue, {"--no"}) ==
        "option '--no' is ambiguous; possibilities: '--noconvert' '--nodelist' '--nodes' '--noheader'");
}

TEST_CASE("an option that is not held is never silent") {
  const auto parsed = parse_words(Tool::kSbatch, {"--mail-type=END", "--mail-type=ALL", "-L", "x"});
  REQUIRE(parsed);
  const NotHeld lacking = not_held(*parsed);
  CHECK(lacking.warnings == std::vector<std::string>{"--mail-type is not held: no mail is sent"});
  CHECK(lacking.refusal == "--licenses is not held: there are no licenses");
}

TEST_CASE("each option that is not held is named, for every tool") {
  std::size_t silent = 0;
  for (const Tool tool : kTools) {
    for (const Option& option : options_of(tool)) {
      const std::string word = "--" + std::string(option.name) + (option.takes == Takes::kValue ? "=x" : "");
      const auto parsed = parse_words(tool, {word});
      REQUIRE(parsed);
      const NotHeld lacking = not_held(*parsed);
      const std::string said = "--" + std::string(option.name) + " is not held: " + std::string(option.says);
      const bool named = option.held == Held::kHeld || (option.held == Held::kRefused && lacking.refusal == said) ||
                         lacking.warnings == std::vector<std::string>{said};
      if (!named) ++silent;
    }
  }
  CHECK(silent == 0);
}

TEST_CASE("no name or letter stands for two options of a tool, and each row says something") {
  for (const Tool tool : kTools) {
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const Option& option : options_of(tool)) {
      CAPTURE(std::string(option.name));
      CHECK(names.insert(option.name).second);
      CHECK((option.letter == 0 || letters.insert(option.letter).second));
      CHECK_FALSE(option.says.empty());
    }
  }
}

TEST_CASE("docs/slurm.md has the tables of the options") {
  std::ifstream page("docs/slurm.md");
  std::ostringstream text;
  text << page.rdbuf();
  const bool has_tables = text.str().find(option_pages()) != std::string::npos;
  CHECK_MESSAGE(has_tables, "put the output of `berth slurm options` between the marks of docs/slurm.md");
}

}  // namespace
}  // namespace berth::slurm
