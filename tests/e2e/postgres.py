#!/usr/bin/env python3
"""A PostgreSQL of the tests' own: in a fresh directory, on a free port of loopback, with TLS and a password, as another user
than root, and ended with the test. With a standby it is a pair.

    postgres.py [--standby]    starts one and says KEY=VALUE lines and "ready"; then each line on standard input is a command
                               (crash, start, stop-standby, start-standby, sql TEXT), answered by "ok" or by what failed;
                               it ends with its input
"""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import debian
from certificates import Authority
from patience import eventually, stretched

INSTALLED = "/usr/lib/postgresql/15/bin"
NEEDED_BYTES = 600 << 20


class NoPostgres(Exception):
    """PostgreSQL is not to be had here; the message says why."""


def programs():
    """The folder of PostgreSQL's programs, and where their libraries are ("" for the system's own)."""
    if os.path.exists(os.path.join(INSTALLED, "initdb")):
        return INSTALLED, ""
    try:
        home = debian.fetched(["postgresql-15"])
    except debian.NotToBeHad as problem:
        raise NoPostgres(str(problem)) from None
    if home == "/":
        return INSTALLED, ""
    return os.path.join(home, "usr/lib/postgresql/15/bin"), debian.library_path(home)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def home_of_databases():
    """In memory where there is room: these tests end PostgreSQL, not the machine, and syncs would only slow them."""
    memory = "/dev/shm"
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > NEEDED_BYTES:
        return memory
    return None


class Instance:
    """One server of PostgreSQL. Its superuser is `super`, by the Unix socket; `berth` is the role of berth, by TLS and
    password."""

    def __init__(self, top, name):
        self.top, self.name = top, name
        self.folder = os.path.join(top, name)
        self.data = os.path.join(self.folder, "data")
        self.port = free_port()
        self.bin, self.libraries = programs()
        os.mkdir(self.folder, 0o700)  # no other user comes to the socket, where no password is asked
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)

    def run(self, program, *words, text=None, check=True):
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": self.folder, "PGCONNECT_TIMEOUT": "5",
                       "PGOPTIONS": "-c synchronous_commit=local"}  # what a test prepares does not wait for the standby
        if self.libraries:
            environment["LD_LIBRARY_PATH"] = self.libraries
        rights = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        done = subprocess.run([os.path.join(self.bin, program), *words], cwd=self.folder, env=environment, input=text,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=stretched(120),
                              check=False, **rights)
        if check and done.returncode != 0:
            raise AssertionError(f"{program} {' '.join(words)} ended with {done.returncode}: {done.stdout[-2000:]}")
        return done.stdout

    def make(self, certificate, key):
        self.run("initdb", "-D", self.data, "-U", "super", "-E", "UTF8", "--locale=C", "--data-checksums", "--no-sync",
                 "--wal-segsize=1", "--auth-local=trust", "--auth-host=scram-sha-256")
        self.configure(certificate, key)

    def configure(self, certificate, key):
        own = os.path.join(self.folder, "own.conf")
        with open(own, "w") as file:
            file.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{self.folder}'\n"
                       f"cluster_name = '{self.name}'\nssl = on\nssl_cert_file = '{certificate}'\nssl_key_file = '{key}'\n"
                       "dynamic_shared_memory_type = mmap\nshared_buffers = 16MB\nmax_connections = 40\nmin_wal_size = 4MB\n"
                       "wal_level = replica\nwal_keep_size = 64MB\nwal_sender_timeout = 5s\nwal_receiver_timeout = 5s\n"
                       "wal_retrieve_retry_interval = 200ms\nmax_wal_senders = 4\n")
        os.chmod(own, 0o644)
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.write("include = '../own.conf'\n")
        with open(os.path.join(self.data, "pg_hba.conf"), "w") as file:
            file.write("local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")

    def start(self):
        log = os.path.join(self.folder, "log")
        # Without the pipes of this process, which pg_ctl would hand on to the server.
        said = self.run("pg_ctl", "-D", self.data, "-l", log, "-w", "-t", str(int(stretched(60))), "-s", "start", check=False)
        if not self.pid():
            with open(log, errors="replace") as file:
                raise AssertionError(f"PostgreSQL did not start: {said} {file.read()[-2000:]}")

    def pid(self):
        try:
            with open(os.path.join(self.data, "postmaster.pid")) as file:
                pid = int(file.readline())
            with open(f"/proc/{pid}/stat") as file:
                ended = file.read().rsplit(")", 1)[1].split()[0] == "Z"  # nobody has waited for it yet
            return 0 if ended else pid
        except (OSError, ValueError):
            return 0

    def end(self, how):
        """SIGINT: in order. SIGQUIT: at once, as after a crash; no process or shared memory is left."""
        pid = self.pid()
        if pid:
            os.kill(pid, how)
            eventually(f"PostgreSQL {self.name} has ended", lambda: not self.pid(), every_s=0.02)

    def sql(self, text, database="berth"):
        return self.run("psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", "super",
                        "-d", database, "-f", "-", text=text).strip()

    def wait_sql(self, text, wanted):
        return eventually(lambda: f"{text} is {wanted}", lambda: self.sql(text) == wanted, every_s=0.1)


class Postgres:
    """One server, or a primary `a` with a synchronous standby `b`."""

    def __init__(self, standby=False):
        self.top = tempfile.mkdtemp(prefix="berth-pg-", dir=home_of_databases())
        os.chmod(self.top, 0o755)
        self.instances = []
        try:
            self.make(standby)
        except BaseException:
            self.discard()
            raise

    def make(self, standby):
        authority = Authority(self.top)
        certificate, key = authority.sign_server()
        password = os.urandom(12).hex()
        self.passfile = os.path.join(self.top, "pgpass")
        with open(os.open(self.passfile, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(f"*:*:*:berth:{password}\n")
        self.a = Instance(self.top, "a")
        self.instances.append(self.a)
        self.hand_over(certificate, key)
        self.a.make(certificate, key)
        self.a.start()
        self.a.sql(f"CREATE ROLE berth LOGIN PASSWORD '{password}'; CREATE DATABASE berth OWNER berth", "postgres")
        self.a.sql("GRANT pg_read_all_stats TO berth")
        self.authority = authority.file
        os.chmod(self.authority, 0o644)
        self.proof = (certificate, key)
        if not standby:
            return
        self.b = self.add_standby("b", self.a)
        self.require_standby("b", self.a)

    def add_standby(self, name, of):
        one = Instance(self.top, name)
        self.instances.append(one)
        one.run("pg_basebackup", "-D", one.data, "-d", f"host={of.folder} port={of.port} user=super application_name={name}",
                "-c", "fast", "-X", "stream", "-R", "--no-sync")
        one.configure(*self.proof)
        one.start()
        return one

    def require_standby(self, name, of):
        of.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        of.sql("SELECT pg_reload_conf()")
        self.wait_for_standby(of)

    def promote_standby(self):
        self.b.sql("SELECT pg_promote()", "postgres")
        self.b.wait_sql("SELECT pg_is_in_recovery()", "f")

    def wait_for_standby(self, of=None):
        (of or self.a).wait_sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'",
                                "1")

    def hand_over(self, *files):
        for path in files:
            os.chmod(path, 0o600)
            if self.a.user:
                os.chown(path, self.a.user.pw_uid, self.a.user.pw_gid)

    def address(self, database="berth", more="", port=None):
        hosts = ",".join(f"127.0.0.1:{one}" for one in ([port] if port else [one.port for one in self.instances]))
        return (f"postgresql://berth@{hosts}/{database}?sslmode=verify-full&sslrootcert={self.authority}"
                f"&passfile={self.passfile}{more}")

    def discard(self):
        for one in reversed(self.instances):
            one.end(signal.SIGQUIT)
        shutil.rmtree(self.top, ignore_errors=True)


def main():
    try:
        postgres = Postgres("--standby" in sys.argv)
    except NoPostgres as problem:
        print(f"skipped: {problem}", flush=True)
        return 77
    try:
        socket_address = f"postgresql://berth@/berth?host={postgres.a.folder}&port={postgres.a.port}"
        print(f"address={postgres.address()}\nsocket={socket_address}\n"
              f"pidfile={postgres.a.data}/postmaster.pid\nready", flush=True)
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            try:
                if word == "crash":
                    postgres.a.end(signal.SIGQUIT)
                elif word == "stop-standby":
                    postgres.b.end(signal.SIGQUIT)
                elif word == "start-standby":
                    postgres.b.start()
                    postgres.wait_for_standby()
                elif word == "start":
                    eventually("the old one has ended", lambda: not postgres.a.pid(), every_s=0.02)
                    postgres.a.start()
                else:
                    postgres.a.sql(rest)
                print("ok", flush=True)
            except AssertionError as failure:
                print("failed: " + str(failure).replace("\n", " "), flush=True)
    finally:
        postgres.discard()
    return 0


if __name__ == "__main__":
    sys.exit(main())
