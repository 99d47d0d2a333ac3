#!/usr/bin/env python3
"""The images of the tests, as archives that `ctr images import` takes: the same bytes for the same files.

    image.py BUSYBOX PYTHON TRAIN FOLDER    writes pause.tar, shell.tar and train.tar into the folder

`pause` holds a pod's namespaces. `shell` is one static busybox. `train` is that, the Python of the folder PYTHON (unpacked
packages of Debian) and the training program of examples/training.
"""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

TOOLS = "sh sleep env cat ls echo kill true false touch id hostname grep".split()
LEFT_OUT = ("usr/share", "usr/lib/x86_64-linux-gnu/gconv", "etc")  # of no use to the tests


class Layer:
    """A layer of an image: what is added to it, in order."""

    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, path, kind, content=b"", mode=0o755, target=""):
        entry = tarfile.TarInfo(path)  # of root, and of the year 1970
        entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(content), target
        self.tar.addfile(entry, io.BytesIO(content))

    def add_file(self, path, source):
        with open(source, "rb") as file:
            self.add(path, tarfile.REGTYPE, file.read(), os.stat(source).st_mode & 0o777)

    def add_tree(self, source):
        for folder, folders, files in os.walk(source):
            folders.sort()
            at = os.path.relpath(folder, source)
            if any(at == out or at.startswith(out + "/") for out in LEFT_OUT):
                folders.clear()
                continue
            for name in sorted(files + [name for name in folders if os.path.islink(os.path.join(folder, name))]):
                path = os.path.normpath(os.path.join(at, name))
                if os.path.islink(os.path.join(folder, name)):
                    self.add(path, tarfile.SYMTYPE, target=os.readlink(os.path.join(folder, name)))
                else:
                    self.add_file(path, os.path.join(folder, name))

    def done(self):
        self.tar.close()
        return self.bytes.getvalue()


def shell_layer(busybox):
    layer = Layer()
    for folder in ("bin", "dev", "etc", "proc", "sys", "tmp"):
        layer.add(folder, tarfile.DIRTYPE, mode=0o1777 if folder == "tmp" else 0o755)
    layer.add_file("bin/busybox", busybox)
    for tool in TOOLS:
        layer.add("bin/" + tool, tarfile.SYMTYPE, target="busybox")
    return layer.done()


def train_layer(python, program):
    layer = Layer()
    layer.add_tree(python)
    layer.add("usr/bin/python3", tarfile.SYMTYPE, target="python3.11")
    layer.add_file("train.py", program)
    return layer.done()


def write_image(path, name, layers, command):
    config = json.dumps({"architecture": "amd64", "os": "linux",
                         "config": {"Env": ["PATH=/bin:/usr/bin", "PYTHONDONTWRITEBYTECODE=1"], "Cmd": command},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(one).hexdigest() for one in layers]}})
    names = [f"layer{number}.tar.gz" for number in range(len(layers))]
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": names}])
    archive = Layer()
    archive.add("config.json", tarfile.REGTYPE, config.encode())
    for layer, content in zip(names, layers):
        archive.add(layer, tarfile.REGTYPE, gzip.compress(content, 1, mtime=0))
    archive.add("manifest.json", tarfile.REGTYPE, manifest.encode())
    with open(path, "wb") as file:
        file.write(archive.done())


def main(busybox, python, program, folder):
    shell = shell_layer(busybox)
    write_image(os.path.join(folder, "pause.tar"), "berth.test/pause:1", [shell], ["/bin/sleep", "2147483647"])
    write_image(os.path.join(folder, "shell.tar"), "berth.test/shell:1", [shell], ["/bin/sh"])
    write_image(os.path.join(folder, "train.tar"), "berth.test/train:1", [shell, train_layer(python, program)],
                ["python3", "/train.py"])


if __name__ == "__main__":
    main(*sys.argv[1:])
