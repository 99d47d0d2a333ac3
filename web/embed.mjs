// node embed.mjs DIST PAGE_FILES.cc: builds the page into DIST, and writes its files, compressed, as a C++ source that
// defines berth::api::built_page(). Nothing of it depends on when or where it is built.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const [dist, output] = process.argv.slice(2);
await build({ logLevel: 'warn', build: { outDir: dist, emptyOutDir: true } });

const paths = [
  'index.html',
  ...readdirSync(join(dist, 'assets'))
    .sort()
    .map((name) => `assets/${name}`),
];
let arrays = '';
let rows = '';
paths.forEach((path, index) => {
  const type = types[extname(path)];
  if (!type) throw new Error(`${path} has a type that embed.mjs does not know`);
  const content = readFileSync(join(dist, path));
  const gzip = gzipSync(content, { level: 9 });
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 20);
  arrays += `constexpr unsigned char kFile${index}[] = {\n${[...gzip].join(',').replace(/((?:\d+,){40})/g, '$1\n')}};\n`;
  rows += `    {"${path.replace('assets/', '')}", "${type}", "${digest}", text(kFile${index})},\n`;
});

writeFileSync(
  output,
  `// Made by web/embed.mjs.
#include "api/page/page.h"

namespace berth::api {
namespace {

${arrays}
template <std::size_t N>
std::string_view text(const unsigned char (&bytes)[N]) {
  return {reinterpret_cast<const char*>(bytes), N};
}

}  // namespace

const Page& built_page() {
  static const Page page{{
${rows}  }, ""};
  return page;
}

}  // namespace berth::api
`,
);
