#!/usr/bin/env python3
"""Checks that what is written about the source agrees with it.

    tools/source_map.py              checks the pages of the manual and the comments of the source
    tools/source_map.py --self-test  plants one violation of every rule and expects each to be found

1. Each folder of src/, and each folder with a row of its own in tools/include-table.txt, is in the tables of folders of
   ARCHITECTURE.md and in the map of docs/work-on-berth.md.
2. A file or folder of the source that a page names in `code` is there: `src/sched/cycle.h`, `sched/cycle`, `cycle.h`. In a
   cell of a table that only names files, a name after the first lies in the folder of the one before it.
3. A file of the source that a comment names is there. Headers of the system are written <like.h>.

`*` stands for any letters, {h,cc} for each of them, and names of one letter (`x.h`) for any file. Where links lead is checked by
tools/check-words. What tells of the past (decisions, lab books, logs of older versions) may name what was.
"""

import argparse
import fnmatch
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HISTORY = ("docs/decisions/", "docs/lab/", "tests/golden/")
MAPS = ("ARCHITECTURE.md", "docs/work-on-berth.md")
WITH_SOURCE = ("src", "tests", "fuzz", "bench", "cmake")
WITHOUT_PAGES = ("build", "web/node_modules", "shared", ".git")
SPAN = re.compile(r"`([^`]+)`")
LINKED = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)[^)]*\)")
FILE = re.compile(r"(?<![\w./<*{-])((?:[\w*-]+/)*[\w*-]{2,}\.(?:h|cc|\{h,cc\}))(?![\w({-])")
PATH = re.compile(r"[\w*-]+(?:/[\w*-]+)*/?")
COMMENT = re.compile(r"(?:^|\s)//(.*)")


class Tree:
    """The files and folders below `root` that have source, by their paths from there."""

    def __init__(self, root):
        self.root = root
        below = [path for folder in WITH_SOURCE for path in sorted((root / folder).rglob("*"))]
        self.folders = {path.relative_to(root).as_posix() for path in below if path.is_dir()}
        self.files = {path.relative_to(root).as_posix() for path in below if path.suffix in (".h", ".cc")}
        self.ends = {}  # by file name, for names without their folder
        for file in self.files:
            self.ends.setdefault(file.rsplit("/", 1)[-1], []).append(file)
        self.rooms = {folder.split("/")[1] for folder in self.folders if folder.startswith("src/")}

    def has_file(self, name):
        """A file whose path ends with `name`."""
        last = name.rsplit("/", 1)[-1]
        candidates = self.ends.get(last, []) if "*" not in last else self.files
        return any(fnmatch.fnmatchcase("/" + file, "*/" + name) for file in candidates)

    def has_path(self, path):
        """A folder, or a file without its ending, below src/ or the root."""
        return any(at in self.folders or any(fnmatch.fnmatchcase(file, f"{at}.{end}") for file in self.files for end in ("h", "cc"))
                   for at in ("src/" + path.rstrip("/"), path.rstrip("/")))


def alternatives(name):
    return [name.replace("{h,cc}", end) for end in ("h", "cc")] if "{h,cc}" in name else [name]


def missing_files(text, tree):
    return [name for found in FILE.findall(text) for name in alternatives(found) if not tree.has_file(name)]


def missing_path(span, tree):
    """What `sched/cycle` or `src/sched/cycle` would name, if it is of the source and not there."""
    path = span.removeprefix("src/")
    if PATH.fullmatch(path) and "/" in span and path.split("/")[0] in tree.rooms and not tree.has_path(path):
        yield path


def missing_in_cell(cell, tree):
    """In a cell that has names of files and nothing else, `b` in `sched/a`, `b` is sched/b."""
    if re.sub(r"[,\s]", "", SPAN.sub("", LINKED.sub("", cell))) or not SPAN.search(cell):
        return
    folder = None
    for match in re.finditer(r"`([^`]+)`|" + LINKED.pattern, cell):
        span = match[1]
        if span is None:
            folder = match[3].removeprefix("../").rpartition("/")[0]
        elif "/" in span.rstrip("/"):
            folder = span.rsplit("/", 1)[0]
        elif folder and PATH.fullmatch(span) and folder.removeprefix("src/").split("/")[0] in tree.rooms:
            path = folder.removeprefix("src/") + "/" + span
            if not tree.has_path(path):
                yield path


def check_page(path, text, tree):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or line.startswith("    "):
            continue
        missing = [name for span in SPAN.findall(line) for name in [*missing_files(span, tree), *missing_path(span, tree)]]
        if line.startswith("|"):
            missing += [name for cell in line.split("|") for name in missing_in_cell(cell, tree)]
        yield from (f"{path}:{number}: names `{name}`, which is not there" for name in dict.fromkeys(missing))


def check_comments(path, text, tree):
    for number, line in enumerate(text.splitlines(), 1):
        comment = COMMENT.search(line)
        for name in missing_files(comment[1], tree) if comment else []:
            yield f"{path}:{number}: names {name}, which is not there"


def rows_of_table(text):
    """The folders that have a row in the include table; `backend.h` and the like are no folders."""
    keys = [line.split("#")[0].partition(":")[0].strip() for line in text.splitlines()]
    return {key for key in keys if key and "." not in key and key not in ("pure", "exact")}


def check_folders(path, text, wanted):
    """A folder is in a page where a row of a table names it, or a file or folder in it, before any of its prose."""
    cells = [cell for line in text.splitlines() if line.startswith("|") for cell in line.split("|")[1:3]]
    named = [found[0] or found[1] for cell in cells for found in re.findall(r"`([^`]+)`|\]\((?:\.\./)?([^)#]+)", cell)]
    named = [name.removeprefix("src/").rstrip("/") for name in named]
    for folder in sorted(wanted):
        if not any(name == folder or name.startswith(folder + "/") for name in named):
            yield f"{path}:1: no table has src/{folder}"


def check_tree(root, pages):
    tree = Tree(root)
    folders = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    table = root / "tools/include-table.txt"
    if table.exists():
        folders |= {row for row in rows_of_table(table.read_text()) if (root / "src" / row).is_dir()}
    found, count = [], 0
    for page in pages:
        text, count = (root / page).read_text(), count + 1
        found += check_page(page, text, tree)
        if page in MAPS:
            found += check_folders(page, text, folders)
    for file in sorted(tree.files):
        count += 1
        if not file.startswith(HISTORY):
            found += check_comments(file, (root / file).read_text(errors="replace"), tree)
    return found, count


def pages_of(root):
    pages = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*.md"))]
    skipped = tuple(folder + "/" for folder in WITHOUT_PAGES)
    return [page for page in pages if not page.startswith((*HISTORY, *skipped)) and "/node_modules/" not in page]


def self_test():
    """Every planted line must be found, and every innocent one let through."""
    page, architecture = "docs/a.md", "ARCHITECTURE.md"
    planted = [(page, "the rule is in `src/sched/place.h`"), (page, "see `sched/neighbours`"), (page, "`explain.cc` says it"),
               (page, "| `sched/cycle`, `strat` | the page |"), (page, "| `src/sched/*_text.h` | all of them |"),
               (page, "`src/sched/{cycle,start}.cc` and `sched/start.{h,cc}`"), (page, "[cycle](../src/sched/cycle.h) `src/nowhere/x1.h`"),
               (page, "| [cycle](../src/sched/cycle.h), `strat` | the page |"),
               ("src/sched/note.h", "// What makes it (sched/make.h) is apart."), ("src/sched/note.h", "int x;  // as in order.cc"),
               ("src/sched/note.h", "// What prints it (sched/*_text.h) is apart."), ("src/sched/note.h", "// As sysexits.h says."),
               ("src/lost/a.cc", "int x;"), ("src/sched/own/a.cc", "int x;")]
    innocent = [(page, "the rule is in `src/sched/cycle.h`, `sched/cycle`, `cycle.cc` and `sched/`"), (page, "`x.h` and `x.cc` are one line"),
                (page, "| `sched/cycle`, `start` | the page |"), (page, "| `start`, `other` | words |"), (page, "    src/sched/place.h"),
                (page, "```\n`src/sched/place.h`\n```"), (page, "`docs/x.md`, `research/nlp`, `http.handle(x)`, `a.h5`"),
                (page, "| `src/sched/cycle`, `start` and more | `strat` |"), (page, "`src/sched/cycle.{h,cc}`, `sched/c*.h`"),
                ("docs/decisions/0001-a.md", "`src/sched/place.h`"), ("docs/lab/speed.md", "`stacks.cc`"),
                ("src/sched/note.h", "// Those of <sysexits.h>; the page is cycle.cc.\nauto x = \"//place.h\";"),
                ("src/base/x.cc", "int x;")]
    wrong = 0
    for (path, text), expected in [*((case, True) for case in planted), *((case, False) for case in innocent)]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            files = {"src/sched/cycle.h": "", "src/sched/cycle.cc": "", "src/sched/start.h": "", "src/base/id.h": "",
                     "tools/include-table.txt": "base : -\nsched : base\nsched/own : base\npure : base sched\n",
                     architecture: "| folder | is |\n| [src/sched](src/sched) | a |\n| `src/base` | b |\n",
                     "docs/work-on-berth.md": "| [sched/cycle](../src/sched/cycle.h) | a |\n| `base/id.h` | b |\n", path: text + "\n"}
            for name, content in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            found, _ = check_tree(root, pages_of(root))
        if bool(found) != expected:
            wrong += 1
            print(f"self-test: {path} {'passed unseen' if expected else 'was refused'}: {text!r} {found}")
    print(f"{len(planted) + len(innocent) - wrong} passed, {wrong} failed, 0 skipped")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    if parser.parse_args().self_test:
        return self_test()
    found, count = check_tree(ROOT, pages_of(ROOT))
    print("\n".join([*found, f"{count} files read, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
