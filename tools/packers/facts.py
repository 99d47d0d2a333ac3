"""What a release is made of, as the build, git and dpkg say it: the version, the commit and its time, and each library with its
package, source and licence. The other packers take these facts and look at nothing else, so that equal facts give equal bytes."""
import datetime
import functools
import glob
import json
import os
import re
import subprocess
from dataclasses import dataclass, field


class CannotPack(Exception):
    """Says what is missing, and what to do about it."""


def output_of(*command, where=None):
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise CannotPack(f"there is no {command[0]} here: apt-get install {PROVIDED_BY.get(command[0], command[0])}") from None
    if done.returncode != 0:
        raise CannotPack(f"`{' '.join(command[:4])} ...` ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


PROVIDED_BY = {"dpkg-shlibdeps": "dpkg-dev", "dpkg-scanpackages": "dpkg-dev", "ldd": "libc-bin", "ninja": "ninja-build"}


@dataclass
class Part:
    """Something of others in the release. `how` is dynamic (a shared object), static (compiled into the program), build (only
    read by the compiler, its program is linked dynamically) or page (a part of the web page)."""
    name: str
    version: str
    how: str
    source: str = ""
    licence: str = ""  # as the copyright file or the lockfile has it; empty where that does not say
    notice: str = ""   # the text of the copyright file
    files: list = field(default_factory=list)


@dataclass
class Facts:
    version: str        # of the source, as 0.1.0
    tagged: bool        # whether the commit is the one of the tag vVERSION
    commit: str
    epoch: int          # the time of the commit, in seconds
    changed: bool       # whether the work tree differs from the commit
    architecture: str   # as Debian and OCI call it: amd64, arm64
    depends: str        # of the Debian package, as dpkg-shlibdeps works them out
    parts: list

    @property
    def moment(self):
        return datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc)

    def pre_release(self):
        """Which commit it is, where it is not the one of the tag; ordered by time. Empty for a tagged one."""
        if self.tagged and not self.changed:
            return ""
        return f"git{self.moment:%Y%m%d%H%M%S}.g{self.commit[:8]}" + (".changed" if self.changed else "")

    @property
    def debian_version(self):
        """Sorts before the tagged version of the same number."""
        return self.version + (f"~{self.pre_release()}" if self.pre_release() else "")

    @property
    def tag(self):
        """As a chart's version and an image's tag: the same by semantic versioning."""
        return self.version + (f"-{self.pre_release()}" if self.pre_release() else "")


def of_commit(root):
    """Version, tag, commit, time, and whether the work tree has changes."""
    with open(os.path.join(root, "src/daemon/version.h")) as file:
        version = re.search(r'kVersionText = "([^"]+)"', file.read()).group(1)
    commit, epoch = output_of("git", "log", "-1", "--format=%H %ct", where=root).split()
    tagged = f"v{version}" in output_of("git", "tag", "--points-at", "HEAD", where=root).split()
    changed = bool(output_of("git", "status", "--porcelain", where=root).strip())
    return {"version": version, "tagged": tagged, "commit": commit, "epoch": int(epoch), "changed": changed}


def linked_libraries(program):
    """The paths of the shared objects that a program loads, the loader included."""
    text = output_of("ldd", program)
    return sorted(set(re.findall(r"(?:=> |^\s)(/\S+) \(0x", text, re.M)))


@functools.cache
def installed_files():
    """Path -> package, of all packages of this system. dpkg-query -S reads the same lists anew for each question."""
    found = {}
    for path in sorted(glob.glob("/var/lib/dpkg/info/*.list")):
        package = os.path.basename(path).removesuffix(".list").split(":")[0]
        with open(path, encoding="utf-8") as file:
            found.update(dict.fromkeys(file.read().splitlines(), package))
    return found


def package_of(path):
    """The Debian package that a file is of; empty where it is of none. Files of /lib are listed as those or as of /usr/lib."""
    real = os.path.realpath(path)
    return next(filter(None, map(installed_files().get, (path, real, "/usr" + path, real.removeprefix("/usr")))), "")


def licence_of(notice):
    """The licence of the paragraph `Files: *` of a machine-readable copyright file; empty where there is none."""
    for paragraph in re.split(r"\n\s*\n", notice):
        if re.search(r"^Files:\s*\*\s*$", paragraph, re.M) and (found := re.search(r"^License:\s*(\S.*)$", paragraph, re.M)):
            return found.group(1).strip()
    return ""


def part_of_package(name, how, files):
    version, source = output_of("dpkg-query", "-W", "-f", "${Version}\t${source:Package}\t${source:Version}\n", name) \
        .splitlines()[0].split("\t")[:2]
    try:
        with open(f"/usr/share/doc/{name}/copyright", encoding="utf-8", errors="replace") as file:
            notice = file.read()
    except FileNotFoundError:
        notice = ""
    return Part(name, version, how, source, licence_of(notice), notice, sorted(files))


def by_package(paths, how):
    found = {}
    for path in paths:
        name = package_of(path)
        if not name:
            raise CannotPack(f"{path} is of no Debian package, so that its version and licence are not known")
        found.setdefault(name, []).append(path)
    return [part_of_package(name, how, files) for name, files in sorted(found.items())]


def read_by_the_compiler(build, targets):
    """Headers and static libraries outside of the work tree that went into the targets, as ninja noted them."""
    inputs = output_of("ninja", "-C", build, "-t", "inputs", *targets).splitlines()
    objects = [one for one in inputs if one.endswith(".o")]
    paths = {one for one in inputs if one.startswith("/usr/") and re.search(r"\.(a|h|hpp|ipp)$", one)}
    for start in range(0, len(objects), 100):
        for line in output_of("ninja", "-C", build, "-t", "deps", *objects[start:start + 100]).splitlines():
            if line.startswith("    /usr/"):
                paths.add(line.strip())
    if len(paths) < 100:
        raise CannotPack(f"{build} does not say which headers were compiled: build it with ninja, by tools/build")
    return paths


def compiled_packages(paths):
    """Inline functions and templates of a header are compiled into the program; those of the kernel and the C library are interfaces."""
    parts = by_package(paths, "static")
    for part in parts:
        if part.source in ("linux", "glibc"):
            part.how = "build"
    return parts


def page_packages(root):
    """What the web page imports, and what that depends on, by the lockfile. An upper bound: the bundler leaves out what is unused."""
    with open(os.path.join(root, "web/package-lock.json")) as file:
        locked = json.load(file)["packages"]
    names, wanted = set(), []
    for where, _, files in os.walk(os.path.join(root, "web/src")):
        for name in files:
            if name.endswith((".ts", ".svelte")) and not name.endswith(".test.ts"):
                with open(os.path.join(where, name)) as file:
                    wanted += re.findall(r"from '((?:@[\w-]+/)?[\w-]+)", file.read())
    wanted = [name for name in wanted if f"node_modules/{name}" in locked]
    while wanted:
        name = wanted.pop()
        if name not in names:
            names.add(name)
            wanted += locked[f"node_modules/{name}"].get("dependencies", {})
    parts = []
    for name in sorted(names):
        row, notice = locked[f"node_modules/{name}"], ""
        home = os.path.join(root, "web/node_modules", name)
        for file in sorted(os.listdir(home)) if os.path.isdir(home) else []:
            if re.match(r"licen[sc]e", file, re.I):
                with open(os.path.join(home, file), encoding="utf-8") as text:
                    notice += text.read()
        parts.append(Part(name, row["version"], "page", row.get("resolved", ""), row.get("license", ""), notice, []))
    return parts


def shared_library_dependencies(programs, scratch):
    """What dpkg-shlibdeps says for the field Depends."""
    os.makedirs(os.path.join(scratch, "debian"), exist_ok=True)
    with open(os.path.join(scratch, "debian/control"), "w") as file:
        file.write("Source: berth\n\nPackage: berth\nArchitecture: any\n")
    said = output_of("dpkg-shlibdeps", "-O", *(word for program in programs for word in ("-e", os.path.abspath(program))), where=scratch)
    return re.search(r"^shlibs:Depends=(.*)$", said, re.M).group(1)


def gathered(root, build, programs, scratch):
    """The facts of the programs that `build` has made."""
    dynamic = by_package(sorted({path for program in programs for path in linked_libraries(program)}), "dynamic")
    compiled = compiled_packages(read_by_the_compiler(build, [os.path.basename(one) for one in programs]))
    return Facts(**of_commit(root), architecture=output_of("dpkg", "--print-architecture").strip(),
                 depends=shared_library_dependencies(programs, scratch), parts=[*dynamic, *compiled, *page_packages(root)])
