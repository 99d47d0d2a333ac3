#pragma once
// Reading a document into values. A Value is a node with its path and the Reading that it belongs to. The Reading
// collects the mistakes, and a value that is one reads as its default. So code that reads a document is a table of keys
// without checks. Look at Reading::mistakes() once, at the end.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "model/document/document.h"

namespace berth::document {

class Reading {
 public:
  // Collects a mistake. Of those at one place the first counts, because the others follow from it.
  void refuse(Position at, std::string path, std::string message);
  // The same for a mistake that follows from no other. Both collect at most kMostMistakes.
  void tell(Position at, std::string path, std::string message);
  bool full() const { return mistakes_.size() >= kMostMistakes; }
  const std::vector<Mistake>& mistakes() const { return mistakes_; }
  // Returns them in the order of the text, and leaves none.
  std::vector<Mistake> take_mistakes();

 private:
  std::vector<Mistake> mistakes_;
};

class Value;

// A key that a map may have, and the function that reads its value.
struct Key {
  std::string_view name;
  std::function<void(const Value&)> read;
};

class Value {
 public:
  Value(Reading& reading, const Node& node, std::string path)
      : reading_(&reading), node_(&node), path_(std::move(path)) {}

  const Node& node() const { return *node_; }
  const std::string& path() const { return path_; }
  Reading& reading() const { return *reading_; }
  void refuse(const std::string& message) const;

  // Calls the key of each entry. A name without a key is refused, with the most similar key as a hint.
  void map(const std::vector<Key>& keys) const;
  // `other` is called for names without a key; if it returns false, the name is refused.
  void map(const std::vector<Key>& keys, const std::function<bool(const Entry&, const Value&)>& other) const;
  void each_entry(const std::function<void(const Entry&, const Value&)>& visit) const;
  void each_item(const std::function<void(const Value&)>& visit) const;

  std::string string() const;
  std::string name() const;  // a well-formed name
  bool boolean() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  std::int64_t milli() const;
  std::int64_t memory_mib() const;
  std::int64_t duration_s() const;
  std::optional<Timestamp> time() const;
  std::vector<std::string> strings() const;  // a list; a single string is a list of one
  std::vector<std::pair<std::string, std::string>> string_map() const;

  template <NamedEnum E>
  E word() const {
    const auto found = enum_from_name<E>(string());
    if (!found) refuse_word(EnumNames<E>::kNames);
    return found.value_or(E{});
  }

 private:
  bool expect(NodeKind kind, std::string_view what) const;
  void refuse_word(std::span<const std::string_view> words) const;
  template <class T>
  T take(Result<T> parsed) const;

  Reading* reading_;
  const Node* node_;
  std::string path_;
};

}  // namespace berth::document
