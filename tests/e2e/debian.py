"""Programs of Debian packages that a test needs and that berth itself does not: unpacked into the cache of the tests,
${XDG_CACHE_HOME:-~/.cache}/berth-test/debian, with what they depend on. Nothing is installed, and no rights are needed. Root
has it in /var/cache/berth-test/debian: jobs run as other users, to whom its home is closed.

    debian.py python3-torch openmpi-bin     fills the cache by hand
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

CACHE_OF_HOME = os.path.expanduser("~/.cache")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or ("/var/cache" if os.geteuid() == 0 else CACHE_OF_HOME), "berth-test", "debian")
URI = re.compile(r"^'(?P<uri>[^']+)' (?P<file>\S+) (?P<size>\d+)")
PATIENCE_S = 300


class NotToBeHad(Exception):
    """The packages cannot be fetched here; the message says why."""


def run(*command, where=None):
    try:
        return subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotToBeHad(f"{command[0]}: {problem}") from None


def missing_packages(names, alone):
    """The package files that this system lacks to have these packages, as apt works them out."""
    command = ["apt-get", "--print-uris", "-qq", *(["download"] if alone else ["install", "-y", "--no-install-recommends"]), *names]
    answer = run(*command)
    if answer.returncode != 0 and os.geteuid() == 0:
        run("apt-get", "-qq", "update")
        answer = run(*command)
    if answer.returncode != 0:
        raise NotToBeHad(f"apt does not know {' '.join(names)}: {answer.stderr.strip()[:200]}")
    return [found.groupdict() for found in map(URI.match, answer.stdout.splitlines()) if found]


def fetched(names, alone=False):
    """The folder below which these packages lie unpacked, or / where all of them are installed. `alone`: without what they
    depend on, and also where they are installed."""
    packages = missing_packages(names, alone)
    if not packages:
        return "/"
    versions = hashlib.sha256("\n".join(sorted(package["file"] for package in packages)).encode()).hexdigest()[:12]
    home = os.path.join(CACHE, f"{names[0]}-{versions}")
    if not os.path.isdir(home):
        os.makedirs(CACHE, exist_ok=True)
        making = tempfile.mkdtemp(prefix="making-", dir=CACHE)
        try:
            of_home = os.path.join(CACHE_OF_HOME, "berth-test", "debian", os.path.basename(home))
            if os.path.isdir(of_home):
                shutil.copytree(of_home, making, symlinks=True, dirs_exist_ok=True)
            else:
                unpack(packages, making)
            os.chmod(making, 0o755)
            os.rename(making, home)
        except OSError:
            if not os.path.isdir(home):  # else another run was first
                raise
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return home


def unpack(packages, into):
    """apt-get checks what it downloads against the signed lists of the archive."""
    wanted = []
    for package in packages:
        name, version = package["file"].rsplit(".", 1)[0].split("_")[:2]
        wanted.append(f"{name}={urllib.parse.unquote(version)}")
    with tempfile.TemporaryDirectory(prefix="debs-", dir=CACHE) as folder:
        answer = run("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *wanted, where=folder)
        files = os.listdir(folder)
        if answer.returncode != 0 or len(files) != len(packages):
            raise NotToBeHad(f"{' '.join(wanted)} cannot be downloaded: {answer.stderr.strip()[:200]}")
        for file in files:
            answer = run("dpkg-deb", "-x", os.path.join(folder, file), into)
            if answer.returncode != 0:
                raise NotToBeHad(f"{file} cannot be unpacked: {answer.stderr.strip()[:200]}")


def library_path(home):
    """Where the shared objects of an unpacked tree are; some lie in folders that only an installation links to."""
    found = []
    for top in (os.path.join(home, "lib"), os.path.join(home, "usr", "lib")):
        for folder, _, files in os.walk(top):
            below = os.path.relpath(folder, top)  # the name of `home` may have "python3" in it
            if any(".so" in file for file in files) and "python3" not in below and "openmpi3" not in below:
                found.append(folder)
    return ":".join(sorted(found))


if __name__ == "__main__":
    print(fetched(sys.argv[1:]))
