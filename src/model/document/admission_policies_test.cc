#include "model/document/admission_policies.h"

#include <doctest/doctest.h>

#include "model/document/admission_document.h"

namespace berth::document {
namespace {

std::string exported(const std::string& rules, std::string_view queue = "") {
  std::vector<RuleOfQueue> all;
  const auto read = read_rules("admission: {" + rules + "}", "r.yaml");
  REQUIRE(read.has_value());
  for (const AdmissionRule& rule : *read) all.push_back({"", rule});
  const auto text = policies_of(all, queue);
  return text ? *text : text.error().message;
}

// How often the word stands in the text.
std::size_t count_in(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("rules as policies: a rule is a policy and a binding, by the label of the queue and the mode of the rule") {
  const std::string text = exported("safe: {forbid: [host-namespaces]}", "research/nlp");
  CHECK_EQ(text, R"(# The admission rules of berth at queue 'research/nlp'. They hold in namespaces with the label )"
                 "berth.dev/rules: research.nlp\n" +
                     text.substr(text.find("---\n")));
  for (const char* part : {"kind: ValidatingAdmissionPolicy\n", "kind: ValidatingAdmissionPolicyBinding\n",
                           "!object.spec.?hostNetwork.orValue(false)", "(rule 'safe' of the cluster of berth)",
                           "berth.dev/rules: research.nlp", "Deny"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  CHECK_NE(exported("safe: {mode: warn, use: baseline}").find("Warn"), std::string::npos);
  CHECK_NE(exported("safe: {mode: dry-run, use: baseline}").find("Audit"), std::string::npos);
  CHECK_NE(exported("safe: {use: baseline}").find("berth.dev/rules: cluster"), std::string::npos);
}

TEST_CASE("rules as policies: each word and key that a single pod can break is said once") {
  for (const std::string_view word : EnumNames<ForbiddenOption>::kNames) {
    const std::string text = exported("r: {forbid: [" + std::string(word) + "]}");
    CAPTURE(word);
    CHECK_EQ(count_in(text, "expression:"), word == "exclusive" || word == "no-image" ? 0 : 2);
  }
  CHECK_EQ(count_in(exported("r: {use: restricted}"), "message:"), 8);
  CHECK_EQ(count_in(exported("r: {images: [a/*, b], digest: true, max_time: 1h, checkpoint: true, labels: [x, y], "
                             "host_paths: [/data/*, /scratch]}"),
                    "message:"),
           7);
  const std::string paths = exported("r: {host_paths: [/data/*, /scratch]}");
  CHECK_NE(paths.find("v.hostPath.path.startsWith('/data/') && v.hostPath.path.substring(size('/data/'))"),
           std::string::npos);
  CHECK_NE(paths.find("v.hostPath.path == '/scratch'"), std::string::npos);
}

TEST_CASE("rules as policies: what an API server cannot know is told in a comment") {
  for (const char* rule : {"classes: [training], digest: true", "above_gpus: 8, digest: true", "max_gpus: 8",
                           "roles: [lead], digest: true", "forbid: [exclusive]"}) {
    const std::string text = exported("r: {" + std::string(rule) + "}");
    CAPTURE(rule);
    CHECK_NE(text.find("# Rule 'r' of the cluster is not said here: "), std::string::npos);
    CHECK_EQ(text.find("---"), std::string::npos);
  }
  CHECK_EQ(count_in(exported("r: {roles: [member], digest: true}"), "message:"), 1);
  const std::string both = exported("r: {max_gpus: 8, digest: true}");
  CHECK_NE(both.find("max_gpus is not said here"), std::string::npos);
  CHECK_EQ(count_in(both, "message:"), 1);
}

TEST_CASE("rules as policies: what stands in a rule does not get out of its literal") {
  const std::string text = exported("r: {host_paths: [\"/a'b\\\\c\"]}");
  CHECK_NE(text.find(R"(v.hostPath.path == '/a\\'b\\\\c')"), std::string::npos);
  CHECK(exported("r: {digest: true}", std::string(64, 'q')).starts_with("queue '"));
}

TEST_CASE("rules as policies: two rules never have one name") {
  const auto names = [](const std::string& text) {
    const std::size_t at = text.find("name: berth-");
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK_NE(names(exported("a-b: {digest: true}")), names(exported("a_b: {digest: true}")));
  const auto rules = read_rules("admission: {r: {digest: true}}", "r.yaml");
  const auto both = policies_of({{"", rules->front()}, {"cluster", rules->front()}}, "cluster/x");
  REQUIRE(both.has_value());
  const std::string first = names(*both);
  const std::string second =
      names(both->substr(both->find("kind: ValidatingAdmissionPolicy\n", both->find(first) + 1)));
  CHECK_NE(first, second);
  for (const char* queue : {"cluster", "a.b", "a/b.c"})
    CHECK(exported("r: {digest: true}", queue).starts_with("queue '" + std::string(queue) + "': its label would be"));
  CHECK_EQ(names(exported("a_b: {digest: true}")).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-: "),
           std::string::npos);
}

}  // namespace berth::document
