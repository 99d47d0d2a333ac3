#include "executor/checkpoint_watch.h"

#include "executor/executor_fixture.h"

namespace berth::executor {

TEST_CASE("an acknowledgement is an object with attempt and step") {
  CHECK(decode_ack(R"({"attempt": 2, "step": 40, "time": 1.5})").has_value());
  CHECK(decode_ack(R"({"attempt": 2, "step": 40})")->step == 40);
  for (const char* bad : {"", "{", "[]", "null", R"({"step": 1})", R"({"attempt": 1})", R"({"attempt": 1, "step": -1})",
                          R"({"attempt": -1, "step": 1})", R"({"attempt": 1, "step": "7"})",
                          R"({"attempt": 1, "step": 1e400})", R"({"attempt": 1, "step": 99999999999999999999})"}) {
    CAPTURE(bad);
    CHECK_FALSE(decode_ack(bad).has_value());
  }
  CHECK_FALSE(decode_ack(std::string(100'000, '[')).has_value());
}

TEST_CASE_FIXTURE(ExecutorFixture,
                  "each file renamed into place is seen once; what is no ack is counted, not believed") {
  CheckpointWatch watch(path("saved"), 3);
  CHECK_FALSE(watch.look().has_value());
  std::filesystem::create_directory(path("saved"));
  const auto put = [&](const std::string& bytes) {
    std::ofstream(path("saved/ack.new")) << bytes;
    std::filesystem::rename(path("saved/ack.new"), path("saved/ack.json"));
  };
  put(R"({"attempt": 2, "step": 90})");
  CHECK_FALSE(watch.look().has_value());
  CHECK(watch.bad_acks() == 0);
  put(R"({"attempt": 3, "step": 100})");
  REQUIRE(watch.look().has_value());
  CHECK_FALSE(watch.look().has_value());
  put(R"({"attempt": 3, "step": 100})");
  CHECK(watch.look().has_value());
  put("not json");
  CHECK_FALSE(watch.look().has_value());
  CHECK_FALSE(watch.look().has_value());
  CHECK(watch.bad_acks() == 1);
  put(R"({"attempt": 4, "step": 1})");
  CHECK_FALSE(watch.look().has_value());
  CHECK(watch.bad_acks() == 2);
  std::filesystem::remove(path("saved/ack.json"));
  std::filesystem::create_symlink("/etc/passwd", path("saved/ack.json"));
  CHECK_FALSE(watch.look().has_value());
  CHECK(watch.bad_acks() == 3);
  std::filesystem::remove(path("saved/ack.json"));
  REQUIRE(::mkfifo(path("saved/ack.json").c_str(), 0600) == 0);
  CHECK_FALSE(watch.look().has_value());
  CHECK(watch.bad_acks() == 4);
}

TEST_CASE_FIXTURE(ExecutorFixture, "an acknowledgement that was there before the task is passed over") {
  std::filesystem::create_directory(path("saved"));
  std::ofstream(path("saved/ack.json")) << R"({"attempt": 1, "step": 90})";
  CheckpointWatch watch(path("saved"), 1);
  watch.skip_present();
  CHECK_FALSE(watch.look().has_value());
  std::ofstream(path("saved/ack.new")) << R"({"attempt": 1, "step": 90})";
  std::filesystem::rename(path("saved/ack.new"), path("saved/ack.json"));
  CHECK(watch.look().has_value());
  CheckpointWatch("", 1).skip_present();
}

TEST_CASE_FIXTURE(ExecutorFixture, "a task's checkpoints are reported, the one before its exit too") {
  auto& executor = open();
  auto task = shell(1,
                    "save() { echo \"{\\\"attempt\\\": 1, \\\"step\\\": $1, \\\"time\\\": 0}\" > $D/new; "
                    "mv $D/new $D/ack.json; }; D=$BERTH_CHECKPOINT_DIR; "
                    "trap 'save 20; exit 0' USR1; echo junk > $D/ack.json; sleep 0.6; save 10; "
                    "while :; do sleep 0.05; done");
  task.checkpoint_dir = path("deep/saved");
  REQUIRE(executor.start(task).has_value());
  REQUIRE(wait_until([&] { return !checkpoints.empty(); }));
  CHECK(checkpoints.back().step == 10);
  CHECK(checkpoints.back().attempt == 1);
  REQUIRE(executor.signal(task.key, 10).has_value());
  const auto exited = wait_for_exit(task.key);
  CHECK(exited.code == 0);
  CHECK(exited.bad_acks == 1);
  CHECK(checkpoints.back().step == 20);
  CHECK(read_log(1, LogStream::kStderr).find("berth: ack.json is not a checkpoint acknowledgement") == 0);
}

}  // namespace berth::executor
