#!/usr/bin/env python3
"""What tools/release packs, used as an operator would, without a network: the bundle installs berth into a clean Debian 12 (made by
debootstrap, below chroot), and its image runs with a read-only root, as its own user (runc).

    release_test.py [--build FOLDER] [--packed FOLDER] [NAME...]

With --build it packs what is built there, and builds no release; with --packed it takes the files of a tools/release that has run.

Needs root, debootstrap, runc and skopeo; what is missing is said, and the exit code is 77. The first run downloads 60 MB for the
clean Debian, which is kept in ${XDG_CACHE_HOME:-~/.cache}/berth-test."""
import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "e2e"), os.path.join(ROOT, "tools")]
sys.dont_write_bytecode = True

import pypi  # noqa: E402 (the folder is put there above)
from debian import NotToBeHad, fetched  # noqa: E402 (as above)
from patience import eventually, stretched  # noqa: E402 (as above)

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "berth-test")
NEEDED = ("debootstrap", "runc", "skopeo", "unshare", "dpkg-deb", "dpkg-shlibdeps")
SPDX = "requirements-spdx.txt"
ALONE = ["unshare", "--net", "--mount", "--pid", "--fork"]  # no network: not even a loopback that is up


class Skipped(Exception):
    """This machine lacks what a case takes; the message says what."""


def run(*command, code=0, environment=None, **options):
    """What a command printed, errors included; it must end with `code`, unless that is None."""
    done = subprocess.run(command, text=True, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **(environment or {})}, **options)
    assert code is None or done.returncode == code, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}"
    return done.stdout


def clean_debian():
    """A tar of a minimal Debian 12."""
    path = os.path.join(CACHE, "debian12.tar")
    if not os.path.exists(path):
        os.makedirs(CACHE, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            run("debootstrap", "--variant=minbase", "bookworm", folder, "http://deb.debian.org/debian")
            run("tar", "-C", folder, "--numeric-owner", "-cf", path + ".new", ".")
        os.rename(path + ".new", path)
    return path


class Debian:
    """A clean Debian 12 in a folder of its own; whatever runs in it has no network."""

    def __init__(self, folder):
        self.root = folder
        os.makedirs(folder)
        run("tar", "-C", folder, "--numeric-owner", "-xpf", clean_debian())

    def command(self, *words):
        inside = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        return [*ALONE, "sh", "-c", inside, self.root, *words]

    def run(self, *words, code=0, **variables):
        return run(*self.command(*words), code=code, environment={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", **variables})

    def path(self, inside):
        return self.root + inside

    def text(self, inside):
        with open(self.path(inside)) as file:
            return file.read()

    def version(self):
        return self.run("dpkg-query", "-W", "-f", "${Version}", "berth")


class Release:
    """The files of tools/release, and the bundle unpacked."""

    def __init__(self, build, packed, folder):
        self.folder, self.build = folder, build
        self.out = packed or self.pack("first")
        with tarfile.open(self.file(".tar", "bundle")) as archive:
            archive.extractall(folder)
        self.bundle = self.file(".tar", "bundle").replace(self.out, folder).removesuffix(".tar")
        with open(os.path.join(self.bundle, "version")) as file:
            self.version = file.read().strip()

    def pack(self, name):
        out = os.path.join(self.folder, name)
        run(os.path.join(ROOT, "tools/release"), "--out", out, *(["--build", self.build] if self.build else []))
        return out

    def file(self, ending, word=""):
        name, = [one for one in os.listdir(self.out) if one.endswith(ending) and word in one]
        return os.path.join(self.out, name)

    def package(self, version):
        """The package with another version, as dpkg sees it: its scripts compare with that one."""
        top, target = os.path.join(self.folder, "other"), os.path.join(self.folder, f"berth_{version}.deb")
        shutil.rmtree(top, ignore_errors=True)
        run("dpkg-deb", "-R", self.file(".deb"), top)
        for name in ("control", "preinst"):
            path = os.path.join(top, "DEBIAN", name)
            with open(path) as file:
                text = file.read()
            with open(path, "w") as file:
                file.write(text.replace(self.version, version))
        run("dpkg-deb", "--root-owner-group", "-Znone", "--build", top, target)
        return target


def it_is_packed_the_same_twice(release):
    second = release.pack("second")
    with open(os.path.join(release.out, "SHA256SUMS")) as one, open(os.path.join(second, "SHA256SUMS")) as other:
        assert one.read() == other.read()
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=second)
    shutil.rmtree(second)


def installed(release):
    """A Debian into which the bundle has installed berth, as its page says."""
    debian = Debian(tempfile.mkdtemp(dir=release.folder) + "/root")
    shutil.copytree(release.bundle, debian.path("/bundle"))
    debian.run("/bundle/install", "package")
    return debian


def the_bundle_installs_the_package_without_a_network(release):
    debian = installed(release)
    assert debian.run("berth", "--version").startswith("berth 0."), "the program finds its libraries"
    assert debian.version() == release.version and "install ok installed" in debian.run("dpkg", "-s", "berth")
    assert re.search(r"^berth:x:\d+:\d+:.*:/nonexistent:/usr/sbin/nologin$", debian.text("/etc/passwd"), re.M)
    assert os.stat(debian.path("/var/lib/berth")).st_mode & 0o7777 == 0o711
    assert debian.run("dpkg", "--verify", "berth") == ""
    assert "no mistakes" in debian.run("berth", "check", "/etc/berth/cluster.yaml")
    for page in ("run-a-cluster.md", "copyright", "third-party.txt", "berth.spdx.json", "examples/cluster.yaml"):
        assert os.path.getsize(debian.path("/usr/share/doc/berth/" + page)) > 100, page
    again = debian.run("/bundle/install", "package")
    assert "already the newest version" in again and "0 upgraded, 0 newly installed" in again, again
    debian.run("berth", "check", "/usr/share/doc/berth/examples/cluster.yaml")


def systemd_reads_the_units(release):
    if not shutil.which("systemd-analyze"):
        raise Skipped("there is no systemd-analyze here, so the units are not verified: apt-get install systemd")
    debian = installed(release)
    for unit in ("berth", "berth-kubernetes"):
        said = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={debian.root}", f"{unit}.service")
        assert f"{unit}.service" not in said, said


def serve(debian):
    """The server in the clean Debian, until it is ready and has written its log; then it is stopped."""
    # A network namespace begins with a loopback that is down, and a minimal Debian has no ip(8): the server comes up all the same.
    server = subprocess.Popen(debian.command("/usr/bin/berth", "serve", "--config", "/etc/berth/cluster.yaml", "--data", "/var/lib/berth",
                                             "--port", "6380", "--simulate-gpus", "2xH100-SXM5-80GB", "--ready-file", "/tmp/ready"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        eventually("the server is ready", lambda: os.path.exists(debian.path("/tmp/ready")) or server.poll() is not None)
        assert server.poll() is None, server.stdout.read()
    finally:
        if server.poll() is None:
            inside = run("pgrep", "-P", str(server.pid)).split()
            run("kill", "-TERM", *inside)
        server.wait(timeout=stretched(60))
        server.stdout.close()
    os.remove(debian.path("/tmp/ready"))


def an_upgrade_keeps_what_is_there_and_the_way_back_is_refused(release):
    debian = installed(release)
    changed = debian.text("/etc/berth/cluster.yaml") + "  research: {}\n"
    with open(debian.path("/etc/berth/cluster.yaml"), "w") as file:
        file.write(changed)
    serve(debian)
    def log():
        with open(debian.path("/var/lib/berth/log.db"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    before = log()

    newer = shutil.copy(release.package("9.0.0"), debian.path("/newer.deb"))
    debian.run("dpkg", "-i", newer.removeprefix(debian.root))
    assert debian.version() == "9.0.0" and log() == before
    assert debian.text("/etc/berth/cluster.yaml") == changed, "a changed conffile is kept"
    assert debian.run("berth", "--version").startswith("berth")
    serve(debian)
    before = log()

    older = debian.run("/bundle/install", "package", code=None)
    assert "9.0.0 is newer than" in older and "The log is not touched" in older, older
    assert debian.version() == "9.0.0" and log() == before and "install ok installed" in debian.run("dpkg", "-s", "berth")
    debian.run("/bundle/install", "package", BERTH_ALLOW_OLDER="1")
    assert debian.version() == release.version and log() == before and debian.text("/etc/berth/cluster.yaml") == changed


def a_removal_keeps_the_log_and_a_purge_does_not(release):
    debian = installed(release)
    serve(debian)
    with open(debian.path("/etc/berth/kubeconfig"), "w") as file:
        file.write("of the administrator")
    debian.run("dpkg", "-r", "berth")
    assert not os.path.exists(debian.path("/usr/bin/berth")) and os.path.exists(debian.path("/var/lib/berth/log.db"))
    assert os.path.exists(debian.path("/etc/berth/cluster.yaml"))
    debian.run("dpkg", "-P", "berth", DEBIAN_FRONTEND="teletype")
    assert not os.path.exists(debian.path("/var/lib/berth")) and not re.search("^berth:", debian.text("/etc/passwd"), re.M)
    assert os.listdir(debian.path("/etc/berth")) == ["kubeconfig"] and not os.path.exists(debian.path("/etc/default/berth"))
    # The next boot empties /run.
    left = run("find", debian.root, "-xdev", "-name", "*berth*", "-not", "-regex", f"{debian.root}/\\(bundle\\|run\\)/.*").split()
    assert left == [debian.path("/etc/berth")], left


def root_of_image(archive, folder):
    """The image's file system; returns its configuration."""
    with tarfile.open(archive) as layout:
        def blob(digest):
            return layout.extractfile("blobs/" + digest.replace(":", "/")).read()
        entry, = json.loads(layout.extractfile("index.json").read())["manifests"]
        manifest = json.loads(blob(entry["digest"]))
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(blob(layer["digest"])), mode="r:gz") as files:
                files.extractall(folder, numeric_owner=True)
        return json.loads(blob(manifest["config"]["digest"]))["config"]


def the_image_serves_with_a_read_only_root(release):
    archive = release.file(".tar", "image")
    seen = json.loads(run(*ALONE, "skopeo", "inspect", f"oci-archive:{archive}"))
    assert seen["Labels"]["org.opencontainers.image.title"] == "berth" and len(seen["Layers"]) == 2, seen
    folder = tempfile.mkdtemp(dir=release.folder)
    # A copy compares each blob with its digest, and keeps them: so a registry has the digest that the chart names.
    run(*ALONE, "skopeo", "copy", "--preserve-digests", f"oci-archive:{archive}", f"dir:{folder}/copied")
    with open(f"{folder}/copied/manifest.json", "rb") as file:
        digest = "sha256:" + hashlib.sha256(file.read()).hexdigest()
    with tarfile.open(release.file(".tgz")) as chart:
        assert digest == seen["Digest"] and digest in chart.extractfile("berth/Chart.yaml").read().decode()

    os.makedirs(f"{folder}/rootfs")
    os.chmod(f"{folder}/rootfs", 0o755)
    config = root_of_image(archive, f"{folder}/rootfs")
    names = {name for _, _, files in os.walk(f"{folder}/rootfs") for name in files}
    assert not names & {"sh", "bash", "dash", "busybox", "apt", "dpkg"} and "ca-certificates.crt" in names
    run("runc", "spec", cwd=folder)
    with open(f"{folder}/config.json") as file:
        spec = json.load(file)
    uid, gid = map(int, config["User"].split(":"))
    assert spec["root"]["readonly"] and uid == gid == 65532
    spec["process"].update(
        terminal=False, user={"uid": uid, "gid": gid}, capabilities={}, noNewPrivileges=True,
        args=[*config["Entrypoint"], "serve", "--data", "/var/lib/berth/data", "--port", "6380", "--simulate-gpus", "8xH100-SXM5-80GB"],
        env=[*config["Env"], "BERTH_SERVER=http://127.0.0.1:6380", "BERTH_TOKEN_FILE=/var/lib/berth/data/token"])
    spec["mounts"] += [{"destination": where, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", f"uid={uid}", f"gid={gid}"]}
                       for where in ("/tmp", "/var/lib/berth")]
    with open(f"{folder}/config.json", "w") as file:
        json.dump(spec, file)
    name = f"berth-release-test-{os.getpid()}"
    with open(f"{folder}/log", "w+") as log:
        container = subprocess.Popen(["runc", "run", name], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            def status():  # the probe of the chart
                done = subprocess.run(["runc", "exec", name, "berth", "status"], capture_output=True, text=True, check=False)
                return done.stdout if done.returncode == 0 else container.poll() is not None and "it has ended"
            said = eventually(lambda: f"it is ready: {open(log.name).read()}", status)
            assert "8 (simulated)" in said, said + open(log.name).read()
            shell = subprocess.run(["runc", "exec", name, "sh", "-c", "true"], capture_output=True, text=True, check=False)
            assert shell.returncode != 0 and "not found" in shell.stderr, shell.stderr
            written = run("runc", "exec", name, "berth", "bill", "--help", code=None)
            assert written, "other commands run as well"
            run("runc", "kill", name, "TERM")
            assert container.wait(timeout=stretched(60)) == 0, open(log.name).read()
        finally:
            if container.poll() is None:
                run("runc", "delete", "--force", name, code=None)
                container.wait(timeout=stretched(60))


def the_bundle_gives_the_image_to_a_node_without_a_network(release):
    """containerd has it under the name of the chart's image, by tag and by digest."""
    try:
        programs = fetched(["containerd", "runc"])
    except NotToBeHad as problem:
        raise Skipped(f"containerd cannot be had: {problem}") from None
    folder = tempfile.mkdtemp(dir=release.folder)
    socket = f"{folder}/containerd.sock"
    with open(f"{folder}/config.toml", "w") as file:
        file.write(f'version = 2\nroot = "{folder}/root"\nstate = "{folder}/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
                   f'[grpc]\naddress = "{socket}"\n[ttrpc]\naddress = "{folder}/ttrpc.sock"\n')
    with open(f"{folder}/log", "w") as log:
        server = subprocess.Popen(["unshare", "--net", f"{programs}/usr/bin/containerd", "-c", f"{folder}/config.toml"], stdout=log, stderr=log,
                                  env={**os.environ, "PATH": f"{programs}/usr/bin:{programs}/usr/sbin:{os.environ['PATH']}"})
    try:
        ctr = [f"{programs}/usr/bin/ctr", "-a", socket]
        eventually(lambda: open(f"{folder}/log").read(), lambda: subprocess.run([*ctr, "version"], capture_output=True, check=False).returncode == 0)
        run("unshare", "--net", f"{release.bundle}/install", "image", *ctr)
        digest = json.loads(run("skopeo", "inspect", f"oci-archive:{release.file('.tar', 'image')}"))["Digest"]
        names = run(*ctr, "-n", "k8s.io", "images", "ls", "-q").split()
        assert names == [f"docker.io/library/berth:{release.version.replace('~', '-')}", f"docker.io/library/berth@{digest}"], names
    finally:
        server.terminate()
        server.wait(timeout=stretched(60))


def the_bill_of_materials_is_valid(release):
    """By the tools of SPDX, which refuse it with a relationship that points nowhere."""
    if not os.path.exists(os.path.join(pypi.venv(SPDX), "complete")):
        try:
            pypi.make(pypi.venv(SPDX), SPDX)  # says why, where it cannot
        except SystemExit:
            raise Skipped("the tools of SPDX cannot be had") from None
    path = release.file(".spdx.json")
    run(pypi.program("pyspdxtools", SPDX), "-i", path)
    with open(path) as file:
        bill = json.load(file)
    bill["relationships"][0]["relatedSpdxElement"] = "SPDXRef-nothing"
    broken = os.path.join(release.folder, "broken.spdx.json")
    with open(broken, "w") as file:
        json.dump(bill, file)
    assert "SPDXRef-nothing" in run(pypi.program("pyspdxtools", SPDX), "-i", broken, code=1)
    names = {one["name"] for one in bill["packages"]}
    assert {"libc6", "libssl3", "libsqlite3-0", "libcurl4", "libboost1.81-dev", "libcli11-dev", "svelte", "uplot"} <= names, names


CASES = [it_is_packed_the_same_twice, the_bundle_installs_the_package_without_a_network, systemd_reads_the_units,
         an_upgrade_keeps_what_is_there_and_the_way_back_is_refused, a_removal_keeps_the_log_and_a_purge_does_not,
         the_image_serves_with_a_read_only_root, the_bundle_gives_the_image_to_a_node_without_a_network,
         the_bill_of_materials_is_valid]


def main():
    parser = argparse.ArgumentParser(description="see the top of the file")
    parser.add_argument("--build", metavar="FOLDER")
    parser.add_argument("--packed", metavar="FOLDER")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing or os.geteuid() != 0:
        print("SKIPPED: a release is not installed anywhere: it takes root, and "
              + (f"these programs: apt-get install {' '.join(missing)}" if missing else "this user is not root"))
        return 77
    chosen = [case for case in CASES if not given.names or any(name in case.__name__ for name in given.names)]
    failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        release = Release(given.build, given.packed, folder)
        for case in chosen:
            try:
                case(release)
                print(f"passed: {case.__name__.replace('_', ' ')}", flush=True)
            except Skipped as why:
                skipped += 1
                print(f"skipped: {case.__name__.replace('_', ' ')}: {why}", flush=True)
            except (AssertionError, OSError, subprocess.SubprocessError):
                failed += 1
                print(f"FAILED: {case.__name__.replace('_', ' ')}\n{traceback.format_exc()}", flush=True)
    print(f"{len(chosen) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
