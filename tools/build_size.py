#!/usr/bin/env python3
"""What a first build of berth has to compile, counted without a compiler, so that it does not grow unseen.

    tools/build_size.py BUILD               compares a configured build folder with tools/build-size.txt
    tools/build_size.py BUILD --rewrite     writes the figures of today there
    tools/build_size.py --self-test         shows that each figure can fail

The minutes of `./quickstart` are those of the texts that the target `berth` compiles. Three figures stand for them:

    texts      how many there are
    kilobytes  of each text: its sources and all headers of berth that they include, directly or through others; summed
    libraries  of each text: the dear libraries that it includes, directly or through others; summed

A figure that is more than 15 % above its line fails. Changing the file is a commit of its own that says what is bought by it.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "tools/build-size.txt"
MOST_GROWTH_PERCENT = 15
QUOTED = re.compile(r'^#include "([^"]+)"', re.M)
ANGLED = re.compile(r"^#include <([^>]+)>", re.M)
DEAR = re.compile(r"(boost/(?:json|asio|beast|math)|CLI|spdlog|fmt|yaml-cpp|doctest|openssl)\b")
TITLE = """# What the target `berth` compiles, as tools/build_size.py counts it. More than 15 % above a line fails.
#
"""


def texts_of(build):
    """The sources that the target `berth` compiles, from ninja's own list."""
    done = subprocess.run(["ninja", "-C", str(build), "-t", "commands", "berth"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{build} is not configured (tools/build dev does that): {done.stdout}{done.stderr}")
    return [(build / name).resolve() for name in re.findall(r" -c (\S+\.cc)$", done.stdout, re.M)]


class Sources:
    """What files include, each read once."""

    def __init__(self, root):
        self.root, self.read = root, {}

    def includes(self, path):
        """(bytes, headers of berth, dear libraries) of one file itself."""
        if path not in self.read:
            text = path.read_text(errors="replace")
            places = (self.root / "src", path.parent)
            headers = [next((at / name for at in places if (at / name).exists()), None) for name in QUOTED.findall(text)]
            dear = {found[1] for name in ANGLED.findall(text) if (found := DEAR.match(name))}
            self.read[path] = len(text.encode()), [header.resolve() for header in headers if header], dear
        return self.read[path]

    def weigh(self, text):
        """(bytes, number of dear libraries) of one text with all that it includes. What the build made weighs nothing itself."""
        seen, libraries, size, waiting = set(), set(), 0, [text]
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            own, headers, dear = self.includes(path)
            size += own if (self.root / "src") in path.parents else 0
            libraries |= dear
            waiting += headers
        return size, len(libraries)


def figures_of(texts, root):
    sources = Sources(root)
    weights = [sources.weigh(text) for text in texts]
    return {"texts": len(texts), "kilobytes": sum(size for size, _ in weights) // 1000, "libraries": sum(count for _, count in weights)}


def read_figures(text):
    return {line.split()[0]: int(line.split()[1]) for line in text.splitlines() if line.strip() and not line.startswith("#")}


def grown(now, wanted):
    for name, figure in now.items():
        if name not in wanted:
            yield f"{name}: no line in tools/build-size.txt"
        elif figure * 100 > wanted[name] * (100 + MOST_GROWTH_PERCENT):
            yield (f"{name}: {figure}, which is {figure * 100 // wanted[name] - 100} % above the {wanted[name]} of tools/build-size.txt: "
                   "compile less, or say in a commit of its own what is bought (tools/build_size.py BUILD --rewrite)")


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = {"src/a/a.h": '#pragma once\n#include "b/b.h"\n', "src/b/b.h": "#pragma once\n#include <boost/json/array.hpp>\n" + "/" * 900,
                 "src/a/a.cc": '#include "a/a.h"\n#include "b/b.h"\n#include <boost/json.hpp>\n#include <vector>\n',
                 "src/c/c.cc": "#include <CLI/CLI.hpp>\n", "build/together/t.cc": '#include "a/a.cc"\n#include "c/c.cc"\n' + "/" * 5000}
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        root = root.resolve()
        together, alone = root / "build/together/t.cc", root / "src/c/c.cc"
        size = sum(len(files[name]) for name in ("src/a/a.h", "src/b/b.h", "src/a/a.cc", "src/c/c.cc"))
        weighed = Sources(root).weigh(together) == (size, 2)
        summed = figures_of([together, alone, alone], root) == {"texts": 3, "kilobytes": (size + 2 * len(files["src/c/c.cc"])) // 1000, "libraries": 4}
    wanted = read_figures(TITLE + "texts 100\nkilobytes 100\nlibraries 100\n")
    cases = [({"texts": 115, "kilobytes": 100, "libraries": 3}, 0), ({"texts": 116, "kilobytes": 100, "libraries": 100}, 1),
             ({"texts": 1, "kilobytes": 116, "libraries": 116}, 2), ({"other": 1}, 1)]
    results = [weighed, summed, *(len(list(grown(now, wanted))) == found for now, found in cases)]
    print(f"{sum(results)} passed, {results.count(False)} failed, 0 skipped")
    return 1 if False in results else 0


def main():
    words = sys.argv[1:]
    if "--self-test" in words:
        return self_test()
    if len(words) not in (1, 2) or words[1:] not in ([], ["--rewrite"]):
        sys.exit(__doc__)
    now = figures_of(texts_of(Path(words[0]).resolve()), ROOT)
    if "--rewrite" in words:
        FIGURES.write_text(TITLE + "".join(f"{name:<10} {figure:>8}\n" for name, figure in now.items()))
        return 0
    wanted = read_figures(FIGURES.read_text())
    found = list(grown(now, wanted))
    print("\n".join([*found, *(f"{name}: {figure}, of {wanted.get(name)} in tools/build-size.txt" for name, figure in now.items())]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
