#pragma once
// Cuts what an API server sends into the texts of single objects, while it comes: the items of a list, or the lines of
// a watch. So one object is held at a time, however long the answer is. An object over the limit is dropped while it
// comes; of it only the beginning is given, which is enough to find its name.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace berth::backend {

// A real API server stores objects of at most 1.5 MiB, which JSON can write with six bytes for one.
inline constexpr std::size_t kMostObjectBytes = 16 << 20;
inline constexpr std::size_t kKeptOfTooLarge = 4096;

struct ObjectReceiver {
  std::function<void(std::string_view)> object;
  std::function<void(std::string_view beginning)> too_large;
};

// Collects one object within the limit.
class ObjectText {
 public:
  explicit ObjectText(std::size_t most) : most_(most) {}
  void append(std::string_view bytes);
  bool empty() const { return text_.empty(); }
  // Gives what was collected to the receiver, and begins anew.
  void give_to(const ObjectReceiver& receiver);

 private:
  std::size_t most_;
  std::string text_;
  bool too_large_ = false;
};

// The lines of a watch. A last line without an end is not given: the connection was cut in it.
class LineSplitter {
 public:
  explicit LineSplitter(ObjectReceiver receiver, std::size_t most = kMostObjectBytes)
      : receiver_(std::move(receiver)), line_(most) {}
  void feed(std::string_view bytes);

 private:
  ObjectReceiver receiver_;
  ObjectText line_;
};

// The elements of the array `items` of one JSON object. Everything else is kept as the envelope: kind, apiVersion,
// metadata, and "items":[]. What is no JSON gives a broken envelope, which does not parse.
class ListSplitter {
 public:
  explicit ListSplitter(ObjectReceiver receiver, std::size_t most = kMostObjectBytes)
      : receiver_(std::move(receiver)), most_(most), item_(most) {}
  void feed(std::string_view bytes);
  // Requires: the answer has ended. An answer that was cut has no whole envelope.
  const std::string& envelope() const { return envelope_; }

 private:
  void step(char c);
  bool in_items() const { return items_depth_ != 0 && depth_ >= items_depth_; }

  ObjectReceiver receiver_;
  std::size_t most_;
  ObjectText item_;
  std::string envelope_;
  std::string key_;  // the last string at depth 1
  int depth_ = 0;
  int items_depth_ = 0;  // the depth inside of the array `items`; 0: it has not come, or has ended
  bool in_string_ = false;
  bool escaped_ = false;
};

// Returns "NAMESPACE/NAME" as the beginning of an object's text has it, cut and made printable; or "an object without
// a name".
std::string name_in(std::string_view text);

}  // namespace berth::backend
