"""A real Slurm (Debian's) on loopback for comparisons: controller, accounting and simulated nodes, all below one directory.
Nothing is installed: the packages are unpacked into the cache of the tests (debian.py). Needs root, since jobs run as `alice`.

    slurm_oracle.py DIR      starts one, and a shell in it as alice; it ends with the shell
"""
import glob
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import debian
from patience import eventually, stretched

PACKAGES = ("slurm-wlm", "slurmdbd", "munge", "mariadb-server", "libnss-wrapper")
USERS = {"alice": 61001, "carol": 61003}
COMMANDS = ("sbatch", "srun", "scancel", "squeue", "sinfo", "scontrol", "sacct", "sacctmgr")

SLURM_CONF = """
ClusterName=oracle
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/run/munge.socket
PluginDir={plugins}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={at}/ctld
SlurmdSpoolDir={at}/spool/%n
SlurmctldPidFile={at}/run/slurmctld.pid
SlurmdPidFile={at}/run/slurmd-%n.pid
SlurmctldLogFile={at}/log/slurmctld.log
SlurmdLogFile={at}/log/slurmd-%n.log
MailProg=/bin/true
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
KillWait=2
MinJobAge=3600
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0,defer_batch
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
PriorityType=priority/multifactor
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={accounting}
AccountingStoragePass={at}/run/munge.socket
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
JobAcctGatherType=jobacct_gather/none
NodeName={nodes} NodeAddr=127.0.0.1 NodeHostname=localhost Port={ports} Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=512000 Gres=gpu:h100:8 State=UNKNOWN
PartitionName=DEFAULT Nodes={nodes} State=UP MaxTime=UNLIMITED DefaultTime=UNLIMITED
PartitionName=train Default=YES
"""

SLURMDBD_CONF = """
AuthType=auth/munge
AuthInfo=socket={at}/run/munge.socket
PluginDir={plugins}
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={accounting}
SlurmUser=root
PidFile={at}/run/slurmdbd.pid
LogFile={at}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct
CommunicationParameters=NoInAddrAny
"""

ASSOCIATIONS = (
    ("add", "cluster", "oracle"),
    ("add", "qos", "high", "set", "Priority=100"),
    ("add", "account", "lab", "Description=lab", "Organization=lab", "QOS=normal,high", "DefaultQOS=normal"),
    ("add", "account", "vision", "Description=vision", "Organization=lab", "QOS=normal,high", "DefaultQOS=normal"),
    ("add", "user", "alice", "account=lab", "DefaultAccount=lab"),
    ("add", "user", "carol", "account=vision"),
)


class NotToBeHad(Exception):
    """It cannot run here; the message says why."""


def free_ports(count):
    """The first of so many free ports in a row, below those that the system gives out."""
    for _ in range(200):
        first = random.randrange(15000, 27000)
        held = []
        try:
            for port in range(first, first + count):
                held.append(socket.create_server(("127.0.0.1", port)))
            return first
        except OSError:
            continue
        finally:
            for one in held:
                one.close()
    raise NotToBeHad(f"no {count} free ports in a row")


class Oracle:
    def __init__(self, directory, nodes=1):
        if os.geteuid() != 0:
            raise NotToBeHad("its jobs run as other users, which needs root")
        self.at = os.path.abspath(directory)
        self.count = nodes
        try:
            self.tree = debian.fetched(list(PACKAGES))
        except debian.NotToBeHad as problem:
            raise NotToBeHad(str(problem)) from None
        self.children = []
        self.host = socket.gethostname().split(".")[0]
        self.environment = {"PATH": os.pathsep.join([os.path.join(self.at, "bin"), "/usr/bin", "/bin", "/usr/sbin", "/sbin"]),
                            "SLURM_CONF": os.path.join(self.at, "etc", "slurm.conf"),
                            "LD_LIBRARY_PATH": "" if self.tree == "/" else debian.library_path(self.tree),
                            "LD_PRELOAD": self.find("usr/lib/*/libnss_wrapper.so"),
                            "NSS_WRAPPER_PASSWD": os.path.join(self.at, "etc", "passwd"),
                            "NSS_WRAPPER_GROUP": os.path.join(self.at, "etc", "group"),
                            "NSS_WRAPPER_HOSTS": os.path.join(self.at, "etc", "hosts"),
                            "MYSQL_UNIX_PORT": os.path.join(self.at, "run", "mysql.socket"), "TZ": "UTC", "LANG": "C"}

    def find(self, pattern):
        found = glob.glob(os.path.join(self.tree, pattern))
        if not found:
            raise NotToBeHad(f"{pattern} is not in the packages")
        return sorted(found)[0]

    def own(self, program):
        return os.path.join(self.at, "bin", program)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.at, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def daemon(self, name, *words):
        with open(os.path.join(self.at, "log", name + ".out"), "w") as log:
            self.children.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                                  env=self.environment))

    def as_root(self, *words):
        return subprocess.run(words, capture_output=True, text=True, timeout=stretched(60), env=self.environment, stdin=subprocess.DEVNULL)

    def prepare(self):
        for name in ("etc", "run", "log", "ctld", "spool", "bin", "home"):
            os.makedirs(os.path.join(self.at, name), exist_ok=True)
        os.chmod(self.at, 0o755)
        first = free_ports(self.count + 2)
        known = {"at": self.at, "host": self.host, "controller": first, "accounting": first + 1,
                 "plugins": os.path.dirname(self.find("usr/lib/*/slurm-wlm/auth_munge.so")),
                 "nodes": "n1" if self.count == 1 else f"n[1-{self.count}]",
                 "ports": first + 2 if self.count == 1 else f"[{first + 2}-{first + 1 + self.count}]"}
        with open("/etc/passwd") as passwd, open("/etc/group") as group:
            passwd_text, group_text = passwd.read(), group.read()
        for user, number in USERS.items():
            home = os.path.join(self.at, "home", user)
            passwd_text += f"{user}:x:{number}:{number}::{home}:/bin/bash\n"
            group_text += f"{user}:x:{number}:\n"
            os.makedirs(home)
            os.chown(home, number, number)
        self.write("etc/passwd", passwd_text)
        self.write("etc/group", group_text)
        self.write("etc/hosts", f"127.0.0.1 {self.host} localhost\n")
        self.write("etc/slurm.conf", SLURM_CONF.format(**known))
        self.write("etc/gres.conf", f"NodeName={known['nodes']} Name=gpu Type=h100 File=/dev/tty[0-7]\n")
        self.write("etc/cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.write("etc/slurmdbd.conf", SLURMDBD_CONF.format(**known), 0o600)
        for command in COMMANDS:
            os.symlink(self.find(f"usr/bin/{command}"), os.path.join(self.at, "bin", command))
        for daemon in ("slurmctld", "slurmd", "slurmstepd"):  # by their names: they ask for it
            os.symlink(self.find(f"usr/sbin/{daemon}-wlm"), os.path.join(self.at, "bin", daemon))
        with open(self.write("etc/munge.key", "", 0o600), "wb") as key:
            key.write(os.urandom(128))

    def start(self):
        self.prepare()
        run = os.path.join(self.at, "run")
        self.daemon("munged", self.find("usr/sbin/munged"), "--foreground", f"--socket={run}/munge.socket",
                    f"--key-file={self.at}/etc/munge.key", f"--pid-file={run}/munged.pid", f"--log-file={self.at}/log/munged.log",
                    f"--seed-file={run}/munge.seed")
        # mariadb-install-db is a shell script with the paths of an installation; this is what it does.
        share = self.find("usr/share/mysql")
        server = self.find("usr/sbin/mariadbd")
        plain = [server, "--no-defaults", "--user=root", f"--basedir={os.path.join(self.tree, 'usr')}", f"--datadir={self.at}/mysql",
                 f"--lc-messages-dir={share}", "--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0", "--skip-networking",
                 f"--plugin-dir={self.at}/run", "--innodb-buffer-pool-size=32M", "--performance-schema=OFF"]
        os.makedirs(os.path.join(self.at, "mysql", "mysql"))
        tables = "create database if not exists mysql;\nuse mysql;\nset @auth_root_socket='root';\n"
        for name in ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"):
            with open(os.path.join(share, name)) as file:
                tables += file.read() + "\n"
        made = subprocess.run([*plain, "--bootstrap"], input=tables, capture_output=True, text=True, env=self.environment,
                              timeout=stretched(120))
        if made.returncode != 0:
            raise NotToBeHad("the database was not made: " + made.stderr[-500:])
        self.daemon("mariadbd", *plain, f"--socket={run}/mysql.socket", "--innodb-lock-wait-timeout=900", "--max-allowed-packet=16M",
                    "--skip-grant-tables")
        for name in ("munge.socket", "mysql.socket"):
            self.wait(name, lambda path=os.path.join(run, name): os.path.exists(path))
        self.daemon("slurmdbd", self.find("usr/sbin/slurmdbd"), "-D")
        self.wait("slurmdbd", lambda: self.as_root("sacctmgr", "-n", "show", "cluster").returncode == 0)
        for words in ASSOCIATIONS:
            done = self.as_root("sacctmgr", "-i", *words)
            if done.returncode != 0:
                raise NotToBeHad(f"sacctmgr {' '.join(words)}: {done.stdout}{done.stderr}")
        self.daemon("slurmctld", self.own("slurmctld"), "-D")
        for number in range(1, self.count + 1):
            os.makedirs(os.path.join(self.at, "spool", f"n{number}"))
            self.daemon(f"slurmd-n{number}", self.own("slurmd"), "-D", "-N", f"n{number}", "-d", self.own("slurmstepd"))
        self.wait("nodes", lambda: self.as_root("sinfo", "-h", "-p", "train", "-t", "idle", "-o", "%D").stdout.strip() == str(self.count))

    def wait(self, what, holds):
        eventually(lambda: f"Slurm is up ({what}):\n" + self.logs(), holds, 60, every_s=0.1)

    def logs(self):
        text = ""
        for path in glob.glob(os.path.join(self.at, "log", "*")):
            with open(path, errors="replace") as file:
                text += f"--- {os.path.basename(path)}\n{file.read()[-800:]}"
        return text

    def run(self, *words, user="alice", env=None, text=None, cwd=None):
        """A command as a user of it."""
        uid, home = str(USERS[user]), os.path.join(self.at, "home", user)
        return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *words], capture_output=True, text=True,
                              cwd=cwd or home, input=text, timeout=stretched(60),
                              env={**self.environment, "HOME": home, "USER": user, "LOGNAME": user, **(env or {})})

    def stop(self):
        if self.children:
            for user in USERS:
                self.as_root("scancel", "-u", user)
        for child in reversed(self.children):
            if child.poll() is None:
                child.terminate()
        for child in reversed(self.children):
            try:
                child.wait(stretched(10))
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
        shutil.rmtree(self.at, ignore_errors=True)


if __name__ == "__main__":
    oracle = Oracle(sys.argv[1])
    began = time.monotonic()
    try:
        oracle.start()
        print(f"up in {time.monotonic() - began:.1f} s", flush=True)
        subprocess.run(["setpriv", "--reuid=61001", "--regid=61001", "--clear-groups", *(sys.argv[2:] or ["/bin/bash"])],
                       cwd=os.path.join(oracle.at, "home", "alice"), check=False,
                       env={**oracle.environment, "HOME": os.path.join(oracle.at, "home", "alice"), "USER": "alice", "LOGNAME": "alice"})
    finally:
        oracle.stop()
