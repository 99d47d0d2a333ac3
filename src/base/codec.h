#pragma once
// A compact binary encoding of plain values, for events and checkpoints. Integers are zigzag varints. Strings and
// vectors carry their length, a variant its index. A struct carries the number of its fields, so that a newer struct
// reads an older record; base/fields.h says which fields may be left out. The decoder does not trust its input: if it
// is too short or invalid, ok() is false and the values are defaults. It allocates no more than the remaining bytes
// could hold.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/hash.h"
#include "base/strong_id.h"
#include "base/timestamp.h"

namespace berth {

// Writes a value field by field. It passes the integers and texts in it to the derived class, which has
// put_varint(integer) and put_text(bytes).
template <class Sink>
class FieldWriter {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      put_varint(static_cast<std::uint64_t>(value));
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      const auto wide = static_cast<std::int64_t>(value);
      put_varint((static_cast<std::uint64_t>(wide) << 1U) ^ static_cast<std::uint64_t>(wide >> 63));
    } else if constexpr (std::is_integral_v<T>) {
      put_varint(static_cast<std::uint64_t>(value));
    } else if constexpr (std::is_same_v<T, Timestamp>) {
      put(value.ms);
    } else if constexpr (HasFields<T>) {
      const std::uint64_t count = encoded_field_count(value);
      std::uint64_t index = 0;
      put_varint(count);
      for_each_field(value, [&](std::string_view, const auto& member) {
        if (index++ < count) put(member);
      });
    } else {
      put_composite(value);
    }
  }

 private:
  void put_composite(const std::string& text) { sink().put_text(text); }
  template <class Tag, class Rep>
  void put_composite(StrongId<Tag, Rep> id) {
    put(id.value());
  }
  template <class T>
  void put_composite(const std::vector<T>& items) {
    put_varint(items.size());
    for (const auto& item : items) put(item);
  }
  template <class T, std::size_t N>
  void put_composite(const std::array<T, N>& items) {
    for (const auto& item : items) put(item);
  }
  template <class T>
  void put_composite(const std::optional<T>& item) {
    put(item.has_value());
    if (item) put(*item);
  }
  template <class A, class B>
  void put_composite(const std::pair<A, B>& both) {
    put(both.first);
    put(both.second);
  }
  template <class... T>
  void put_composite(const std::variant<T...>& choice) {
    put_varint(choice.index());
    std::visit([this](const auto& value) { put(value); }, choice);
  }

  void put_varint(std::uint64_t value) { sink().put_varint(value); }
  Sink& sink() { return static_cast<Sink&>(*this); }
};

class Encoder : public FieldWriter<Encoder> {
 public:
  std::string take() { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

  void put_varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80U));
      value >>= 7U;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  void put_text(std::string_view text) {
    put_varint(text.size());
    bytes_.append(text);
  }

 private:
  std::string bytes_;
};

// Hashes the bytes that an Encoder would write, without writing them.
class FieldHasher : public FieldWriter<FieldHasher> {
 public:
  void put_varint(std::uint64_t value) { hash_.add(value); }
  void put_text(std::string_view text) { hash_.add(text); }
  std::uint64_t digest() const { return hash_.digest(); }

 private:
  Hasher hash_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }
  std::size_t remaining() const { return bytes_.size(); }

  std::uint64_t get_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return fail();
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      if (shift == 63 && byte > 1) return fail();
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }

  template <class T>
  void get(T& value) {
    if constexpr (std::is_enum_v<T>) {
      const std::uint64_t raw = get_varint();
      if constexpr (NamedEnum<T>) {
        if (raw >= EnumNames<T>::kNames.size()) {
          fail();
          return;
        }
      }
      value = static_cast<T>(raw);
    } else if constexpr (std::is_same_v<T, bool>) {
      const std::uint64_t raw = get_varint();
      if (raw > 1) fail();
      value = raw == 1;
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      const std::uint64_t raw = get_varint();
      const auto wide = static_cast<std::int64_t>(raw >> 1U) ^ -static_cast<std::int64_t>(raw & 1U);
      if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max()) {
        fail();
        return;
      }
      value = static_cast<T>(wide);
    } else if constexpr (std::is_integral_v<T>) {
      const std::uint64_t raw = get_varint();
      if (raw > std::numeric_limits<T>::max()) {
        fail();
        return;
      }
      value = static_cast<T>(raw);
    } else if constexpr (std::is_same_v<T, Timestamp>) {
      get(value.ms);
    } else if constexpr (HasFields<T>) {
      get_struct(value);
    } else {
      get_composite(value);
    }
  }

 private:
  std::uint64_t fail() {
    ok_ = false;
    bytes_ = {};
    return 0;
  }

  template <class T>
  void get_struct(T& value) {
    constexpr std::uint64_t kKnown = field_count<T>();
    const std::uint64_t count = get_varint();
    if (count > kKnown) {
      fail();
      return;
    }
    std::uint64_t index = 0;
    for_each_field(value, [&](std::string_view, auto& member) {
      if (index++ < count && ok_) get(member);
    });
  }
  void get_composite(std::string& text) {
    const std::uint64_t size = get_varint();
    if (size > bytes_.size()) {
      fail();
      return;
    }
    text.assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
  }
  template <class Tag, class Rep>
  void get_composite(StrongId<Tag, Rep>& id) {
    Rep raw{};
    get(raw);
    id = StrongId<Tag, Rep>(raw);
  }
  template <class T>
  void get_composite(std::vector<T>& items) {
    const std::uint64_t size = get_varint();
    if (size > bytes_.size()) {
      fail();
      return;
    }  // every item takes at least one byte
    items.clear();
    items.reserve(size);
    for (std::uint64_t i = 0; i < size && ok_; ++i) get(items.emplace_back());
  }
  template <class T, std::size_t N>
  void get_composite(std::array<T, N>& items) {
    for (auto& item : items) get(item);
  }
  template <class T>
  void get_composite(std::optional<T>& item) {
    bool present = false;
    get(present);
    item.reset();
    if (present && ok_) get(item.emplace());
  }
  template <class A, class B>
  void get_composite(std::pair<A, B>& both) {
    get(both.first);
    get(both.second);
  }
  template <class... T>
  void get_composite(std::variant<T...>& choice) {
    const std::uint64_t index = get_varint();
    if (index >= sizeof...(T)) {
      fail();
      return;
    }
    get_alternative<0>(choice, index);
  }
  template <std::size_t I, class... T>
  void get_alternative(std::variant<T...>& choice, std::uint64_t index) {
    if constexpr (I < sizeof...(T)) {
      if (index == I) {
        get(choice.template emplace<I>());
      } else {
        get_alternative<I + 1>(choice, index);
      }
    }
  }

  std::string_view bytes_;
  bool ok_ = true;
};

template <class T>
std::string encode(const T& value) {
  Encoder encoder;
  encoder.put(value);
  return encoder.take();
}

// Returns the value, or nothing if the bytes are not exactly one encoded T.
template <class T>
std::optional<T> decode(std::string_view bytes) {
  Decoder decoder(bytes);
  T value{};
  decoder.get(value);
  if (!decoder.ok() || !decoder.at_end()) return std::nullopt;
  return value;
}

}  // namespace berth
