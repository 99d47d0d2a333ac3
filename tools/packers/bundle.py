"""The air-gapped bundle: one tar with the package and all that it needs, the image, the chart, the bill of materials, hashes, and
deploy/bundle/install with its page."""
import hashlib
import os

from packers.archive import Entry, entries_below, tar
from packers.facts import output_of


def index_of(folder):
    """What apt reads of a folder of packages: `dpkg-scanpackages` tells of each in the order of names."""
    return output_of("dpkg-scanpackages", "--multiversion", ".", where=folder).encode()


def sums(contents):
    """The text of SHA256SUMS for names and contents."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(contents.items())).encode()


def manifests(root, facts, digest):
    """The plain manifests with the image of this release, which has no tag `latest` where the bundle gives it to a node."""
    entries = [entry for entry in entries_below(os.path.join(root, "deploy/kubernetes"), "manifests/") if entry.name.endswith(".yaml")]
    named = f"image: berth:{facts.tag}@{digest}".encode()
    for entry in entries:
        entry.content = entry.content.replace(b"image: berth:latest", named)
    assert any(named in entry.content for entry in entries), "no manifest has the image berth:latest"
    return entries


def pack(root, facts, digest, files, debs, target):
    """`digest` is that of the image; `files` are the paths of image, chart and bill of materials; `debs` is the folder with the
    package and what it needs."""
    name = os.path.basename(target).removesuffix(".tar")
    entries = entries_below(debs, "debs/") + [Entry("debs/Packages", index_of(debs))]
    entries += entries_below(os.path.join(root, "deploy/bundle"))
    entries += manifests(root, facts, digest)
    for path in files:
        with open(path, "rb") as file:
            entries.append(Entry(os.path.basename(path), file.read()))
    entries.append(Entry("version", f"{facts.debian_version}\n".encode()))
    entries.append(Entry("SHA256SUMS", sums({entry.name: entry.content for entry in entries if entry.content is not None})))
    for entry in entries:
        entry.name = f"{name}/{entry.name}"
    with open(target, "wb") as file:
        file.write(tar(entries, facts.epoch))
