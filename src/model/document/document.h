#pragma once
// A document: YAML or JSON text as a tree in which every node knows its line and column. It is as small a language as
// configuration needs, so that no two readers understand a file differently: no anchors or aliases, no tags, no merge
// keys, no second document, no duplicate keys, no tabs as indentation; and it is bounded (kMaxBytes, kMaxDepth,
// kMaxNodes) before anything is built. A scalar stays text: what it means is said by who reads it (document/reading.h),
// so `no` is a fine name and `1.10` never turns into 1.1.
//
// The tree is also how values are written: build one and print it as YAML or as JSON.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::document {

inline constexpr std::size_t kMaxBytes = 1024 * 1024;
inline constexpr std::size_t kMaxDepth = 64;
inline constexpr std::size_t kMaxNodes = 100'000;

// Both count from 1; columns in bytes. 0:0 is a node that was built and not read.
struct Position {
  int line = 0;
  int column = 0;
};

enum class NodeKind { kNull, kScalar, kList, kMap };

struct Entry;

struct Node {
  NodeKind kind = NodeKind::kNull;
  Position at;
  std::string text;            // kScalar
  bool quoted = false;         // kScalar: a string, whatever it looks like; otherwise it may be a number or a boolean
  std::vector<Node> items;     // kList
  std::vector<Entry> entries;  // kMap, in the order of the text

  const Node* find(std::string_view key) const;
  // Adds or replaces an entry; the node must be a map (or null, which becomes one).
  Node& set(std::string_view key, Node value);
};

struct Entry {
  std::string key;
  Position at;
  Node value;
};

// The one document in `text`. An error reads FILE:LINE:COLUMN: what is wrong; what would be right. kTooLarge over
// kMaxBytes, kInvalid otherwise.
Result<Node> parse(std::string_view text, std::string_view file);

// "FILE:LINE:COLUMN: ", the head of every message about a place in a document.
std::string place(std::string_view file, Position at);

Node map_node();
Node list_node();
Node string_node(std::string_view text);  // prints as a string even where it looks like a number
Node plain_node(std::string_view text);   // a number, an amount or a boolean
Node integer_node(std::int64_t value);

// Both end in a newline, and parse() reads either back into the same tree (positions aside).
std::string to_yaml(const Node& node);
std::string to_json_text(const Node& node);

}  // namespace berth::document
