#include "model/why_answer.h"

#include <doctest/doctest.h>

#include <sstream>

namespace berth {
namespace {

WhyAnswer waiting() {
  WhyAnswer answer;
  answer.code = ReasonCode::kInsufficientResources;
  answer.headline = "Job 11 waits for 3 free GPUs; none is free now.";
  answer.line = WhyAnswer::Line{30, true, 20, "queue a goes first"};
  answer.start = WhyAnswer::Start{StartBound::kNotBefore, Timestamp{1000}, "not before 19:06:51 UTC (in 4 min)"};
  answer.remedies = {{"quota", RemedyBy::kOperator, true, "queue a had max 4 instead of 2"},
                     {"evict", RemedyBy::kOperator, false, "job 6 left"},
                     {"gpus", RemedyBy::kOwner, false, "each task asked for 2 GPUs instead of 3"},
                     {"tasks", RemedyBy::kOwner, false, "the job had 1 task instead of 2"}};
  answer.details = {"a fact"};
  return answer;
}

TEST_CASE("the short form has the answer, the place in line, the start and two remedies, those of the owner first") {
  CHECK_EQ(text_of(waiting(), false),
           "Job 11 waits for 3 free GPUs; none is free now. It is number 30 in line (20 can start before it).\n"
           "  Line    queue a goes first\n"
           "  Start   not before 19:06:51 UTC (in 4 min)\n"
           "  Now if  each task asked for 2 GPUs instead of 3\n"
           "          the job had 1 task instead of 2\n");
}

TEST_CASE("the long form has all remedies, the code and the details") {
  const std::string text = text_of(waiting(), true);
  for (const char* part : {"queue a had max 4", "job 6 left", "Reason  insufficient-resources", "Details a fact"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

TEST_CASE("no line of an answer is longer than 100 columns, whatever the names") {
  WhyAnswer answer = waiting();
  answer.headline = "Job 1";
  for (int i = 0; i < 100; ++i) answer.headline += " wörter";
  answer.quota = answer.headline;
  answer.details = {answer.headline, answer.headline};
  std::istringstream lines(text_of(answer, true));
  for (std::string line; std::getline(lines, line);) {
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1U : 0U;
    CHECK(columns <= 100);
  }
}

TEST_CASE("the place in line says what it knows of those ahead") {
  WhyAnswer answer;
  answer.headline = "Job 1 waits.";
  const auto told = [&](WhyAnswer::Line line) {
    answer.line = std::move(line);
    return text_of(answer, false);
  };
  CHECK_EQ(told({1, true, 0, ""}), "Job 1 waits. It is first in line.\n");
  CHECK_EQ(told({2, true, 1, ""}), "Job 1 waits. It is number 2 in line.\n");
  CHECK_EQ(told({2, true, 0, ""}), "Job 1 waits. It is number 2 in line (the one ahead cannot start now).\n");
  CHECK_EQ(told({101, false, 100, ""}), "Job 1 waits. It is number 101 or later in line.\n");
}

}  // namespace
}  // namespace berth
