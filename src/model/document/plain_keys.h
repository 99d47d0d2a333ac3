#pragma once
// Forms of plain keys, for the table in job_keys.cc alone: how a member of JobSpec or TaskGroup is read and written.
//
//   text<&JobSpec::name>()
//   duration<&JobSpec::checkpoint, &CheckpointContract::grace_s>()
//
// A member that has its default is not written. always() is for one that is, so that a later default cannot change what
// was asked. Errors are those of Value.

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/document/job_keys.h"
#include "model/document/reading.h"

namespace berth::document {

// The two directions of a form. read() gets the form for its range.
struct AsText {
  static std::string read(const KeyForm& form, const Value& value);
  static Node node(const std::string& text) { return string_node(text); }
};
struct AsLevel {  // a text that is not empty
  static std::string read(const KeyForm& form, const Value& value);
  static Node node(const std::string& text) { return string_node(text); }
};
struct AsInteger {
  static std::int64_t read(const KeyForm& form, const Value& value) { return value.integer(form.low, form.high); }
  static Node node(std::int64_t number) { return plain_node(std::to_string(number)); }
};
struct AsBytes {  // MiB
  static std::int64_t read(const KeyForm& form, const Value& value);
  static Node node(std::int64_t mib);
};
struct AsDuration {  // seconds above zero; no limit is said by leaving the key out
  static std::int64_t read(const KeyForm& form, const Value& value);
  static Node node(std::int64_t seconds);
};
struct AsTime {
  static std::optional<Timestamp> read(const KeyForm&, const Value& value) { return value.time(); }
  static Node node(const std::optional<Timestamp>& time);
};
struct AsBool {
  static bool read(const KeyForm&, const Value& value) { return value.boolean(); }
  static Node node(bool on) { return plain_node(on ? "true" : "false"); }
};
template <NamedEnum E>
struct AsWord {
  static E read(const KeyForm&, const Value& value) { return value.word<E>(); }
  static Node node(E word) { return string_node(name_of(word)); }
};
struct AsTexts {
  static std::vector<std::string> read(const KeyForm&, const Value& value) { return value.strings(); }
  static Node node(const std::vector<std::string>& texts);
};
struct AsPairs {
  static Labels read(const KeyForm&, const Value& value) { return value.string_map(); }
  static Node node(const Labels& pairs);
};
struct AsLabels {  // pairs, sorted
  static Labels read(const KeyForm& form, const Value& value);
  static Node node(const Labels& pairs) { return AsPairs::node(pairs); }
};

namespace plain_detail {

template <class>
struct OwnerOf;
template <class Owner, class Member>
struct OwnerOf<Member Owner::*> {
  using type = Owner;
};

// The member that a path of member pointers leads to, from the job or from the task group.
template <auto First, auto... Rest, class Place>
auto& member(const Place& place) {
  if constexpr (std::is_same_v<typename OwnerOf<decltype(First)>::type, JobSpec>) {
    return ((place.job.*First).*....*Rest);
  } else {
    return ((place.group.*First).*....*Rest);
  }
}

template <class As, auto... Path>
void read(const KeyForm& form, const Value& value, JobTarget to) {
  auto& target = member<Path...>(to);
  target = static_cast<std::remove_reference_t<decltype(target)>>(As::read(form, value));
}

template <class As, auto... Path>
Node write(const KeyForm& form, JobSource from) {
  static const JobSpec job;
  static const TaskGroup group;
  const auto& value = member<Path...>(from);
  if (!form.always && value == member<Path...>(JobSource{job, group})) return {};
  return As::node(value);
}

template <class As, auto... Path>
constexpr KeyForm form(KeyKind kind) {
  return {.kind = kind, .read = read<As, Path...>, .write = write<As, Path...>};
}

template <class As, auto... Path>
constexpr KeyForm ranged(KeyKind kind, std::int64_t low, std::int64_t high) {
  KeyForm made = form<As, Path...>(kind);
  made.low = low;
  made.high = high;
  return made;
}

}  // namespace plain_detail

template <auto... Path>
constexpr KeyForm text(std::int64_t most_bytes = 0) {
  return plain_detail::ranged<AsText, Path...>(KeyKind::kText, 0, most_bytes);
}
template <auto... Path>
constexpr KeyForm level() {
  return plain_detail::ranged<AsLevel, Path...>(KeyKind::kText, 1, 0);
}
template <auto... Path>
constexpr KeyForm integer(std::int64_t low, std::int64_t high) {
  return plain_detail::ranged<AsInteger, Path...>(KeyKind::kInteger, low, high);
}
template <auto... Path>
constexpr KeyForm bytes() {
  return plain_detail::form<AsBytes, Path...>(KeyKind::kBytes);
}
template <auto... Path>
constexpr KeyForm duration() {
  return plain_detail::form<AsDuration, Path...>(KeyKind::kDuration);
}
template <auto... Path>
constexpr KeyForm time() {
  return plain_detail::form<AsTime, Path...>(KeyKind::kTime);
}
template <auto... Path>
constexpr KeyForm boolean() {
  return plain_detail::form<AsBool, Path...>(KeyKind::kBool);
}
template <NamedEnum E, auto... Path>
constexpr KeyForm word() {
  KeyForm made = plain_detail::form<AsWord<E>, Path...>(KeyKind::kWord);
  made.words = EnumNames<E>::kNames;
  return made;
}
template <auto... Path>
constexpr KeyForm texts() {
  return plain_detail::form<AsTexts, Path...>(KeyKind::kTexts);
}
template <auto... Path>
constexpr KeyForm pairs() {
  return plain_detail::form<AsPairs, Path...>(KeyKind::kPairs);
}
template <auto... Path>
constexpr KeyForm labels() {
  return plain_detail::form<AsLabels, Path...>(KeyKind::kPairs);
}

// A map of keys that have rows of their own.
constexpr KeyForm map() { return {.kind = KeyKind::kMap}; }

// A key whose reader and writer are code of its own.
template <auto Read, auto Write>
constexpr KeyForm custom(KeyKind kind, std::int64_t low = 0, std::int64_t high = 0) {
  return {.kind = kind,
          .low = low,
          .high = high,
          .read = [](const KeyForm&, const Value& value, JobTarget to) { Read(value, to); },
          .write = [](const KeyForm&, JobSource from) -> Node { return Write(from); }};
}

constexpr KeyForm always(KeyForm form) {
  form.always = true;
  return form;
}

}  // namespace berth::document
