#pragma once
// Result<T>: a value or an Error. Operating errors (bad input, a refused append, a lost node) are values; bugs are
// CHECKs. There are few error codes; each maps to one HTTP status and one exit code. The message says what is wrong,
// where, and what would be right. Named like std::expected, which g++ 12 lacks.

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace berth {

enum class ErrorCode {
  kInvalid,      // the request is malformed or breaks a rule; a retry cannot help
  kNotFound,     // no such object
  kConflict,     // contradicts the present state (same key with another body, a stale epoch)
  kUnavailable,  // not now; a retry may help
  kDenied,       // not permitted
  kTooLarge,     // above a stated limit
  kCorrupt,      // stored bytes are not what was written
  kIo,           // the operating system refused
  kUnsupported,  // known, but not supported yet
};

struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    BERTH_CHECK(has_value());
    return std::get<0>(state_);
  }
  const T& value() const& {
    BERTH_CHECK(has_value());
    return std::get<0>(state_);
  }
  T&& value() && {
    BERTH_CHECK(has_value());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    BERTH_CHECK(!has_value());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const {
    BERTH_CHECK(failed_);
    return error_;
  }

 private:
  Error error_;
  bool failed_ = false;
};

inline Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }
inline Error not_found(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
inline Error conflict(std::string message) { return {ErrorCode::kConflict, std::move(message)}; }

const char* name_of(ErrorCode code);

}  // namespace berth
