#include "api/page/page.h"

#include <algorithm>
#include <string>

#include "api/http/problem.h"
#include "api/page/inflate.h"
#include "base/result.h"

namespace berth::api {
namespace {

using http::Access;
using http::Header;
using http::Method;
using http::Request;
using http::Responder;
using http::Response;

constexpr const char* kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

constexpr const char* kNoPage =
    "This berth was built without its web page: %REASON%\n"
    "Everything is on the command line: `berth jobs`, `berth why`, `berth queues`; `berth --help` lists it all.\n";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Calls `on_item` with each item of a comma-separated header.
template <class OnItem>
void for_each_item(std::string_view list, const OnItem& on_item) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    on_item(trimmed(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

// RFC 9110, section 12.5.3: gzip is taken where it is named and not with the weight 0.
bool takes_gzip(std::string_view accept_encoding) {
  bool takes = false;
  for_each_item(accept_encoding, [&](std::string_view item) {
    const std::size_t semicolon = std::min(item.find(';'), item.size());
    const std::string_view coding = trimmed(item.substr(0, semicolon));
    if (coding != "gzip" && coding != "*") return;
    const std::size_t weight = item.find("q=", semicolon);
    takes =
        weight == std::string_view::npos || item.substr(weight + 2).find_first_not_of("0. ") != std::string_view::npos;
  });
  return takes;
}

bool names_etag(std::string_view if_none_match, std::string_view etag) {
  bool named = false;
  for_each_item(if_none_match, [&](std::string_view item) { named = named || item == etag || item == "*"; });
  return named;
}

std::vector<Header> headers_of(const PageFile& file, const std::string& etag) {
  const bool is_index = file.name == "index.html";
  std::vector<Header> headers{{"ETag", etag},
                              {"Vary", "Accept-Encoding"},
                              {"Cache-Control", is_index ? "no-cache" : "public, max-age=31536000, immutable"},
                              {"Cross-Origin-Resource-Policy", "same-origin"}};
  if (!is_index) return headers;
  headers.push_back({"Content-Security-Policy", kContentSecurityPolicy});
  headers.push_back({"Cross-Origin-Opener-Policy", "same-origin"});
  headers.push_back({"Referrer-Policy", "no-referrer"});
  return headers;
}

Response answer(const PageFile& file, const Request& request) {
  const std::string etag = "W/\"" + std::string(file.digest) + "\"";  // weak: the same for both codings
  Response response{
      .status = 200, .content_type = std::string(file.content_type), .headers = headers_of(file, etag), .body = {}};
  if (names_etag(request.header("if-none-match"), etag)) {
    response.status = 304;
  } else if (takes_gzip(request.header("accept-encoding"))) {
    response.headers.push_back({"Content-Encoding", "gzip"});
    response.body = std::string(file.gzip);
  } else {
    response.body = inflate(file.gzip);
  }
  return response;
}

const PageFile* file_named(const Page& page, std::string_view name) {
  for (const PageFile& file : page.files) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

Response no_page(const Page& page) {
  std::string text = kNoPage;
  text.replace(text.find("%REASON%"), 8, page.absent_reason);
  return {.status = 404, .content_type = "text/plain; charset=utf-8", .headers = {}, .body = std::move(text)};
}

void get_index(const Page& page, const Request& request, const Responder& to) {
  const PageFile* index = file_named(page, "index.html");
  to.send(index == nullptr ? no_page(page) : answer(*index, request));
}

void get_asset(const Page& page, const Request& request, const Responder& to) {
  const std::string& name = request.path_params.at("name");
  const PageFile* file = name == "index.html" ? nullptr : file_named(page, name);
  to.send(file == nullptr ? http::problem(404, "not-found", "no such file of the page; load / again")
                          : answer(*file, request));
}

}  // namespace

void add_page_routes(http::Router& router, const Page& page) {
  router.add({.method = Method::kGet,
              .pattern = "/",
              .access = Access::kPublic,
              .doc = {.operation_id = "getPage",
                      .summary = "The web page.",
                      .responses = {{.status = 200,
                                     .description = "The page.",
                                     .schema = {},
                                     .content_type = "text/html; charset=utf-8"},
                                    {.status = 404, .description = "This program was built without it."}},
                      .tags = {"page"}},
              .handler = [&page](const Request& request, const Responder& to) { get_index(page, request, to); }});
  router.add({.method = Method::kGet,
              .pattern = "/assets/{name}",
              .access = Access::kPublic,
              .doc = {.operation_id = "getPageAsset",
                      .summary = "A script, a style or a picture of the web page.",
                      .responses = {{.status = 200,
                                     .description = "The file.",
                                     .schema = {},
                                     .content_type = "text/javascript; charset=utf-8"},
                                    {.status = 404, .description = "There is no such file."}},
                      .tags = {"page"},
                      .parameters = {http::path_parameter("name", "The file's name, with a digest in it.")}},
              .handler = [&page](const Request& request, const Responder& to) { get_asset(page, request, to); }});
}

}  // namespace berth::api
