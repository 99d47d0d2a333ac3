#include "model/document/document.h"

#include <doctest/doctest.h>

#include "base/random.h"

namespace berth::document {
namespace {

std::string refusal(const std::string& text) {
  const auto tree = parse(text, "f.yaml");
  return tree ? "accepted" : tree.error().message;
}

std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    if (a.entries[i].key != b.entries[i].key || !same(a.entries[i].value, b.entries[i].value)) return false;
  }
  return true;
}

std::string random_text(Random& random) {
  static const std::vector<std::string> kPieces = {
      "a",  "7",  "-", ": ", "#", "\"", "'", "\\", "\n", " ",    "null", "true", "~", "{", "]",       ", ",
      "&x", "*x", "!", "|",  ">", "%",  "@", "é",  "😀",  "\x01", "\t",   "<<",   "=", "?", "\xc2\x85"};
  std::string text;
  for (std::uint64_t n = random.below(5); n > 0; --n) text += kPieces[random.below(kPieces.size())];
  return text;
}

Node random_tree(Random& random, int depth) {
  const std::uint64_t kind = random.below(depth > 0 ? 5 : 3);
  if (kind == 0) return plain_node(std::to_string(random.below(100'000)));
  if (kind <= 2) return string_node(random_text(random));
  Node node = kind == 3 ? list_node() : map_node();
  for (std::uint64_t n = random.below(4); n > 0; --n) {
    if (kind == 3)
      node.items.push_back(random_tree(random, depth - 1));
    else
      node.set(random_text(random), random_tree(random, depth - 1));
  }
  return node;
}

}  // namespace

TEST_CASE("every node knows its line and column") {
  const auto tree = parse("a: 1\nlist:\n  - x\n  - {k: v}\n", "f.yaml");
  REQUIRE(tree.has_value());
  CHECK_EQ(tree->find("a")->at.line, 1);
  CHECK_EQ(tree->find("a")->at.column, 4);
  const Node& list = *tree->find("list");
  CHECK_EQ(list.items[1].find("k")->at.line, 4);
  CHECK_EQ(list.items[1].find("k")->at.column, 9);
  CHECK_EQ(list.items[1].entries[0].at.column, 6);
}

TEST_CASE("JSON is read too: tabs, surrogate pairs, no space after a colon") {
  const auto tree = parse("{\n\t\"a\":\"\\ud83d\\ude00\",\n\t\"b\":[1,true,null]}\n", "f.json");
  REQUIRE_MESSAGE(tree.has_value(), tree.error().message);
  CHECK_EQ(tree->find("a")->text, "😀");
  CHECK_EQ(tree->find("b")->items[1].text, "true");
  CHECK_EQ(tree->find("b")->items[1].at.column, 9);
  CHECK_EQ(tree->find("b")->items[2].kind, NodeKind::kNull);
}

TEST_CASE("a scalar stays the text that was written") {
  const auto tree = parse("a: no\nb: 010\nc: 1.10\nd: 0x1F\ne: 2026-11-21\nf: 'true'\n", "f.yaml");
  REQUIRE(tree.has_value());
  for (const auto& [key, text] :
       {std::pair{"a", "no"}, {"b", "010"}, {"c", "1.10"}, {"d", "0x1F"}, {"e", "2026-11-21"}, {"f", "true"}}) {
    CHECK_EQ(tree->find(key)->text, text);
  }
  CHECK_FALSE(tree->find("a")->quoted);
  CHECK(tree->find("f")->quoted);
}

TEST_CASE("what two readers could understand differently is refused, with its place") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"a: &x 1\n", "f.yaml:1:4: anchors (&name) are not accepted; write the value out where it is needed"},
      {"a: &x [1]\n", "f.yaml:1:4: anchors (&name) are not accepted; write the value out where it is needed"},
      {"a: &x\n", "f.yaml:1:4: anchors (&name) are not accepted; write the value out where it is needed"},
      {"a: 1\na: 2\n", "f.yaml:2:1: 'a' is given twice; keep one"},
      {"{\"a\": 1, \"a\": 2}", "f.yaml:1:10: 'a' is given twice; keep one"},
      {"a: !!str 1\n", "f.yaml:1:4: tags (!name) are not accepted; leave the tag out"},
      {"a: ! 1\n", "f.yaml:1:4: tags (!name) are not accepted; leave the tag out"},
      {"a: !!python/object:os.system {}\n", "f.yaml:1:4: tags (!name) are not accepted; leave the tag out"},
      {"a: {<<: {b: 1}}\n", "f.yaml:1:5: merge keys (<<) are not accepted; write the entries out"},
      {"a:\n\t- 1\n", "f.yaml:2:1: a tab in the indentation; indent with spaces"},
      {"a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document begins here; give one document in one file"},
      {"{\"a\": 1} {\"b\": 2}", "f.yaml:1:10: a second document begins here; give one document in one file"},
      {"a: \xff\n", "f.yaml:1:4: this is not UTF-8; save the file as UTF-8"},
      {"a: \xc0\xaf\n", "f.yaml:1:4: this is not UTF-8; save the file as UTF-8"},
      {"a: \xed\xa0\x80\n", "f.yaml:1:4: this is not UTF-8; save the file as UTF-8"},
      {std::string("a: \0b\n", 6), "f.yaml:1:4: the text holds a NUL byte; leave it out"},
      {"a: \x1b[31m\n", "f.yaml:1:4: the text holds a control character; write it as an escape in double quotes"},
      {"a: \"x\\0y\"\n", "f.yaml:1:4: a string holds a NUL; leave it out"},
      {"a: \"x\\Ny\"\n", "f.yaml:1:4: the escapes \\N and \\_ are not accepted; write \\u0085 or \\u00a0"},
      {"[1]: 2\n", "f.yaml:1:1: a key must be a name"},
      {"null: 2\n", "f.yaml:1:1: a key must be a name"},
      {"{\"" + std::string(1'001, 'k') + "\": 2}",
       "f.yaml:1:2: this key has 1001 bytes; YAML has room for 1000 as it is printed"},
      {"a: [1\n", "f.yaml:2:1: the [ of the list that begins in line 1 has no closing ] before this"},
      {"a: 'x\n", "f.yaml:1:4: a string begins here and has no closing quote"},
      {"a: 'x''\n", "f.yaml:1:4: a string begins here and has no closing quote"},
      {"a: \"x\\\"\nb: 1\n", "f.yaml:1:4: a string begins here and has no closing quote"},
      {"a: {b: 1\nc: 2\n", "f.yaml:2:2: the { of the map that begins in line 1 has no closing } before this"},
      {"q:\n  a: 1\n b: 2\n",
       "f.yaml:3:2: this does not go on with the map that begins in line 1; write KEY: VALUE, indented as its other "
       "keys"},
      {"q:\n  - a\n  b: 1\n",
       "f.yaml:3:3: this does not go on with the map that begins in line 1; write KEY: VALUE, indented as its other "
       "keys"},
      {"a: 'x", "f.yaml:1:6: a string has no closing quote before the end of the text"},
      {"a: b: c\n",
       "f.yaml:1:5: a second ': ' in one line, or a key in the wrong place; put a text with a colon in quotes"},
      {"{\"a\": \"\\ud83d\"}", "f.yaml:1:14: this is not YAML or JSON: invalid unicode: 55357"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CHECK_EQ(refusal(row.first), row.second);
  }
}

TEST_CASE("a thousand million laughs end at the first anchor, and an alias alone is refused") {
  std::string text = "a: &a [lol, lol]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    text += std::string(1, c) + ": &" + c + " [*" + static_cast<char>(c - 1) + ", *" + static_cast<char>(c - 1) + "]\n";
  }
  CHECK_EQ(refusal(text), "f.yaml:1:4: anchors (&name) are not accepted; write the value out where it is needed");
  CHECK_EQ(refusal("a: *x\n"), "f.yaml:1:4: this is not YAML or JSON: the referenced anchor is not defined");
}

TEST_CASE("depth, size and the number of values are bounded") {
  CHECK_EQ(refusal(repeated("[", 64) + repeated("]", 64)), "accepted");
  CHECK_EQ(refusal(repeated("[", 65) + repeated("]", 65)), "f.yaml:1:65: nested more than 64 levels deep");
  CHECK_EQ(refusal(repeated("[", 1'000'000)), "f.yaml:1:33: nested more than 64 levels deep");
  CHECK_EQ(refusal(repeated("{\"a\":", 100'000)), "f.yaml:1:316: nested more than 64 levels deep");
  CHECK_EQ(refusal(repeated("- ", 100'000)), "f.yaml:1:129: nested more than 64 levels deep");
  CHECK_EQ(refusal(repeated("? ", 100'000)), "f.yaml:1:129: nested more than 64 levels deep");
  CHECK_EQ(refusal(std::string(kMaxBytes + 1, 'a')), "f.yaml: 1048577 bytes; a document has at most 1 MiB");
  CHECK_EQ(refusal("[" + repeated("a,", 99'998) + "a]"), "accepted");
  CHECK_EQ(refusal("[" + repeated("a,", 99'999) + "a]"), "f.yaml:1:1: more than 100000 values; split the document");
}

TEST_CASE("an empty text is an empty document") {
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "\xef\xbb\xbf"}) {
    const auto tree = parse(text, "f.yaml");
    REQUIRE(tree.has_value());
    CHECK_EQ(tree->kind, NodeKind::kNull);
    CHECK_EQ(tree->at.line, 1);
  }
}

TEST_CASE("any tree of any strings reads back from its YAML and from its JSON") {
  Random random(3);
  for (int i = 0; i < 3000; ++i) {
    const Node tree = random_tree(random, 4);
    const std::string yaml = to_yaml(tree);
    const std::string json = to_json_text(tree);
    CAPTURE(yaml);
    CAPTURE(json);
    const auto from_yaml = parse(yaml, "f.yaml");
    REQUIRE_MESSAGE(from_yaml.has_value(), from_yaml.error().message);
    CHECK(same(*from_yaml, tree));
    const auto from_json = parse(json, "f.json");
    REQUIRE_MESSAGE(from_json.has_value(), from_json.error().message);
    CHECK(same(*from_json, tree));
  }
}

TEST_CASE("an unquoted scalar that YAML would take for something else is quoted when it is printed") {
  for (const char* text : {"-", "--", "---", "...", ".", "-.", "a: b", "a, b", "#x", "~", "x y"}) {
    Node list = list_node();
    list.items.push_back(plain_node(text));
    const std::string yaml = to_yaml(list);
    CAPTURE(yaml);
    const auto back = parse(yaml, "f.yaml");
    REQUIRE(back.has_value());
    REQUIRE_EQ(back->items.size(), 1);
    CHECK_EQ(back->items[0].text, text);
  }
}

TEST_CASE("set adds at the end and replaces in place") {
  Node map = map_node();
  map.set("a", plain_node("1")).set("b", plain_node("2")).set("a", string_node("x y"));
  CHECK_EQ(to_yaml(map), "a: \"x y\"\nb: 2\n");
}

}  // namespace berth::document
