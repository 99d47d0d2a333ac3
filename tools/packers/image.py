"""The OCI image, as a tar of an OCI layout that containerd, skopeo and podman read. It has what deploy/kubernetes/image-root puts
together, in two layers: what berth links, which seldom changes, and the program."""
import hashlib
import json
import os

from packers.archive import Entry, entries_below, folder, tar, zipped

USER = 65532
PROGRAM = "usr/local/bin/berth"
NAME = "docker.io/library/berth"  # what `berth` in the chart means to a kubelet
LAYOUT = {"imageLayoutVersion": "1.0.0"}
MANIFEST, CONFIG = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.config.v1+json"
INDEX, LAYER = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip"


def layers_of(root):
    """The entries of each layer, the lowest first."""
    entries = entries_below(root)
    for entry in entries:
        if entry.name == "tmp":
            entry.mode = 0o1777
        elif entry.name == "var/lib/berth":
            entry.owner = USER
    program = [entry for entry in entries if entry.name == PROGRAM]
    above = {os.path.dirname(PROGRAM), "usr/local"}
    return [[entry for entry in entries if entry.name not in above | {PROGRAM}], program]


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest_of(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


class Layout:
    """The blobs of one image, by digest."""

    def __init__(self):
        self.blobs = {}

    def add(self, media_type, content):
        digest = digest_of(content)
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": digest, "size": len(content)}


def pack(facts, layers, target):
    """Writes the tar to the file `target`; returns the digest of the manifest, by which the image is named."""
    layout = Layout()
    unzipped = [tar(entries, facts.epoch) for entries in layers]
    created = facts.moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"org.opencontainers.image.title": "berth", "org.opencontainers.image.version": facts.tag,
              "org.opencontainers.image.revision": facts.commit, "org.opencontainers.image.created": created,
              "org.opencontainers.image.licenses": "Apache-2.0"}
    config = {
        "architecture": facts.architecture, "os": "linux", "created": created,
        "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/" + PROGRAM], "WorkingDir": "/", "Labels": labels,
                   "Env": ["PATH=/usr/local/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"]},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(one) for one in unzipped]},
        "history": [{"created": created, "created_by": f"tools/release: {what}"} for what in ("libraries", "program")]}
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": layout.add(CONFIG, as_json(config)),
                "layers": [layout.add(LAYER, zipped(one)) for one in unzipped], "annotations": labels}
    entry = layout.add(MANIFEST, as_json(manifest))
    digest = entry["digest"]
    # The first name is for containerd and podman, the second is the tag by which skopeo asks.
    entry["annotations"] = {"io.containerd.image.name": f"{NAME}:{facts.tag}", "org.opencontainers.image.ref.name": facts.tag}
    entry["platform"] = {"architecture": facts.architecture, "os": "linux"}
    files = [Entry("oci-layout", as_json(LAYOUT)), folder("blobs"), folder("blobs/sha256"),
             Entry("index.json", as_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}))]
    files += [Entry("blobs/" + name.replace(":", "/"), content) for name, content in layout.blobs.items()]
    with open(target, "wb") as file:
        file.write(tar(files, facts.epoch))
    return digest
