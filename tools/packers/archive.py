"""Archives whose bytes follow from their content alone: entries are sorted by name, each has the time of the commit, and no
name of a user or a group is in them."""
import gzip
import io
import os
import stat
import tarfile
from dataclasses import dataclass


@dataclass
class Entry:
    """One file, folder or link of an archive. `content` is None for a folder, `link` is where a symbolic link points."""
    name: str
    content: bytes | None = None
    mode: int = 0o644
    owner: int = 0
    link: str = ""


def folder(name, mode=0o755, owner=0):
    return Entry(name, mode=mode, owner=owner)


def entries_below(top, prefix=""):
    """All that lies below a folder. Modes are made even, because those on the disk depend on the umask of the build."""
    found = []
    for where, folders, files in os.walk(top):
        for name in sorted(folders + files):
            path = os.path.join(where, name)
            inside = prefix + os.path.relpath(path, top)
            if os.path.islink(path):
                found.append(Entry(inside, link=os.readlink(path)))
            elif os.path.isdir(path):
                found.append(folder(inside))
            else:
                with open(path, "rb") as file:
                    found.append(Entry(inside, file.read(), 0o755 if os.stat(path).st_mode & stat.S_IXUSR else 0o644))
    return found


def tar(entries, epoch):
    """A POSIX tar of the entries, as bytes. Folders above an entry are added where they are missing."""
    by_name = {entry.name: entry for entry in entries}
    assert len(by_name) == len(entries), "two entries have one name"
    for name in list(by_name):
        while name := os.path.dirname(name):
            by_name.setdefault(name, folder(name))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(by_name):
            entry = by_name[name]
            info = tarfile.TarInfo(name)
            info.mtime, info.mode, info.uid, info.gid = epoch, entry.mode, entry.owner, entry.owner
            if entry.link:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
            elif entry.content is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(entry.content)
            archive.addfile(info, io.BytesIO(entry.content) if entry.content is not None else None)
    return buffer.getvalue()


def zipped(content):
    """gzip without a time and a name."""
    return gzip.compress(content, compresslevel=6, mtime=0)
