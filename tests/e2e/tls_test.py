#!/usr/bin/env python3
"""TLS on a real server: who is believed and who is not, on both sides; new certificates under load; clients that are slow,
speak no TLS or bring garbage."""
import hashlib
import http.client
import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

from certificates import Authority, openssl
import tally
from patience import eventually, stretched
from server import Server, berth_binary, discard, fresh_directory

CONFIG = """cluster: test
queues:
  red: {guaranteed: {gpus: 4}}
roles:
  - {subject: "cert:worker-7", role: member, queue: red}
  - {subject: "cert:spiffe://corp.example/ci", role: auditor}
"""


class Secure(Server):
    """A server with TLS, and its authority."""

    def __init__(self, clients=False, certificate=None):
        super().__init__(fresh_directory())
        self.authority = Authority(self.directory)
        self.certificate, self.key = certificate(self.authority) if certificate else self.authority.sign_server()
        self.config = os.path.join(self.directory, "cluster.yaml")
        self.configure(CONFIG)
        self.flags = ["--tls-cert", self.certificate, "--tls-key", self.key]
        if clients:
            self.flags += ["--client-ca", self.authority.file]

    def configure(self, text):
        with open(self.config, "w") as file:
            file.write(text)

    def trust(self, client=None):
        context = ssl.create_default_context(cafile=self.authority.file)
        if client:
            context.load_cert_chain(*client)
        return context

    def connect(self, client=None):
        return http.client.HTTPSConnection("localhost", self.port, timeout=stretched(20), context=self.trust(client))

    def get(self, path, client=None, token=None):
        """Status and document of one request over a connection of its own."""
        connection = self.connect(client)
        try:
            connection.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def cli(self, *words, address=None, environment=None):
        """berth in a home of its own, so that it finds no token by itself."""
        address = address or f"https://localhost:{self.port}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
        return subprocess.run([berth_binary(), "--server", address, *words], capture_output=True, text=True, timeout=stretched(60),
                              env={**clean, "HOME": self.directory, **(environment or {})})

    def serial(self):
        """Of the certificate that the server shows now."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=stretched(20)) as plain:
            with self.trust().wrap_socket(plain, server_hostname="localhost") as secure:
                return secure.getpeercert()["serialNumber"]


def started(**options):
    server = Secure(**options)
    assert server.start(), server.tail()
    return server


def the_server_is_believed_by_its_authority_and_under_its_name():
    server = started()
    token = ["--token-file", os.path.join(server.data, "token")]
    good = server.cli("--ca", server.authority.file, *token, "whoami")
    assert good.returncode == 0 and "admin, submits as admin, known by its token over TLS" in good.stdout, good
    by_variable = server.cli(*token, "whoami", environment={"BERTH_CA": server.authority.file})
    assert by_variable.returncode == 0, by_variable
    unknown = server.cli(*token, "whoami")
    assert unknown.returncode == 5 and "authority that this machine does not know" in unknown.stderr, unknown
    other = Authority(fresh_directory(), "other-ca")
    wrong_file = server.cli("--ca", other.file, *token, "whoami")
    assert wrong_file.returncode == 5 and f"is not in {other.file}" in wrong_file.stderr, wrong_file
    no_file = server.cli("--ca", "/nonexistent", *token, "whoami")
    assert no_file.returncode == 2 and "/nonexistent cannot be read" in no_file.stderr, no_file
    not_tls = server.cli(*token, "whoami", address=f"http://127.0.0.1:{server.port}")
    assert "this port speaks TLS" in not_tls.stderr, not_tls
    discard(server)


def a_wrong_name_and_an_expired_certificate_are_told():
    elsewhere = started(certificate=lambda ca: ca.sign_server("elsewhere", "DNS:elsewhere.example"))
    wrong = elsewhere.cli("--ca", elsewhere.authority.file, "whoami")
    assert wrong.returncode == 5 and "its certificate is for another name" in wrong.stderr, wrong
    discard(elsewhere)
    expired = started(certificate=lambda ca: ca.sign_server(days=-1))
    eventually("the expired certificate is told", lambda: "has ended" in expired.tail())
    old = expired.cli("--ca", expired.authority.file, "whoami")
    assert old.returncode == 5 and "its certificate has expired" in old.stderr, old
    discard(expired)


def what_cannot_be_used_ends_the_start():
    server = Secure()
    other_certificate, other_key = server.authority.sign_server("other")
    with open(server.authority.path("locked.key"), "w") as file:
        file.write(openssl("ec", "-in", other_key, "-aes256", "-passout", "pass:secret"))
    os.chmod(server.authority.path("locked.key"), 0o600)
    shutil.copy(server.key, server.authority.path("open.key"))
    os.chmod(server.authority.path("open.key"), 0o644)
    path = server.authority.path
    cases = [(["--tls-cert", server.certificate], "--tls-key go together"),
             (["--client-ca", server.authority.file], "needs --tls-cert"),
             (["--tls-cert", server.certificate, "--tls-key", other_key], "is not the key of the certificate in"),
             (["--tls-cert", server.certificate, "--tls-key", path("open.key")], "its mode is 0644"),
             (["--tls-cert", server.certificate, "--tls-key", path("locked.key")], "without a passphrase"),
             (["--tls-cert", server.certificate, "--tls-key", path("none.key")], "No such file"),
             (["--tls-cert", server.key, "--tls-key", server.key], "no certificate in it"),
             ([*server.flags, "--client-ca", server.key], "no certificate of an authority")]
    for flags, words in cases:
        done = subprocess.run([berth_binary(), "serve", "--data", server.data, *flags], capture_output=True, text=True, timeout=stretched(60))
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, (flags, done)
        assert not os.path.exists(server.data)
    server.flags += ["--listen", "0.0.0.0"]
    assert server.start(), server.tail()  # beyond this machine, as there is TLS
    assert server.get("/v1/identity", token=server.token)[0] == 200
    discard(server)


def old_versions_are_refused_and_two_are_spoken():
    server = started()
    for version, good in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)):
        context = server.trust()
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        with socket.create_connection(("127.0.0.1", server.port), timeout=stretched(20)) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="localhost") as secure:
                    assert good and secure.version() == version.name.replace("_", "."), secure.version()
            except ssl.SSLError:
                assert not good, version
    discard(server)


def replace(server, pair):
    """As a tool would that renews certificates: each file is renamed into its place."""
    for fresh, place in zip(pair, (server.certificate, server.key)):
        shutil.copy(fresh, place + ".new")
        os.chmod(place + ".new", 0o600)
        os.rename(place + ".new", place)


def a_new_pair_is_taken_under_load_and_a_bad_one_is_not():
    server = Secure()
    server.flags += ["--rate-limit", "none"]  # its load is more than one client may ask for
    assert server.start(), server.tail()
    stream = server.connect()
    stream.request("GET", "/v1/events?follow=true", headers={"Authorization": "Bearer " + server.token,
                                                             "Accept": "application/x-ndjson"})
    events = stream.getresponse()
    assert events.status == 200 and events.readline()
    kept = server.connect()
    stopping, failures, done = threading.Event(), [], [0]

    def load():
        while not stopping.is_set():
            try:
                assert server.get("/v1/identity", token=server.token)[0] == 200
                done[0] += 1
            except Exception as failure:
                failures.append(repr(failure))

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    serials = {server.serial()}
    for turn in range(4):
        replace(server, server.authority.sign_server(f"fresh{turn}"))
        eventually("the new certificate is served", lambda: server.serial() not in serials)
        serials.add(server.serial())
        kept.request("GET", "/v1/identity", headers={"Authorization": "Bearer " + server.token})
        assert kept.getresponse().read()
    good = server.serial()

    def told():
        with open(server.log) as file:
            return file.read().count("is not the key of the certificate")
    before = told()  # a look between the two renames of a pair sees one that does not match
    os.rename(server.authority.sign_server("stranger")[0], server.certificate)  # and not its key
    eventually("the bad pair is told", lambda: told() > before)
    assert server.serial() == good and told() == before + 1, server.tail()
    replace(server, server.authority.sign_server("expired", days=-1))
    eventually("the expired pair is told", lambda: "has expired at" in server.tail())
    assert server.serial() == good
    eventually("the load has come to something", lambda: done[0] > 50)
    replace(server, server.authority.sign_server("last"))
    eventually("the good pair is served after a bad one", lambda: server.serial() != good)
    stopping.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    job = subprocess.run([berth_binary(), "--server", f"https://localhost:{server.port}", "--ca", server.authority.file,
                          "--token-file", os.path.join(server.data, "token"), "submit", "--queue", "red", "--gpus", "1", "--",
                          "true"], capture_output=True, text=True)
    assert job.returncode == 0, job
    eventually("the stream that was open goes on", lambda: b"job-submitted" in events.readline())
    print(f"  {done[0]} requests on connections of their own, {len(serials) + 1} certificates, no failure")
    discard(server)


def raw(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=stretched(20))


def slow_and_wrong_clients_hold_nobody_up():
    server = started()
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # the beginning of a greeting that never ends
    slow = [raw(server) for _ in range(300)]
    begun = time.monotonic()
    for one in slow:
        one.sendall(hello)
    garbage = [raw(server) for _ in range(100)]
    for number, one in enumerate(garbage):
        one.sendall(bytes([number % 30, 255, 0, 17]) * 300)
    beside_all = 0
    for _ in range(50):
        assert server.get("/v1/identity", token=server.token)[0] == 200
        beside_all += not select.select(slow, [], [], 0)[0]
    assert beside_all > 0, "a request was answered only when slow clients had been given up"
    for one in garbage:
        try:
            while one.recv(4096):
                pass
        except ConnectionResetError:
            pass
    silent = raw(server)
    for one in slow:  # each ends by the time-out of the handshake
        try:
            while one.recv(4096):
                pass
        except ConnectionResetError:
            pass
    took = time.monotonic() - begun
    assert took > 9, f"a slow client has 10 s, and not {took:.1f}"
    assert silent.recv(1) == b"", "a client that says nothing is not closed"
    print(f"  300 slow and 100 wrong clients: {beside_all} of 50 requests were answered beside all of the slow ones, which ended in {took:.1f} s")
    discard(server)


def clients_without_a_handshake_lock_nobody_out():
    server = started()
    idle = [raw(server) for _ in range(700)]  # 512 may be so
    for _ in range(5):
        assert server.get("/v1/identity", token=server.token)[0] == 200
    closed = 0
    for one in idle:
        one.settimeout(0.001)
        try:
            closed += one.recv(1) == b""
        except TimeoutError:
            pass
        one.close()
    assert closed >= 150, closed
    discard(server)


def http_without_tls_is_told():
    server = started()
    for request in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"):
        with raw(server) as plain:
            plain.sendall(request)
            answer = b""
            while chunk := plain.recv(4096):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 400 ") and b"tls-required" in answer and b"https://" in answer, answer
    discard(server)


def a_client_certificate_is_a_subject():
    server = started(clients=True)
    sign = server.authority.sign
    worker = sign("worker", "/CN=worker-7", "extendedKeyUsage=clientAuth\n")
    spiffe = sign("ci", "/CN=worker-7", "subjectAltName=URI:spiffe://corp.example/ci\n")
    status, me = server.get("/v1/identity", worker)
    assert (status, me["subject"], me["user"], me["authenticated_by"], me["connection"]) == \
        (200, "cert:worker-7", "cert:worker-7", "certificate", "tls"), me
    assert me["roles"] == [{"role": "member", "queue": "red"}], me
    assert server.get("/v1/identity", spiffe)[1]["subject"] == "cert:spiffe://corp.example/ci"
    assert server.get("/v1/nodes", worker)[0] == 403 and server.get("/v1/jobs", worker)[0] == 200
    stranger = server.get("/v1/identity", sign("new", "/CN=nobody-yet"))
    assert stranger[0] == 200 and stranger[1]["roles"] == [], stranger
    assert server.get("/v1/identity")[0] == 401  # neither a certificate nor a token
    assert server.get("/v1/identity", token=server.token)[1]["subject"] == "admin"
    assert server.get("/v1/identity", worker, server.token)[1]["subject"] == "admin"  # a token goes before
    assert server.get("/v1/identity", worker, "f" * 64)[0] == 401  # also one that is not good
    for name, subject, extensions, words in (
            ("two", "/CN=a/CN=b", "", "more than one common name"),
            ("none", "/O=corp", "", "neither a SPIFFE id nor a common name"),
            ("spoof", "/CN=spiffe:\\/\\/corp.example\\/ci", "", "looks like a SPIFFE id"),
            ("uris", "/CN=a", "subjectAltName=URI:spiffe://corp.example/ci,URI:https://x\n", "the only one"),
            ("space", "/CN=a b", "", "visible ASCII")):
        status, problem = server.get("/v1/identity", sign(name, subject, extensions))
        assert status == 401 and words in problem["detail"], (name, problem)
    # By the command line, and its submissions belong to the certificate.
    flags = ["--ca", server.authority.file, "--cert", worker[0], "--cert-key", worker[1]]
    assert server.cli(*flags, "submit", "--gpus", "1", "--", "true").returncode == 0
    assert server.get("/v1/jobs?finished=true", worker)[1]["items"][0]["user"] == "cert:worker-7"
    by_variables = server.cli("whoami", environment={"BERTH_CA": server.authority.file, "BERTH_CERT": worker[0], "BERTH_KEY": worker[1]})
    assert "cert:worker-7, submits as cert:worker-7, known by its certificate over TLS" in by_variables.stdout, by_variables
    discard(server)


def certificates_that_are_not_good_are_refused_with_the_reason():
    server = started(clients=True)
    other = Authority(fresh_directory(), "other-ca")
    cases = [(other.sign("worker", "/CN=worker-7"), "does not know the authority that signed your client certificate"),
             (server.authority.sign("old", "/CN=worker-7", days=-1), "your client certificate has expired"),
             (server.authority.sign("srv", "/CN=worker-7", "extendedKeyUsage=serverAuth\n"), "refuses your client certificate")]
    for (certificate, key), words in cases:
        done = server.cli("--ca", server.authority.file, "--cert", certificate, "--cert-key", key, "whoami")
        assert done.returncode == 5 and words in done.stderr, (words, done)
    missing = server.cli("--ca", server.authority.file, "--cert", "/nonexistent", "whoami")
    assert missing.returncode == 2 and "/nonexistent" in missing.stderr, missing
    discard(server)


def a_certificate_that_loses_its_role_loses_its_stream():
    server = started(clients=True)
    ci = server.authority.sign("ci", "/CN=ci", "subjectAltName=URI:spiffe://corp.example/ci\n")
    stream = server.connect(ci)
    stream.request("GET", "/v1/events?follow=true", headers={"Accept": "application/x-ndjson"})
    answer = stream.getresponse()
    assert answer.status == 200 and answer.readline()
    server.configure(CONFIG[:CONFIG.index("  - {subject: \"cert:spiffe")])
    applied = server.cli("--ca", server.authority.file, "--token-file", os.path.join(server.data, "token"), "apply", "-f", server.config)
    assert applied.returncode == 0, applied
    try:
        while answer.readline():
            pass
    except (http.client.IncompleteRead, ssl.SSLError, ConnectionResetError):
        pass
    assert server.get("/v1/events", ci)[0] == 403
    discard(server)


def a_shell_takes_more_input_than_the_connection_at_once():
    server = started()
    access = ["--ca", server.authority.file, "--token-file", os.path.join(server.data, "token")]
    submitted = server.cli(*access, "submit", "--queue", "red", "--cpus", "0.1", "--memory", "64MiB", "--", "sleep", "600")
    assert submitted.returncode == 0, submitted
    eventually("the job runs", lambda: server.cli(*access, "exec", "1", "--", "true").returncode == 0)
    given = bytes(range(256)) * 64 * 1024
    ran = subprocess.run([berth_binary(), "--server", f"https://localhost:{server.port}", *access, "exec", "-i", "1", "--", "sh", "-c",
                          "sleep 1; sha256sum"], input=given, capture_output=True, timeout=stretched(60), check=False)
    assert ran.returncode == 0 and ran.stdout.decode().startswith(hashlib.sha256(given).hexdigest()), ran
    discard(server)


def main():
    cases = [the_server_is_believed_by_its_authority_and_under_its_name, a_wrong_name_and_an_expired_certificate_are_told,
             what_cannot_be_used_ends_the_start, old_versions_are_refused_and_two_are_spoken,
             a_new_pair_is_taken_under_load_and_a_bad_one_is_not, slow_and_wrong_clients_hold_nobody_up,
             clients_without_a_handshake_lock_nobody_out, http_without_tls_is_told, a_client_certificate_is_a_subject,
             certificates_that_are_not_good_are_refused_with_the_reason, a_certificate_that_loses_its_role_loses_its_stream,
             a_shell_takes_more_input_than_the_connection_at_once]
    return tally.run(cases)


if __name__ == "__main__":
    sys.exit(main())
