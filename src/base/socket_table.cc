#include "base/socket_table.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace berth {

namespace {

constexpr std::uint32_t kListen = 0x0a;

template <class Number>
std::optional<Number> number_in(std::string_view text, int base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view next_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

// "0100007F:18EC": the words of the address as the machine has them in memory, and the port.
bool read_end(std::string_view word, SocketAddress& address, std::uint16_t& port) {
  const std::size_t colon = word.find(':');
  if (colon != 8 && colon != 32) return false;
  const auto number = number_in<std::uint16_t>(word.substr(colon + 1), 16);
  if (!number) return false;
  port = *number;
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t at = 0; at < colon; at += 8) {
    const auto part = number_in<std::uint32_t>(word.substr(at, 8), 16);
    if (!part) return false;
    std::memcpy(bytes.data() + at / 2, &*part, sizeof *part);
  }
  address = colon == 32 ? bytes : mapped_address({bytes[0], bytes[1], bytes[2], bytes[3]});
  return true;
}

bool is_everywhere(const SocketAddress& address) {
  return address == SocketAddress{} || address == mapped_address({0, 0, 0, 0});
}

std::optional<SocketRow> read_row(std::string_view line) {
  SocketRow row;
  next_word(line);  // its number
  if (!read_end(next_word(line), row.local, row.local_port)) return std::nullopt;
  if (!read_end(next_word(line), row.remote, row.remote_port)) return std::nullopt;
  const auto state = number_in<std::uint32_t>(next_word(line), 16);
  for (int skipped = 0; skipped < 3; ++skipped) next_word(line);  // queues, timer, retransmissions
  const auto uid = number_in<std::uint32_t>(next_word(line), 10);
  if (!state || !uid) return std::nullopt;
  row.listens = *state == kListen;
  row.uid = *uid;
  return row;
}

}  // namespace

SocketAddress mapped_address(const std::array<std::uint8_t, 4>& four) {
  SocketAddress address{};
  address[10] = address[11] = 0xff;
  std::copy(four.begin(), four.end(), address.begin() + 12);
  return address;
}

std::vector<SocketRow> parse_socket_table(std::string_view text) {
  std::vector<SocketRow> rows;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto row = read_row(text.substr(0, end))) rows.push_back(*row);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}

bool is_reached_by(const SocketAddress& bound, const SocketAddress& address) {
  return bound == address || is_everywhere(bound);
}

}  // namespace berth
