#include "explain/viewer.h"

#include <string>

#include "explain/why.h"
#include "model/why_answer.h"
#include "support/fleet_fixture.h"

namespace berth {

using explain::Viewer;

// Three teams, of which one borrows what the others wait for.
class Teams : public FleetFixture {
 public:
  Teams() {
    QueueConfig red = queue("red");
    red.guaranteed.gpu_milli = 4000;
    command(ApplyConfig{config({red, queue("blue"), queue("green")}), "op"});
    command(RegisterNode{node("n1", 8)});
    blue = submit(job("blue", 1, 8));
    cycle();
    green = submit(job("green", 1, 2));
    later = submit(job("blue", 1, 1));
    red_job = submit(job("red", 1, 8));
  }

  std::string text(JobId id, const Viewer& viewer) {
    return text_of(explain::why(state, id, now, viewer).answer, true);
  }
  Viewer team(const std::string& path) { return Viewer::sees_below(state.queue_at(path)->id); }

  JobId blue, green, later, red_job;
};

TEST_CASE_FIXTURE(Teams, "one who sees all reads the names of jobs and queues") {
  const std::string text = this->text(green, Viewer::sees_all());
  CHECK_MESSAGE(text.find("queue blue") != std::string::npos, text);
}

TEST_CASE_FIXTURE(Teams, "a team reads no name and no number of another team's job, wherever it waits") {
  struct Look {
    JobId job;
    std::string own;
  };
  for (const Look& look : {Look{green, "green"}, Look{later, "blue"}, Look{red_job, "red"}}) {
    const std::string text = this->text(look.job, team(look.own));
    for (const std::string other : {"red", "blue", "green"}) {
      if (other == look.own) continue;
      CHECK_MESSAGE(text.find("queue " + other) == std::string::npos, text);
    }
    for (const JobId other : {blue, green, later, red_job}) {
      if (state.queue(state.job(other)->queue).path == look.own) continue;
      CHECK_MESSAGE(text.find("job " + std::to_string(other.value())) == std::string::npos, text);
      CHECK_MESSAGE(text.find("jobs " + std::to_string(other.value())) == std::string::npos, text);
    }
  }
}

TEST_CASE_FIXTURE(Teams, "what a viewer may not see changes words only: code, place in line and remedies stay") {
  const WhyAnswer all = explain::why(state, green, now, Viewer::sees_all()).answer;
  const WhyAnswer own = explain::why(state, green, now, team("green")).answer;
  CHECK(all.code == own.code);
  CHECK_EQ(all.never, own.never);
  REQUIRE(all.line);
  REQUIRE(own.line);
  CHECK_EQ(all.line->number, own.line->number);
  CHECK_EQ(all.line->can_start_before, own.line->can_start_before);
  CHECK_EQ(all.remedies.size(), own.remedies.size());
}

TEST_CASE_FIXTURE(Teams, "hidden jobs are counted beside those that are named") {
  const Viewer viewer = team("blue");
  const explain::Words words(state, viewer, now);
  CHECK_EQ(words.jobs({blue, later}, 5), "jobs 1 and 3");
  CHECK_EQ(words.jobs({blue, later}, 1), "job 1 and 1 more");
  CHECK_EQ(words.jobs({blue, green, red_job}, 5), "job 1 and 2 jobs of other queues");
  CHECK_EQ(words.jobs({green}, 5), "a job of another queue");
  CHECK_EQ(words.queue(state.queue_at("red")->id), "another queue");
}

TEST_CASE("a time is read with how far it is") {
  CHECK_EQ(explain::span_text(1), "1 s");
  CHECK_EQ(explain::span_text(119'000), "119 s");
  CHECK_EQ(explain::span_text(240'000), "4 min");
  CHECK_EQ(explain::span_text(3 * 3'600'000 + 20 * 60'000), "3 h 20 min");
  CHECK_EQ(explain::span_text(72 * 3'600'000LL), "3 days");
}

}  // namespace berth
