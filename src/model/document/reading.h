#pragma once
// Reading a document into values: a Value is a node together with its path and the Reading it belongs to. The Reading
// keeps the first error and its place; after it, readers go on with defaults, so that code which reads a document is a
// table of keys and not a ladder of checks. Ask the Reading once, at the end.

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
  explicit Reading(std::string_view file) : file_(file) {}

  const std::optional<Error>& error() const { return error_; }
  const std::string& file() const { return file_; }
  void refuse(Position at, const std::string& message) {
    if (!error_) error_ = invalid(place(file_, at) + message);
  }

 private:
  std::string file_;
  std::optional<Error> error_;
};

class Value;

// A key that a map may have, and what is done with its value.
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

  // Calls the key that each entry names; a name that is not among them is refused, with its new name or
  // the nearest one as a hint.
  void map(const std::vector<Key>& keys) const;
  // `other` takes the names that are not among the keys; it returns false to have them refused after all.
  void map(const std::vector<Key>& keys, const std::function<bool(const Entry&, const Value&)>& other) const;
  void each_entry(const std::function<void(const Entry&, const Value&)>& visit) const;
  void each_item(const std::function<void(const Value&)>& visit) const;

  std::string string() const;
  std::string name() const;  // a string that is a well-formed name
  bool boolean() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  std::int64_t milli() const;
  std::int64_t memory_mib() const;
  std::int64_t duration_s() const;
  std::optional<Timestamp> time() const;
  std::vector<std::string> strings() const;  // a list; a single string stands for a list of one
  std::vector<std::pair<std::string, std::string>> string_map() const;

  template <NamedEnum E>
  E word() const {
    const auto found = enum_from_name<E>(string());
    if (!found && !reading_->error()) refuse_word(EnumNames<E>::kNames);
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

// The word among `known` that `word` was probably meant to be, or nothing: at most a third of it differs.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace berth::document
