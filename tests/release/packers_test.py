#!/usr/bin/env python3
"""What tools/release packs, with small stand-ins for the programs: the same facts give the same bytes, and what is in them is what
dpkg, a kubelet, helm and a reader of SPDX expect. release_test.py does the same with the programs, in a clean Debian."""
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.dont_write_bytecode = True

from packers import bundle, chart, debian, image, sbom  # noqa: E402 (the folder of tools/release)
from packers.facts import Facts, Part, licence_of  # noqa: E402

NOTICE = "Format: x\n\nFiles: *\nCopyright: y\nLicense: Expat\n\nFiles: z\nLicense: GPL-2\n"
FACTS = Facts(version="0.1.0", tagged=False, commit="0123456789abcdef" * 2 + "01234567", epoch=1795913778, changed=False,
              architecture="amd64", depends="libc6 (>= 2.36)", parts=[
                  Part("libc6", "2.36-9+deb12u14", "dynamic", "glibc", "", NOTICE, ["/lib/x86_64-linux-gnu/libc.so.6"]),
                  Part("libboost1.81-dev", "1.81.0-5", "static", "boost1.81", "BSL-1.0", "text of Boost", []),
                  Part("libcli11-dev", "2.3.2", "build", "cli11", "a license of its own", "text of CLI11", []),
                  Part("@scope/svelte", "5.57.3", "page", "https://registry.npmjs.org/svelte.tgz", "MIT", "text of svelte", [])])


def made(folder):
    """All files of a release of stand-ins; returns their paths by what they are."""
    programs = []
    for name in ("berth", "berth-supervise"):
        debian.write(os.path.join(folder, "programs", name), b"\x7fELF stand-in for " + name.encode(), 0o755, 1)
        programs.append(os.path.join(folder, "programs", name))
    root = os.path.join(folder, "root")
    for name, mode in (("usr/local/bin/berth", 0o755), ("lib/x86_64-linux-gnu/libc.so.6", 0o755), ("etc/passwd", 0o600)):
        debian.write(os.path.join(root, name), name.encode(), mode, 2)
    os.symlink("UTC", os.path.join(root, "etc/localtime"))
    os.makedirs(os.path.join(root, "tmp"))
    os.makedirs(os.path.join(root, "var/lib/berth"))
    path = {what: os.path.join(folder, f"berth-{what}") for what in ("deb", "image.tar", "chart.tgz", "sbom.json", "bundle.tar")}
    path["programs"] = programs
    bill = sbom.pack(FACTS, programs)
    with open(path["sbom.json"], "wb") as file:
        file.write(bill)
    debs = os.path.join(folder, "debs")
    os.makedirs(debs)
    path["deb"] = os.path.join(debs, f"berth_{FACTS.debian_version}_amd64.deb")
    debian.pack(ROOT, FACTS, programs, sbom.notices(FACTS), bill, path["deb"])
    path["digest"] = image.pack(FACTS, image.layers_of(root), path["image.tar"])
    chart.pack(ROOT, FACTS, path["digest"], path["chart.tgz"])
    bundle.pack(ROOT, FACTS, path["digest"], [path["image.tar"], path["chart.tgz"], path["sbom.json"]], debs, path["bundle.tar"])
    return path


def content(path):
    with open(path, "rb") as file:
        return file.read()


def the_same_facts_give_the_same_bytes(first, folder):
    """Also with another umask, and files of another age in another order."""
    before = os.umask(0o077)
    try:
        second = made(os.path.join(folder, "again"))
    finally:
        os.umask(before)
    for what in ("deb", "image.tar", "chart.tgz", "sbom.json", "bundle.tar"):
        one, other = content(first[what]), content(second[what])
        assert one == other, f"{what}: {len(one)} and {len(other)} bytes differ"
    # What the same process would do twice alike, and another one not: the time in gzip's header, the order of entries.
    with tarfile.open(first["image.tar"]) as archive:
        blobs = [archive.extractfile(one).read() for one in archive.getmembers() if one.isfile()]
    layers = [blob for blob in blobs if blob.startswith(b"\x1f\x8b")]
    assert len(layers) == 2
    for zipped in [content(first["chart.tgz"]), *layers]:
        assert zipped[4:8] == bytes(4), "gzip's header has no time"
        names = tarfile.open(fileobj=io.BytesIO(gzip.decompress(zipped))).getnames()
        assert names == sorted(names), names


def the_debian_package_is_what_dpkg_expects(first, folder):
    def said(*words):
        return subprocess.run(["dpkg-deb", *words], capture_output=True, text=True, check=True).stdout
    assert said("-f", first["deb"], "Version").strip() == "0.1.0~git20261129005618.g01234567"
    assert said("-f", first["deb"], "Depends").strip() == "libc6 (>= 2.36), adduser, ca-certificates, tzdata"
    assert said("-I", first["deb"], "conffiles").split() == ["/etc/berth/cluster.yaml", "/etc/default/berth"]
    rows = {line.split()[5][2:]: line.split() for line in said("-c", first["deb"]).splitlines()}
    assert {row[1] for row in rows.values()} == {"root/root"}, rows
    assert rows["usr/bin/berth"][0] == "-rwxr-xr-x" and rows["etc/berth/cluster.yaml"][0] == "-rw-r--r--", rows
    assert rows["usr/bin/berth"][3:5] == ["2026-11-29", "00:56"], rows["usr/bin/berth"]
    for path in ("usr/bin/berth-supervise", "lib/systemd/system/berth.service", "usr/share/doc/berth/run-a-cluster.md",
                 "usr/share/doc/berth/third-party.txt", "usr/share/doc/berth/copyright"):
        assert path in rows, path
    assert "@" not in said("-I", first["deb"], "preinst").replace('"$@"', ""), "a word of the template is left"
    for script in debian.SCRIPTS:
        text = said("-I", first["deb"], script)
        assert text.startswith("#!/bin/sh\n") and subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
        assert "debconf" not in text and not re.search(r"\bread\b", re.sub("#.*", "", text)), f"{script} asks"


def the_units_name_what_the_package_has(first, folder):
    with open(os.path.join(ROOT, "docs/run-a-cluster.md")) as file:
        manual = file.read()
    for unit in ("berth.service", "berth-kubernetes.service"):
        text = content(os.path.join(ROOT, "deploy/debian", unit)).decode()
        assert "ExecStart=/usr/bin/berth serve " in text and "EnvironmentFile=-/etc/default/berth" in text
        assert "RestartPreventExitStatus=2 4 74" in text and unit in manual
    text = content(os.path.join(ROOT, "deploy/debian/berth.service")).decode()
    for line in ("KillMode=process", "Delegate=yes", "RuntimeDirectory=berth", "StateDirectory=berth"):
        assert line in text, line


def the_image_is_an_oci_layout(first, folder):
    archive = tarfile.open(first["image.tar"])
    blobs = {name.removeprefix("blobs/").replace("/", ":"): archive.extractfile(name).read()
             for name in archive.getnames() if name.startswith("blobs/sha256/")}
    for name, blob in blobs.items():
        assert name == "sha256:" + hashlib.sha256(blob).hexdigest()
    index = json.loads(archive.extractfile("index.json").read())
    assert json.loads(archive.extractfile("oci-layout").read()) == {"imageLayoutVersion": "1.0.0"}
    entry, = index["manifests"]
    assert entry["digest"] == first["digest"] and entry["annotations"]["io.containerd.image.name"] == f"docker.io/library/berth:{FACTS.tag}"
    manifest = json.loads(blobs[entry["digest"]])
    config = json.loads(blobs[manifest["config"]["digest"]])
    assert config["config"]["User"] == "65532:65532" and config["config"]["Entrypoint"] == ["/usr/local/bin/berth"]
    layers = [gzip.decompress(blobs[one["digest"]]) for one in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(one).hexdigest() for one in layers]
    assert len(config["history"]) == len(layers) == 2
    lower, upper = ({one.name: one for one in tarfile.open(fileobj=io.BytesIO(layer)).getmembers()} for layer in layers)
    assert set(upper) == {"usr", "usr/local", "usr/local/bin", "usr/local/bin/berth"} and "usr/local" not in lower
    assert lower["tmp"].mode == 0o1777 and lower["var/lib/berth"].uid == 65532 and lower["etc/passwd"].mode == 0o644
    assert {one.mtime for one in [*lower.values(), *upper.values()]} == {FACTS.epoch}
    assert not any(one.uname or one.gname for one in lower.values()) and lower["etc/localtime"].linkname == "UTC"


def the_chart_names_its_image_by_digest(first, folder):
    chart_file = tarfile.open(first["chart.tgz"])
    text = chart_file.extractfile("berth/Chart.yaml").read().decode()
    assert f"berth.dev/image-digest: {first['digest']}" in text and f"\nversion: {FACTS.tag}\n" in text, text
    assert f'\nappVersion: "{FACTS.tag}"\n' in text and "berth/values.schema.json" in chart_file.getnames()


def the_bill_of_materials_hangs_together(first, folder):
    bill = json.loads(content(first["sbom.json"]))
    ids = [one["SPDXID"] for one in bill["packages"] + bill["files"]]
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", one) for one in ids), ids
    for relation in bill["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= {*ids, "SPDXRef-DOCUMENT"}, relation
    kinds = {one["relationshipType"] for one in bill["relationships"]}
    assert kinds == {"DESCRIBES", "DYNAMIC_LINK", "STATIC_LINK", "BUILD_DEPENDENCY_OF", "CONTAINS"}, kinds
    licences = {one["name"]: one["licenseDeclared"] for one in bill["packages"]}
    texts = {one["licenseId"]: one["extractedText"] for one in bill["hasExtractedLicensingInfos"]}
    assert licences["libboost1.81-dev"] == "BSL-1.0" and licences["@scope/svelte"] == "MIT" and licences["berth"] == "Apache-2.0"
    assert texts[licences["libcli11-dev"]] == "text of CLI11" and texts[licences["libc6"]] == NOTICE
    sums = [one["checksumValue"] for file in bill["files"] for one in file["checksums"] if one["algorithm"] == "SHA256"]
    assert sums == [hashlib.sha256(content(path)).hexdigest() for path in first["programs"]]
    assert licence_of(NOTICE) == "Expat" and licence_of("all of it is free") == ""
    notices = sbom.notices(FACTS)
    assert "text of Boost" in notices and "text of svelte" in notices and "text of CLI11" not in notices, "what is compiled in, alone"


def the_bundle_knows_when_it_was_changed(first, folder):
    with tarfile.open(first["bundle.tar"]) as archive:
        archive.extractall(folder)
    top = os.path.join(folder, "berth-bundle")

    def check():
        return subprocess.run([os.path.join(top, "install"), "check"], capture_output=True, text=True, check=False)
    assert check().returncode == 0, check().stderr
    listed = {line.split("  ")[1] for line in content(os.path.join(top, "SHA256SUMS")).decode().splitlines()}
    there = {os.path.relpath(os.path.join(where, name), top) for where, _, names in os.walk(top) for name in names}
    assert there - listed == {"SHA256SUMS"}, there ^ listed
    assert {"INSTALL.md", "install", "version", "debs/Packages", "manifests/berth.yaml"} <= there, there
    assert content(os.path.join(top, "version")).decode().strip() == FACTS.debian_version
    manifest = content(os.path.join(top, "manifests/berth.yaml")).decode()
    assert f"image: berth:{FACTS.tag}@{first['digest']}\n" in manifest and "berth:latest" not in manifest
    with open(os.path.join(top, "manifests/berth.yaml"), "a") as file:
        file.write("changed")
    assert check().returncode == 1 and "nothing was changed" in check().stderr
    asked = subprocess.run([os.path.join(top, "install"), "everything"], capture_output=True, text=True, check=False)
    assert asked.returncode == 2 and "usage: ./install" in asked.stderr


def versions_are_ordered_by_time(first, folder):
    later = Facts(**{**vars(FACTS), "epoch": FACTS.epoch + 1, "commit": "0" * 40})
    changed = Facts(**{**vars(FACTS), "changed": True})
    final = Facts(**{**vars(FACTS), "tagged": True})
    assert final.debian_version == final.tag == "0.1.0"
    for older, newer in ((FACTS, changed), (changed, later), (later, final)):
        subprocess.run(["dpkg", "--compare-versions", older.debian_version, "lt", newer.debian_version], check=True)
    for one in (FACTS, changed, later, final):  # semantic versioning lets no number begin with 0; a tag has 128 characters at most
        assert re.fullmatch(r"0\.1\.0(-[a-z][0-9a-z]*(\.[a-z][0-9a-z]*)*)?", one.tag) and len(one.tag) <= 128, one.tag


CASES = [the_same_facts_give_the_same_bytes, the_debian_package_is_what_dpkg_expects, the_units_name_what_the_package_has,
         the_image_is_an_oci_layout, the_chart_names_its_image_by_digest, the_bill_of_materials_hangs_together,
         the_bundle_knows_when_it_was_changed, versions_are_ordered_by_time]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        first = made(os.path.join(folder, "first"))
        for case in CASES:
            try:
                case(first, os.path.join(folder, case.__name__))
            except (AssertionError, subprocess.CalledProcessError) as problem:
                failed += 1
                print(f"FAILED: {case.__name__.replace('_', ' ')}\n{type(problem).__name__}: {problem}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
