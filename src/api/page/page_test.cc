#include "api/page/page.h"

#include <doctest/doctest.h>

#include "api/page/inflate.h"
#include "api/routes/fake_service.h"

namespace berth::api {
namespace {

using namespace std::string_view_literals;

// "hello\n", as gzip -n writes it.
constexpr std::string_view kHello =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06\x00\x00\x00"sv;

const Page& small_page() {
  static const Page page{{{"index.html", "text/html; charset=utf-8", "0123", kHello},
                          {"index-abcd.js", "text/javascript; charset=utf-8", "4567", kHello}},
                         ""};
  return page;
}

struct Served {
  FakeService service;
  http::Router router;
  http::Authenticator nobody;

  explicit Served(const Page& page = small_page()) : router(make_router(service)) { add_page_routes(router, page); }

  http::Response get(std::string_view target, std::vector<http::Header> headers = {}) const {
    const auto slot = std::make_shared<RecordedAnswer>();
    auto decision = http::admit({.method = "GET", .target = target, .headers = std::move(headers)}, router, nobody);
    if (auto* refusal = std::get_if<http::Response>(&decision)) return *refusal;
    auto& admitted = std::get<http::Admitted>(decision);
    admitted.route->handler(admitted.request, http::Responder(slot));
    return slot->response;
  }
};

std::string header_of(const http::Response& response, std::string_view name) {
  for (const http::Header& header : response.headers) {
    if (header.name == name) return header.value;
  }
  return "";
}

}  // namespace

TEST_CASE("the page is served without a token, with a policy that allows this server alone") {
  const http::Response page = Served().get("/");
  CHECK_EQ(page.status, 200);
  CHECK_EQ(page.content_type, "text/html; charset=utf-8");
  CHECK_EQ(page.body, "hello\n");
  const std::string policy = header_of(page, "Content-Security-Policy");
  CHECK_NE(policy.find("default-src 'none'"), std::string::npos);
  for (const char* exception : {"unsafe", "data:", "http:", "https:", "*"}) {
    CHECK_EQ(policy.find(exception), std::string::npos);
  }
  CHECK_EQ(header_of(page, "Cache-Control"), "no-cache");
}

TEST_CASE("files with a digest in their name are kept for ever") {
  const http::Response script = Served().get("/assets/index-abcd.js");
  CHECK_EQ(script.status, 200);
  CHECK_EQ(script.content_type, "text/javascript; charset=utf-8");
  CHECK_EQ(header_of(script, "Cache-Control"), "public, max-age=31536000, immutable");
  CHECK_EQ(Served().get("/assets/index.html").status, 404);
  CHECK_EQ(Served().get("/assets/..%2Findex.html").status, 404);
}

TEST_CASE("a reader that takes gzip gets it, another one the plain content") {
  const Served served;
  for (const char* accept : {"gzip", "deflate, gzip;q=0.5", "br;q=1.0, *", "GZIP;q=0, gzip"}) {
    CAPTURE(accept);
    const http::Response page = served.get("/", {{"accept-encoding", accept}});
    CHECK_EQ(header_of(page, "Content-Encoding"), "gzip");
    CHECK_EQ(inflate(page.body), "hello\n");
  }
  for (const char* accept : {"", "br", "gzip;q=0", "gzip; q=0.000, br", "gzipped"}) {
    CAPTURE(accept);
    const http::Response page = served.get("/", {{"accept-encoding", accept}});
    CHECK_EQ(header_of(page, "Content-Encoding"), "");
    CHECK_EQ(page.body, "hello\n");
  }
}

TEST_CASE("a reader that has the page already is told so") {
  const Served served;
  const std::string etag = header_of(served.get("/"), "ETag");
  const http::Response unchanged = served.get("/", {{"if-none-match", "\"other\", " + etag}});
  CHECK_EQ(unchanged.status, 304);
  CHECK(unchanged.body.empty());
  CHECK_EQ(served.get("/", {{"if-none-match", "\"other\""}}).status, 200);
}

TEST_CASE("a program without the page says so at /, and why") {
  const Page none{{}, "there was no Node where it was built."};
  const http::Response answer = Served(none).get("/");
  CHECK_EQ(answer.status, 404);
  CHECK_EQ(answer.content_type, "text/plain; charset=utf-8");
  CHECK_NE(answer.body.find("there was no Node where it was built."), std::string::npos);
}

}  // namespace berth::api
