"""The chart as `helm install` takes it: deploy/helm/berth with the version of the release and the digest of its image."""
import os
import re

from packers.archive import Entry, entries_below, tar, zipped
from packers.debian import content_of


def replaced(text, pattern, by):
    changed, count = re.subn(pattern, by, text, flags=re.M)
    assert count == 1, f"Chart.yaml has {count} lines of the form {pattern}"
    return changed


def pack(root, facts, digest, target):
    entries = entries_below(os.path.join(root, "deploy/helm/berth"), "berth/")
    for entry in entries:
        if entry.name == "berth/Chart.yaml":
            text = replaced(entry.content.decode(), r"^version: .*$", f"version: {facts.tag}")
            text = replaced(text, r"^appVersion: .*$", f'appVersion: "{facts.tag}"')
            text += f"annotations:\n  berth.dev/image-digest: {digest}\n"
            entry.content = text.encode()
    entries.append(Entry("berth/LICENSE", content_of(root, "LICENSE")))
    with open(target, "wb") as file:
        file.write(zipped(tar(entries, facts.epoch)))
