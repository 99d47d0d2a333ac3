"""Run as a job by task_user_test.py: tries what a hostile job would, and prints a line for each, `contained: WHAT` or
`BREACH: WHAT`. What it gets hold of it prints too, so that the test can look for secrets.

    hostile_task.py DATA PORT VICTIM-JOB VICTIM-PID VICTIM-SUPERVISOR SERVER-PID
"""
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

DATA, PORT, VICTIM = sys.argv[1], int(sys.argv[2]), sys.argv[3]
PROCESS, SUPERVISOR, SERVER = (int(word) for word in sys.argv[4:7])
OWN = os.environ["BERTH_JOB"]
LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE = 0x4206


def attempt(what, act):
    """Contained is what the kernel or the server refuses. Another error is no proof, and counts as a breach."""
    try:
        got = act()
    except (PermissionError, urllib.error.HTTPError) as problem:
        print("contained:", what, "-", type(problem).__name__)
        return
    except Exception as problem:
        got = problem
    print("BREACH:", what, "-", repr(got)[:300])


def read(path):
    with open(path, "rb") as file:
        return file.read(4096)


def write(path):
    with open(path, "a") as file:
        file.write("forged")


def system_call(name, *arguments):
    if getattr(LIBC, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def ask(headers):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/v1/jobs", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read()


def ask_by_socket():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(DATA + "/berth.sock")
        client.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = client.recv(4096)
    if b" 401 " in answer.splitlines()[0]:
        raise PermissionError(401, "nobody")
    return answer


def link_and_read():
    os.link(DATA + "/token", os.environ["BERTH_CHECKPOINT_DIR"] + "/ack.json")
    return read(os.environ["BERTH_CHECKPOINT_DIR"] + "/ack.json")


def put_on_the_path(path):
    """Replaces a directory by one of its own."""
    os.rename(path, path + ".gone")
    os.mkdir(path)


def gain_root():
    """By a program of root with the set-user-id bit, which the test has put beside this one, and by a plain call."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "id-of-root")
    if subprocess.run([program, "-u"], capture_output=True, text=True, check=True).stdout.strip() == "0":
        return program
    os.setuid(0)


def leave_its_cgroup():
    denied = 0
    with open("/proc/self/cgroup") as file:
        groups = [line.strip().split(":", 2) for line in file]
    for _, controllers, path in groups:
        root = "/sys/fs/cgroup/" + controllers.replace("name=", "")
        for place in (root, root + path):
            for name in ("cgroup.procs", "memory.max", "memory.limit_in_bytes", "pids.max"):
                if os.path.exists(f"{place}/{name}"):
                    try:
                        with open(f"{place}/{name}", "w") as file:
                            file.write(str(os.getpid()))
                        return f"{place}/{name}"
                    except PermissionError:
                        denied += 1
    raise PermissionError(0, f"{denied} denied")


VICTIMS = f"{DATA}/jobs/{VICTIM}"
OWNS = f"{DATA}/jobs/{OWN}"
RUN = f"{DATA}/run/tasks"

attempt("read the token of the admin", lambda: read(DATA + "/token"))
attempt("link the token into its own directory", link_and_read)
attempt("chmod the token", lambda: os.chmod(DATA + "/token", 0o666))
attempt("ask without a token", lambda: ask({}))
attempt("ask with the token of its task", lambda: ask({"Authorization": "Bearer " + os.environ["BERTH_TASK_TOKEN"]}))
attempt("ask by the Unix socket", ask_by_socket)
attempt("read the log of events", lambda: read(DATA + "/log.db"))
attempt("list the data directory", lambda: os.listdir(DATA))
attempt("list the jobs", lambda: os.listdir(DATA + "/jobs"))
attempt("chmod the data directory", lambda: os.chmod(DATA, 0o777))
attempt("write the list of uids", lambda: write(DATA + "/task-uids"))
attempt("list another's job", lambda: os.listdir(VICTIMS))
attempt("read another's checkpoint", lambda: read(VICTIMS + "/checkpoint/weights"))
attempt("poison another's checkpoint", lambda: write(VICTIMS + "/checkpoint/weights"))
attempt("acknowledge another's checkpoint", lambda: write(VICTIMS + "/checkpoint/ack.json"))
attempt("replace another's checkpoint directory", lambda: put_on_the_path(VICTIMS + "/checkpoint"))
attempt("remove another's checkpoint directory", lambda: shutil.rmtree(VICTIMS + "/checkpoint"))
attempt("write another's home", lambda: write(VICTIMS + "/home/.profile"))
attempt("read another's log", lambda: read(VICTIMS + "/attempt-1/task-0/stdout-00000000000000000000.log"))
attempt("read another's environment", lambda: read(f"/proc/{PROCESS}/environ"))
attempt("read another's memory", lambda: read(f"/proc/{PROCESS}/mem"))
attempt("see another's files through /proc", lambda: os.listdir(f"/proc/{PROCESS}/fd"))
attempt("trace another's process", lambda: system_call("ptrace", PTRACE_SEIZE, PROCESS, None, None))
attempt("trace the server", lambda: system_call("ptrace", PTRACE_SEIZE, SERVER, None, None))
attempt("read the environment of the server", lambda: read(f"/proc/{SERVER}/environ"))
attempt("kill another's process", lambda: os.kill(PROCESS, signal.SIGKILL))
attempt("kill the server", lambda: os.kill(SERVER, signal.SIGKILL))
attempt("stop its own supervisor", lambda: os.kill(os.getppid(), signal.SIGSTOP))
attempt("kill another's supervisor", lambda: os.kill(SUPERVISOR, signal.SIGKILL))
attempt("forge its own exit", lambda: write(f"{RUN}/{OWN}.1.0.1/exit.json"))
attempt("forge another's exit", lambda: write(f"{RUN}/{VICTIM}.1.0.1/exit.json"))
attempt("command another's supervisor", lambda: write(f"{RUN}/{VICTIM}.1.0.1/commands/1.json"))
attempt("write its own log", lambda: write(f"{OWNS}/attempt-1/task-0/stdout-00000000000000000000.log"))
attempt("replace its own checkpoint directory", lambda: put_on_the_path(OWNS + "/checkpoint"))
attempt("become root", gain_root)
attempt("leave its control group", leave_its_cgroup)
