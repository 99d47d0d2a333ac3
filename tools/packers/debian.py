"""The Debian package, by dpkg-deb. What is in it: the two programs, the units, /etc/berth, the manual and the licences."""
import hashlib
import os
import subprocess
import tempfile

from packers.facts import CannotPack, output_of

CONFIGURATION = {"cluster.yaml": "etc/berth/cluster.yaml", "default": "etc/default/berth"}
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


def tree(root, programs, notices, sbom):
    """Path in the package -> (content, mode)."""
    files = {f"usr/bin/{os.path.basename(path)}": (content_of(path), 0o755) for path in programs}
    for unit in ("berth.service", "berth-kubernetes.service"):
        files[f"lib/systemd/system/{unit}"] = (content_of(root, "deploy/debian", unit), 0o644)
    for name, path in CONFIGURATION.items():
        files[path] = (content_of(root, "deploy/debian", name), 0o644)
    documents = "usr/share/doc/berth/"
    for name in sorted(os.listdir(os.path.join(root, "docs"))):
        if name.endswith(".md"):
            files[documents + name] = (content_of(root, "docs", name), 0o644)
    files[documents + "examples/cluster.yaml"] = (content_of(root, "examples/cluster.yaml"), 0o644)
    files[documents + "copyright"] = (copyright_of(root), 0o644)
    files[documents + "third-party.txt"] = (notices.encode(), 0o644)
    files[documents + "berth.spdx.json"] = (sbom, 0o644)
    return files


def copyright_of(root):
    head = ("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: berth\n\nFiles: *\n"
            "Copyright: the authors of berth\nLicense: Apache-2.0\n\nLicense: Apache-2.0\n")
    lines = content_of(root, "LICENSE").decode().splitlines()
    return (head + "".join(f" {line.strip() or '.'}\n" for line in lines)).encode()


def content_of(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def write(path, content, mode, epoch):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)
    os.utime(path, (epoch, epoch))


def pack(root, facts, programs, notices, sbom, target):
    """Writes the package to the file `target`."""
    files = tree(root, programs, notices, sbom)
    size = sum((len(content) + 1023) // 1024 for content, _ in files.values())
    words = {"VERSION": facts.debian_version, "ARCHITECTURE": facts.architecture, "SIZE": str(size), "DEPENDS": facts.depends}
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        for path, (content, mode) in files.items():
            write(os.path.join(top, path), content, mode, facts.epoch)
        sums = "".join(f"{hashlib.md5(content).hexdigest()}  {path}\n" for path, (content, _) in sorted(files.items()))
        control = {"md5sums": sums, "conffiles": "".join(f"/{path}\n" for path in sorted(CONFIGURATION.values()))}
        for name in ("control", *SCRIPTS):
            text = content_of(root, "deploy/debian", name).decode()
            for word, value in words.items():
                text = text.replace(f"@{word}@", value)
            control[name] = text
        for name, text in control.items():
            write(os.path.join(top, "DEBIAN", name), text.encode(), 0o755 if name in SCRIPTS else 0o644, facts.epoch)
        for where, folders, _ in os.walk(top, topdown=False):
            for name in folders:
                os.chmod(os.path.join(where, name), 0o755)
                os.utime(os.path.join(where, name), (facts.epoch, facts.epoch))
        os.utime(top, (facts.epoch, facts.epoch))
        # One thread: how xz cuts its blocks is not to depend on the machine.
        done = subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", top, target], check=False,
                              capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(facts.epoch)})
    if done.returncode != 0:
        raise CannotPack(f"dpkg-deb: {done.stderr.strip()}")


def dependencies(package, folder):
    """Fetches into `folder` the packages that `package` needs on a Debian that has none, by the signed lists of apt, with an index
    that apt reads. Returns the names of the files."""
    uris = output_of("apt-get", "--print-uris", "-qq", "-o", "Dir::State::status=/dev/null", "-o", "APT::Get::AllowUnauthenticated=false",
                     "install", "-y", "--no-install-recommends", os.path.abspath(package))
    wanted = []
    for line in uris.splitlines():
        if line.startswith("'http"):
            name, version = line.split()[1].split("_")[:2]
            wanted.append(f"{name}={version.replace('%3a', ':')}")
    os.makedirs(folder, exist_ok=True)
    output_of("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *sorted(wanted), where=folder)
    return sorted(os.listdir(folder))
