#include "sim/trace/plain_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>

#include <sstream>

namespace berth::sim {
namespace {

// Ends the parse at the first thing that plain YAML does not have. It throws because that is how yaml-cpp reports; the
// exception ends in load_plain_yaml.
class PlainGuard : public YAML::EventHandler {
 public:
  explicit PlainGuard(const YamlLimits& limits) : limits_(limits) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { count(mark, {}, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, "aliases are not allowed"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string&) override {
    count(mark, tag, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor);
  }
  void OnMapEnd() override { --depth_; }

 private:
  [[noreturn]] static void refuse(const YAML::Mark& mark, const char* why) { throw YAML::ParserException(mark, why); }
  void count(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse(mark, "anchors are not allowed");
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags are not allowed");
    if (++nodes_ > limits_.max_nodes) refuse(mark, "too many nodes");
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    count(mark, tag, anchor);
    if (++depth_ > limits_.max_depth) refuse(mark, "nested too deeply");
  }

  const YamlLimits& limits_;
  std::size_t nodes_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace

Result<YAML::Node> load_plain_yaml(const std::string& name, std::string_view text, const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return Error{ErrorCode::kTooLarge, name + ": more than " + std::to_string(limits.max_bytes) + " bytes"};
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    PlainGuard guard(limits);
    if (!parser.HandleNextDocument(guard)) return invalid(name + ": the file is empty");
    if (parser.HandleNextDocument(guard)) return invalid(name + ": more than one document");
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    return invalid(name + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
}

}  // namespace berth::sim
