#pragma once
// A document: YAML or JSON text as a tree, in which every node knows its line and column. The language is as small as
// configuration needs, so that no two readers understand a file differently. There are no anchors or aliases, no tags,
// no merge keys, no second document, no duplicate keys, and no tabs as indentation. Its size is limited (kMaxBytes,
// kMaxDepth, kMaxNodes) before the tree is built. A scalar stays text until it is read into a value
// (document/reading.h). So `no` is a valid name and `1.10` never turns into 1.1.
//
// Values are written through the same tree: build it and print it as YAML or as JSON.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::document {

inline constexpr std::size_t kMaxBytes = 1024 * 1024;
inline constexpr std::size_t kMaxDepth = 64;
inline constexpr std::size_t kMaxNodes = 100'000;

// Line and column count from 1; columns are bytes. A node that was built and not read has 0:0.
struct Position {
  int line = 0;
  int column = 0;
};

enum class NodeKind { kNull, kScalar, kList, kMap };

struct Entry;

struct Node {
  NodeKind kind = NodeKind::kNull;
  Position at;
  std::string text;  // kScalar
  // kScalar: a quoted scalar is always a string; an unquoted one may be a number or a boolean.
  bool quoted = false;
  std::vector<Node> items;     // kList
  std::vector<Entry> entries;  // kMap, in the order of the text

  const Node* find(std::string_view key) const;
  // Adds or replaces an entry. Requires a map, or null, which becomes a map.
  Node& set(std::string_view key, Node value);
};

// One mistake in a document.
struct Mistake {
  Position at;
  std::string path;     // of the value, such as queues.research.max.gpus; empty: the message names what is meant
  std::string message;  // what is wrong; what would be right
};
inline constexpr std::size_t kMostMistakes = 50;  // that are told of one document

// Returns "FILE:LINE:COLUMN: PATH: MESSAGE".
std::string mistake_line(std::string_view file, const Mistake& mistake);

// What a document says, or all its mistakes in the order of the text.
template <class T>
struct Checked {
  std::optional<T> value;
  std::vector<Mistake> mistakes = {};
};

// Returns an error with one line for each mistake. Requires at least one.
Error error_of(std::string_view file, const std::vector<Mistake>& mistakes);

template <class T>
Result<T> result_of(std::string_view file, Checked<T> checked) {
  if (!checked.value) return error_of(file, checked.mistakes);
  return std::move(*checked.value);
}

struct Entry {
  std::string key;
  Position at;
  Node value;
};

// Returns the only document in `text`. An error reads FILE:LINE:COLUMN: what is wrong; what would be right. Its code is
// kTooLarge above kMaxBytes, else kInvalid.
Result<Node> parse(std::string_view text, std::string_view file);
// The same for a text within kMaxBytes. What is no YAML or JSON has one mistake, because the rest cannot be told apart.
Checked<Node> check_syntax(std::string_view text);

// Returns "FILE:LINE:COLUMN: ", the beginning of every message about a place in a document.
std::string place(std::string_view file, Position at);

Node map_node();
Node list_node();
Node string_node(std::string_view text);  // prints as a string even where it looks like a number
Node plain_node(std::string_view text);   // a number, an amount or a boolean
Node integer_node(std::int64_t value);

// Both return text that ends in a newline. parse() reads it back into the same tree, apart from positions.
std::string to_yaml(const Node& node);
std::string to_json_text(const Node& node);

}  // namespace berth::document
