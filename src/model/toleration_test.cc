#include "model/toleration.h"

#include <doctest/doctest.h>

namespace berth {

// The rows of Kubernetes' own rule: the effect is empty or equal, the key is empty or equal, and so is the value
// unless the operator is Exists.
TEST_CASE("toleration: which taints it covers") {
  struct Row {
    const char* toleration;
    Taint taint;
    bool covered;
  };
  const Taint plain{"team", "a"};
  const Taint execute{"team", "a", TaintEffect::kNoExecute};
  const Row rows[] = {
      {"team", plain, true},
      {"team", execute, true},
      {"team", {"other", "a"}, false},
      {"team=a", plain, true},
      {"team=a", execute, true},
      {"team=b", plain, false},
      {"team=", plain, false},
      {"team=", {"team", ""}, true},
      {"team:NoSchedule", plain, true},
      {"team:NoSchedule", execute, false},
      {"team:NoExecute", plain, false},
      {"team=a:NoExecute", execute, true},
      {"team=b:NoExecute", execute, false},
      {"*", execute, true},
      {"*:NoSchedule", execute, false},
      {"nvidia.com/gpu", {"nvidia.com/gpu", "present"}, true},
      {"team=a", {"team=a", ""}, true},  // as old logs name the taint
  };
  for (const Row& row : rows) {
    CAPTURE(row.toleration);
    CAPTURE(text_of(row.taint));
    CHECK_EQ(tolerates(row.toleration, row.taint), row.covered);
  }
  CHECK(tolerates_all({"team:NoSchedule", "*:NoExecute"}, {plain, execute}));
  CHECK_FALSE(tolerates_all({"team:NoSchedule"}, {plain, execute}));
}

TEST_CASE("toleration: its text is read as it is written, and what is none is refused") {
  for (const char* text : {"team", "team=", "team=a", "team=a:NoSchedule", "*", "*:NoExecute"}) {
    CAPTURE(text);
    const auto read = parse_toleration(text);
    REQUIRE(read);
    CHECK_EQ(text_of(*read), text);
  }
  const std::pair<const char*, const char*> rows[] = {
      {"", "'' has no key"},
      {"=a", "'=a' has no key"},
      {":NoSchedule", "':NoSchedule' has no key"},
      {"*=a", "'*=a': a value needs the key of its taint"},
      {"a:b", "'a:b': there is no effect 'b'; NoSchedule and NoExecute keep tasks away"},
      {"a:PreferNoSchedule", "'a:PreferNoSchedule': there is no effect 'PreferNoSchedule'"},
  };
  for (const auto& [text, said] : rows) {
    CAPTURE(text);
    const auto read = parse_toleration(text);
    REQUIRE_FALSE(read);
    CHECK(read.error().message.starts_with(said));
  }
}

TEST_CASE("taint: its text names its value and an effect that evicts") {
  CHECK_EQ(text_of(Taint{"spot", ""}), "spot");
  CHECK_EQ(text_of(Taint{"team", "a"}), "team=a");
  CHECK_EQ(text_of(Taint{"team", "a", TaintEffect::kNoExecute}), "team=a:NoExecute");
}

}  // namespace berth
