#include "api/http/screen.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace berth::http {
namespace {

int status_of_head(const std::string& head) {
  const Limits limits;
  const HeadScan scan = scan_head(head, 0, limits);
  if (scan.refusal) return scan.refusal->status;
  if (scan.size == 0) return 0;  // more is needed
  const auto refusal = screen_head(std::string_view(head).substr(0, scan.size), limits);
  return refusal ? refusal->status : 200;
}

TEST_CASE("head: every row gets its status") {
  struct Row {
    std::string head;
    int status;
  };
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::vector<Row> rows{
      {get + "\r\n", 200},
      {"GET / HTTP/1.0\r\n\r\n", 200},
      {"GET http://x/ HTTP/1.1\r\nHost:\r\n\r\n", 200},
      {post + "Content-Length: 5\r\n\r\n", 200},
      {post + "Transfer-Encoding: chunked\r\n\r\n", 200},
      {post + "Transfer-Encoding:  Chunked \r\n\r\n", 200},
      {get, 0},
      {get + "\r", 0},
      // The request line.
      {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400},
      {"GET /\r\nHost: x\r\n\r\n", 400},
      {"GE\tT / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
      {"GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505},
      {"GET / http/1.1\r\nHost: x\r\n\r\n", 400},
      {"\x16\x03\x01\x02", 400},
      {"GET /" + std::string(9000, 'a'), 414},
      {"GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
      // Lines.
      {"GET / HTTP/1.1\nHost: x\n\n", 400},
      {get + "A: b\n\r\n", 400},
      {get + "A: b\r\n c\r\n\r\n", 400},
      {get + "A: b\rc\r\n\r\n", 400},
      {get + std::string("A: b\0c\r\n\r\n", 10), 400},
      {get + "A: b\x01\r\n\r\n", 400},
      {get + "A : b\r\n\r\n", 400},
      {get + ": b\r\n\r\n", 400},
      {get + "A\r\n\r\n", 400},
      {get + "A(): b\r\n\r\n", 400},
      // Limits.
      {get + "A: " + std::string(33'000, 'a'), 431},
      {get + "A: " + std::string(33'000, 'a') + "\r\n\r\n", 431},
      // Addressing.
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {get + "Host: x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      // Framing.
      {post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
      {post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
      {post + "Content-Length: 5, 5\r\n\r\n", 400},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: +5\r\n\r\n", 400},
      {post + "Content-Length: 0x10\r\n\r\n", 400},
      {post + "Content-Length: \r\n\r\n", 400},
      {post + "Content-Length: 99999999999999999999\r\n\r\n", 413},
      {post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
      {post + "Transfer-Encoding: identity\r\n\r\n", 501},
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {post + "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
      {post + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
  };
  for (const Row& row : rows) {
    CAPTURE(row.head.substr(0, 200));
    CHECK(status_of_head(row.head) == row.status);
  }
}

TEST_CASE("head: too many headers") {
  std::string head = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 99; ++i) head += "A: b\r\n";
  CHECK(status_of_head(head + "\r\n") == 200);
  CHECK(status_of_head(head + "A: b\r\n\r\n") == 431);
}

TEST_CASE("head: the end is found wherever the bytes are cut") {
  const std::string head = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string received = head + "next";
  for (std::size_t cut = 1; cut < head.size(); ++cut) {
    const HeadScan first = scan_head(std::string_view(received).substr(0, cut), 0, Limits{});
    CHECK(first.size == 0);
    CHECK_FALSE(first.refusal);
    CHECK(scan_head(received, cut, Limits{}).size == head.size());
  }
}

}  // namespace
}  // namespace berth::http
