#pragma once
// A document: YAML or JSON text as a tree, in which every node knows its line and column. The language is as small as
// configuration needs, so that no two readers understand a file differently. There are no anchors or aliases, no tags,
// no merge keys, no second document, no duplicate keys, and no tabs as indentation. Its size is limited (kMaxBytes,
// kMaxDepth, kMaxNodes) before the tree is built. A scalar stays text until it is read into a value
// (document/reading.h). So `no` is a valid name and `1.10` never turns into 1.1.
//
// Values are written through the same tree: build it and print it as YAML or as JSON.

#include <cstddef>
#include <string>
#include <string_view>
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

struct Entry {
  std::string key;
  Position at;
  Node value;
};

// Returns the only document in `text`. An error reads FILE:LINE:COLUMN: what is wrong; what would be right. Its code is
// kTooLarge above kMaxBytes, else kInvalid.
Result<Node> parse(std::string_view text, std::string_view file);

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
