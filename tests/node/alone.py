"""A place of the tests' own on this machine: namespaces of mounts, processes and network, in which all that a test starts ends
with it, however it ends. What those do not hold is one folder of temporary files and the control groups; the next run removes
what a killed one has left of both. One run at a time on a machine.

    outside        takes the lock, removes leftovers, becomes `unshare`
    first process  hides /run, /var/lib and /var/log, starts the test, ends all that it has left
    the test       goes on in main()
"""
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
from patience import Patience, eventually  # noqa: E402

STAGE = "BERTH_NODE_TEST_STAGE"
FILES = "/tmp/berth-node-test"  # one run at a time
CGROUPS = "/sys/fs/cgroup"
GROUP = "berth-node-test"
CONTROLLERS = ("cpu", "memory", "pids")
HIDDEN = ("/run", "/var/lib", "/var/log")  # where the kubelet and containerd write what cannot be told to lie elsewhere


def hierarchies():
    """The folders in which a control group of ours is to be made: one, or one for each controller of version 1."""
    if os.path.exists(os.path.join(CGROUPS, "cgroup.controllers")):
        return [CGROUPS]
    return [os.path.join(CGROUPS, name) for name in sorted(os.listdir(CGROUPS)) if name != "unified"] if os.path.isdir(CGROUPS) else []


def lacking():
    """Why no container can be run here, or an empty text."""
    if os.geteuid() != 0:
        return "a kubelet needs root"
    for program in ("unshare", "nsenter", "ip", "mount", "openssl"):
        if shutil.which(program) is None:
            return f"there is no program {program}"
    unshared = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "none", "/run"],
                              capture_output=True, text=True, check=False)
    if unshared.returncode != 0:
        return "namespaces and mounts are not allowed here: " + unshared.stderr.strip()
    return lacking_controllers()


def lacking_controllers():
    at = hierarchies()
    if at == [CGROUPS]:
        with open(os.path.join(CGROUPS, "cgroup.controllers")) as file:
            known = file.read().split()
    else:
        known = [name for folder in at for name in os.path.basename(folder).split(",")]
    if missing := [name for name in CONTROLLERS if name not in known]:
        return f"there are no control groups of {', '.join(missing)} here"
    for folder in at:
        probe = os.path.join(folder, f"{GROUP}-probe-{os.getpid()}")  # another run may have the groups themselves
        try:
            os.mkdir(probe)
            os.rmdir(probe)
        except OSError as error:
            return f"no control group can be made in {folder}: {error.strerror}"
    return ""


def remove_groups():
    """Whatever a run has left; its processes are being ended. runc makes some in the hierarchy of version 2 as well."""
    for folder in {*hierarchies(), os.path.join(CGROUPS, "unified")}:
        eventually(f"the control groups in {folder}/{GROUP} are empty", lambda at=os.path.join(folder, GROUP): is_removed(at))


def is_removed(top):
    for folder, _, _ in os.walk(top, topdown=False):
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT):
                raise
    return not os.path.exists(top)


def lock():
    """The lock of this machine, which the first process has until it ends."""
    at = os.open("/tmp/berth-node-test.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    patience = Patience(600)

    def taken():
        try:
            fcntl.flock(at, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
    eventually("another run of this machine has ended", taken, patience.patience_s, 0.5)
    os.set_inheritable(at, True)


def enter():
    """Returns in the test's own process. Elsewhere it does not return: its exit is that of the test. Called before anything is
    started; the host has been looked at by lacking()."""
    stage = os.environ.get(STAGE)
    if stage is None:
        lock()
        remove_groups()
        shutil.rmtree(FILES, ignore_errors=True)
        os.makedirs(FILES, mode=0o755)
        os.environ[STAGE] = "first"
        sys.stdout.flush()
        os.execvp("unshare", ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable,
                              *sys.argv])
    if stage == "first":
        sys.exit(first_process())
    tempfile.tempdir = FILES


def run(*words):
    subprocess.run(words, check=True)


def first_process():
    """Process 1 of the namespace: reaps, and ends all that the test has left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the test is told, too
    run("mount", "--make-rshared", "/")  # of this namespace: mounts of a pod are seen by its container
    for folder in HIDDEN:
        run("mount", "-t", "tmpfs", "none", folder)
    run("ip", "link", "set", "lo", "up")
    os.environ[STAGE] = "test"
    test = os.fork()
    if test == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    code = 1
    while True:
        ended, status = os.wait()
        if ended == test:
            code = os.waitstatus_to_exitcode(status)
            break
    end_all()
    remove_groups()
    return code if code >= 0 else 128 - code


def end_all():
    """All other processes of the namespace."""
    try:
        os.kill(-1, signal.SIGKILL)
        while True:
            os.wait()
    except (ProcessLookupError, ChildProcessError):
        pass
