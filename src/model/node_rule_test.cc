#include "model/node_rule.h"

#include <doctest/doctest.h>

#include "base/codec.h"
#include "model/job.h"

namespace berth {
namespace {

NodeRule rule_in(std::string_view line) {
  auto rule = parse_node_rule(line);
  REQUIRE_MESSAGE(rule.has_value(), rule.error().message);
  return std::move(*rule);
}

std::string refusal_of(std::string_view line) {
  const auto rule = parse_node_rule(line);
  return rule ? std::string() : rule.error().message;
}

struct OldTaint {
  std::string key;
  std::string value;
  static constexpr auto fields() { return field_list(field("key", &OldTaint::key), field("value", &OldTaint::value)); }
};

const Labels kNode{{"cores", "16"}, {"gpu", ""}, {"zone", "z1"}};

}  // namespace

TEST_CASE("node rule: a line allows the nodes that its conditions hold for") {
  const std::pair<const char*, bool> rows[] = {
      {"zone=z2|z1", true},
      {"zone=z2", false},
      {"zone!=z2", true},
      {"zone!=z1", false},
      {"rack!=r1", true},
      {"rack=r1", false},
      {"gpu", true},
      {"gpu=", true},
      {"!gpu", false},
      {"!rack", true},
      {"cores>15", true},
      {"cores>16", false},
      {"cores<+17", true},
      {"cores<-1", false},
      {"rack>0", false},
      {"zone<9", false},
      {"zone=z1 && cores>99", false},
      {"zone=z9 || cores>15 && !rack", true},
      {"metadata.name=n1", true},
      {"metadata.name!=n1|n2", false},
  };
  for (const auto& [line, allowed] : rows) {
    CAPTURE(line);
    CHECK_EQ(allows(rule_in(line), "n1", kNode), allowed);
    CHECK(line_of(rule_in(line)).has_value());
  }
  CHECK_FALSE(allows(NodeRule{}, "n1", kNode));
  CHECK_FALSE(allows(NodeRule{{{}}}, "n1", kNode));
}

TEST_CASE("node rule: what is no rule is refused with what would be one") {
  const std::pair<const char*, const char*> rows[] = {
      {"", "'' is no condition; give KEY=VALUE|VALUE"},
      {"=a", "'=a' is no condition"},
      {"a=b && ", "'' is no condition"},
      {"a b", "'a b' is no condition"},
      {"a=b=c", "'a=b=c' is no condition"},
      {"cores>many", "'cores>many': Gt needs one value that is a whole number"},
      {"cores<1|2", "'cores<1|2': Lt needs one value that is a whole number"},
      {"!metadata.name", "'!metadata.name': the name of a node goes with In and NotIn alone"},
  };
  for (const auto& [line, said] : rows) {
    CAPTURE(line);
    CHECK(refusal_of(line).starts_with(said));
  }
}

TEST_CASE("node rule: its words name the values, and of many the first") {
  CHECK_EQ(text_of(rule_in("zone=b|a && !spot || cores>8")),
           "zone in (a, b) and spot does not exist or cores over (8)");
  CHECK_EQ(text_of(rule_in("a=1|2|3|4|5|6|7|8|9")), "a in (1, 2, 3, 4, 5, 6, 7, 8 and 1 more)");
  CHECK_EQ(text_of(NodeRule{}), "no node");
}

TEST_CASE("node rule: the bytes of a group without rules, and of a taint that keeps away, are those of old logs") {
  CHECK(encode(Taint{"a", "b"}) == encode(OldTaint{"a", "b"}));
  CHECK(encode(Taint{"a", "b", TaintEffect::kNoExecute}) != encode(OldTaint{"a", "b"}));
  TaskGroup group;
  const auto before = encode(group);
  group.node_rules = {rule_in("a=b")};
  CHECK(encode(group).size() > before.size());
  CHECK(decode<TaskGroup>(encode(group)).value() == group);
  CHECK(decode<TaskGroup>(before).value() == TaskGroup{});
}

}  // namespace berth
