#!/usr/bin/env python3
"""berth serve --store on a real PostgreSQL: jobs survive the end of the server and of PostgreSQL, a second server takes over,
the log is copied there and back and verified, and what would lose a commit is refused with what to do."""
import os
import signal
import subprocess
import sys

import debian
import tally
from patience import eventually, stretched
from postgres import NoPostgres, Postgres, free_port
from server import Problem, Server, berth_binary, discard, fresh_directory

SERVERS = []  # also those of a case that fails
CONFIG = """cluster: test
queues:
  red: {guaranteed: {gpus: 4}}
"""


def server_on(address, flags=()):
    directory = fresh_directory()
    path = os.path.join(directory, "cluster.yaml")
    with open(path, "w") as file:
        file.write(CONFIG)
    server = Server(directory, path, gpus=None, flags=[*(["--store", address] if address else []), "--no-node", *flags])
    server.node_name = None
    SERVERS.append(server)
    return server


def submit(server, name):
    return server.ask("POST", "/v1/jobs", {"queue": "red", "cpus": 0.1, "memory": "64MiB", "command": ["true"], "hold": True,
                                           "name": name})["id"]


def names(server):
    return sorted(job["name"] for job in server.all("/v1/jobs"))


def berth(*words):
    return subprocess.run([berth_binary(), *words], capture_output=True, text=True, timeout=stretched(120), check=False)


def refused(code, says, *words):
    run = berth(*words)
    assert run.returncode == code and says in run.stderr and run.stderr.startswith("berth: "), run
    return run


def ended(server):
    """The exit code of a server that ends by itself."""
    eventually(lambda: "the server ends: " + server.tail(), lambda: server.process.poll() is not None)
    return server.process.returncode


def fresh_log():
    POSTGRES.a.sql("DROP SCHEMA IF EXISTS berth CASCADE")
    return POSTGRES.address()


def jobs_survive_the_end_of_the_server_and_of_postgresql():
    address = fresh_log()
    server = server_on(address)
    assert server.start(), server.tail()
    for i in range(5):
        submit(server, f"job-{i}")
    server.kill()
    assert server.start(), server.tail()
    assert names(server) == [f"job-{i}" for i in range(5)]
    done = submit(server, "cancelled")
    server.ask("DELETE", f"/v1/jobs/{done}")
    eventually("it is in the history", lambda: server.job(done).get("outcome") == "cancelled")
    assert server.ask("GET", "/healthz")["status"] == "ok", "its end is known"
    with open(POSTGRES.passfile) as file:
        assert file.read().strip().rsplit(":", 1)[1] not in server.tail()
    assert not os.path.exists(os.path.join(server.data, "log.db"))
    POSTGRES.a.end(signal.SIGQUIT)
    try:
        submit(server, "not-acknowledged")
        raise AssertionError("a job was acknowledged without PostgreSQL")
    except (OSError, Problem):
        pass
    assert ended(server) == 5, server.tail()
    assert "the event log cannot be written" in server.tail() and "Nothing acknowledged is lost" in server.tail()
    assert not server.start() and server.process.returncode == 5, "it says that PostgreSQL is not there: " + server.tail()
    POSTGRES.a.start()
    assert server.start(), server.tail()
    kept = [name for name in names(server) if name != "not-acknowledged"]
    assert kept == [f"job-{i}" for i in range(5)], kept
    assert server.job(done)["outcome"] == "cancelled"
    server.stop()
    run = berth("verify", address)
    assert run.returncode == 0 and "every hash holds" in run.stdout and "1 finished" in run.stdout, run
    assert "equal to the state" in run.stdout, "the checkpoint that the stop made is there: " + run.stdout


def a_second_server_takes_over_and_the_first_ends():
    address = fresh_log()
    first, second = server_on(address), server_on(address)
    assert first.start(), first.tail()
    submit(first, "before")
    assert second.start(), second.tail()
    assert names(second) == ["before"]
    try:
        submit(first, "lost")
        raise AssertionError("the first server still acknowledges")
    except (OSError, Problem):
        pass
    assert ended(first) == 74 and "another writer has taken over" in first.tail(), first.tail()
    submit(second, "after")
    assert names(second) == ["after", "before"]


def a_log_is_copied_to_postgresql_and_back():
    address = fresh_log()
    server = server_on("")
    assert server.start(), server.tail()
    for i in range(3):
        submit(server, f"job-{i}")
    server.stop()
    on_sqlite, on_postgres = list(server.flags), ["--store", address, *server.flags]
    server.flags = on_postgres
    assert not server.start() and server.process.returncode == 4 and "berth store copy" in server.tail(), server.tail()
    copied = berth("store", "copy", server.data, address)
    assert copied.returncode == 0 and "the same in both" in copied.stdout, copied
    refused(4, "has a log already", "store", "copy", server.data, address)
    assert server.start(), server.tail()
    assert names(server) == ["job-0", "job-1", "job-2"] and server.ask("GET", "/healthz")["status"] == "ok"
    submit(server, "job-3")
    server.stop()
    server.flags = on_sqlite
    assert not server.start() and server.process.returncode == 4 and "name that address" in server.tail(), server.tail()
    refused(4, "name that address", "verify", server.data)
    refused(4, "name that address", "backup", server.data, os.path.join(server.directory, "backup"))
    os.rename(os.path.join(server.data, "log.db"), os.path.join(server.data, "log.db.old"))
    copied = berth("store", "copy", address, server.data)
    assert copied.returncode == 0 and "the same in both" in copied.stdout, copied
    assert berth("verify", server.data).returncode == 0
    assert server.start(), server.tail()
    assert names(server) == ["job-0", "job-1", "job-2", "job-3"] and server.ask("GET", "/healthz")["status"] == "ok"


def what_cannot_be_is_refused_with_what_to_do():
    address = fresh_log()
    directory = fresh_directory()
    data = os.path.join(directory, "data")
    serve = ["serve", "--data", data, "--no-node"]
    secret = refused(2, "password file", *serve, "--store", "postgresql://berth:hush@127.0.0.1/berth")
    assert "hush" not in secret.stderr
    refused(2, "pg_dump", *serve, "--store", address, "--backup-to", directory)
    refused(2, "pg_dump", "backup", address, data)
    refused(2, "berth store copy DIR ADDRESS", "restore", data, address)
    refused(2, "1s to 10m", *serve, "--store", address, "--store-deadline", "1h")
    refused(3, "no log of berth", "verify", address)
    refused(3, "holds no log", "store", "copy", directory, address)


def a_standby_takes_over_and_the_server_goes_on_once_it_has_one_of_its_own():
    pair = Postgres(standby=True)
    try:
        server = server_on(pair.address())
        assert server.start(), server.tail()
        submit(server, "before")
        pair.a.end(signal.SIGQUIT)
        try:
            submit(server, "not-acknowledged")
            raise AssertionError("a job was acknowledged without PostgreSQL")
        except (OSError, Problem):
            pass
        assert ended(server) == 5, server.tail()
        pair.promote_standby()
        assert not server.start() and server.process.returncode == 5, "its unit starts it again: " + server.tail()
        assert "synchronous_standby_names is empty" in server.tail(), server.tail()
        pair.add_standby("c", pair.b)
        pair.require_standby("c", pair.b)
        assert server.start(), server.tail()
        assert "before" in names(server)
        submit(server, "after")
        discard(server)
    finally:
        pair.discard()


def a_pooler_in_between_is_refused():
    try:
        home = debian.fetched(["pgbouncer"])
    except debian.NotToBeHad as problem:
        print("skipped: no PgBouncer to be had here:", problem)
        return
    instance = POSTGRES.a
    folder, port = instance.folder, free_port()
    with open(os.path.join(folder, "pgbouncer.ini"), "w") as file:
        file.write(f"[databases]\nberth = host={folder} port={instance.port} user=berth\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                   f"listen_port = {port}\nauth_type = any\npool_mode = transaction\nunix_socket_dir =\nlogfile =\n"
                   "ignore_startup_parameters = extra_float_digits\n")
    rights = {"user": instance.user.pw_uid, "group": instance.user.pw_gid, "extra_groups": []} if instance.user else {}
    os.chmod(os.path.join(folder, "pgbouncer.ini"), 0o644)
    environment = {**os.environ, **({"LD_LIBRARY_PATH": debian.library_path(home)} if home != "/" else {})}
    program = os.path.join(home, "usr/sbin/pgbouncer")
    with open(os.path.join(folder, "pgbouncer.log"), "w") as log:
        pooler = subprocess.Popen([program, os.path.join(folder, "pgbouncer.ini")], cwd=folder, env=environment, stdout=log,
                                  stderr=log, stdin=subprocess.DEVNULL, **rights)
    try:
        said = lambda: berth("verify", f"postgresql://berth@127.0.0.1:{port}/berth?sslmode=disable")
        run = eventually("PgBouncer answers", lambda: (run := said()).returncode != 5 and run)
        assert run.returncode == 2 and "a pooler (such as PgBouncer) is in between" in run.stderr, run
    finally:
        pooler.kill()
        pooler.wait()


if __name__ == "__main__":
    try:
        POSTGRES = Postgres()
    except NoPostgres as problem:
        print(f"SKIPPED: no PostgreSQL to be had here: {problem}")
        sys.exit(77)
    try:
        code = tally.run([jobs_survive_the_end_of_the_server_and_of_postgresql, a_second_server_takes_over_and_the_first_ends,
                          a_log_is_copied_to_postgresql_and_back, what_cannot_be_is_refused_with_what_to_do,
                          a_standby_takes_over_and_the_server_goes_on_once_it_has_one_of_its_own,
                          a_pooler_in_between_is_refused])
    finally:
        for server in SERVERS:
            if server.process:
                discard(server)
        POSTGRES.discard()
    sys.exit(code)
