#pragma once
// The web page as the build made it (web/), and the routes that serve it: GET / and GET /assets/{name}. Both are
// public, for the page asks for the token itself; nothing in it is secret. They are no part of /openapi.json: the page
// is a client of the API.
//
// The page may load scripts and styles from this server alone, and nothing is markup that is not in its files: the
// content security policy has no exception. Names under /assets/ have a digest of the content in them, so they are kept
// for ever; / is asked for again each time, by its ETag.

#include <string_view>
#include <vector>

#include "api/http/router.h"

namespace berth::api {

struct PageFile {
  std::string_view name;  // index.html, or the name under /assets/
  std::string_view content_type;
  std::string_view digest;  // of the content; the ETag
  std::string_view gzip;    // the content, compressed
};

struct Page {
  std::vector<PageFile> files;     // empty: this program was built without the page
  std::string_view absent_reason;  // then why, and what would give it one
};

// What this program was built with. Defined by the build (web/CMakeLists.txt), in the library berth_page.
const Page& built_page();

// `page` must outlive the router.
void add_page_routes(http::Router& router, const Page& page);

}  // namespace berth::api
