#!/usr/bin/env python3
"""What identities cost: durable submits with signed tokens of an identity provider beside berth's own tokens, a decision
and the memory with 5,000 users in 300 teams and 10,000 roles, and how soon a changed quota is in force.

Submits come over 64 connections from 500 users, each with a token of its own, in turns of both kinds. Each submit is a held
job, so that no cycle weighs in. A signed token is verified once, and known by its digest then, as the server does it.

    bench/run identity [--program PATH] [--submits N] [--rounds N] [--changes N]
"""
import argparse
import base64
import http.client
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import server as e2e  # noqa: E402

TEAMS, ORGS, USERS, BINDINGS = 300, 10, 5_000, 10_000
CONNECTIONS = 64
TOKENS = 500
ISSUER = "https://login.example.com"


def team_queue(number):
    return f"org-{number % ORGS}/team-{number % TEAMS}"


def config(with_roles):
    queues = {f"org-{o}": {"queues": {f"team-{t}": {} for t in range(o, TEAMS, ORGS)}} for o in range(ORGS)}
    queues["late"] = {"max": {"gpus": 0}}
    roles = []
    if with_roles:
        roles += [{"subject": f"group:corp:team-{t}", "role": "member", "queue": team_queue(t)} for t in range(TEAMS)]
        roles += [{"subject": f"user:corp:user-{u}", "role": "viewer", "queue": team_queue(u + 1)} for u in range(USERS)]
        roles += [{"subject": f"user:corp:user-{u}", "role": "lead", "queue": team_queue(u + 2)} for u in range(BINDINGS - len(roles))]
    return {"cluster": "bench", "queues": queues, "roles": roles}


def encoded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class SigningKey:
    """An RSA key of openssl's, with which Python signs."""

    def __init__(self, directory):
        file = os.path.join(directory, "key.pem")
        subprocess.run(["openssl", "genrsa", "-traditional", "-out", file, "2048"], check=True, capture_output=True)
        der = subprocess.run(["openssl", "rsa", "-in", file, "-outform", "DER", "-traditional"], check=True, capture_output=True).stdout
        at, numbers = 4, []
        while at < len(der):
            at += 1
            size = der[at]
            at += 1
            if size > 127:
                count = size & 127
                size = int.from_bytes(der[at:at + count], "big")
                at += count
            numbers.append(int.from_bytes(der[at:at + size], "big"))
            at += size
        _, self.n, self.e, self.d, self.p, self.q, self.dp, self.dq, self.qi = numbers[:9]

    def published(self):
        return {"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig", "n": encoded(self.n.to_bytes(256, "big")),
                "e": encoded(self.e.to_bytes(3, "big"))}

    def sign(self, claims):
        import hashlib
        text = encoded(json.dumps({"alg": "RS256", "kid": "k1", "typ": "JWT"}).encode()) + "." + encoded(json.dumps(claims).encode())
        digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(text.encode()).digest()
        message = int.from_bytes(b"\x00\x01" + b"\xff" * (253 - len(digest)) + b"\x00" + digest, "big")
        one, two = pow(message, self.dp, self.p), pow(message, self.dq, self.q)
        signature = two + self.q * ((self.qi * (one - two)) % self.p)
        return text + "." + encoded(signature.to_bytes(256, "big"))


class Bench:
    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.key = SigningKey(directory)
        keys, self.issuers = os.path.join(directory, "keys.json"), os.path.join(directory, "issuers.yaml")
        with open(keys, "w") as file:
            json.dump({"keys": [self.key.published()]}, file)
        with open(self.issuers, "w") as file:
            json.dump({"issuers": [{"name": "corp", "url": ISSUER, "audience": "berth", "keys_file": keys}]}, file)

    def start(self, with_roles):
        place = tempfile.mkdtemp(dir=self.directory)
        file = os.path.join(place, "cluster.yaml")
        with open(file, "w") as out:
            json.dump(config(with_roles), out)
        server = e2e.Server(place, file, flags=["--issuers", self.issuers, "--rate-limit", "none", "--rate-limit-unknown", "none"])
        server.program = [self.program]
        if not server.start():
            raise SystemExit("the server does not start:\n" + server.tail())
        return server

    def signed(self, user):
        now = int(time.time())
        return self.key.sign({"iss": ISSUER, "aud": "berth", "sub": f"user-{user}", "iat": now, "exp": now + 7200,
                              "groups": [f"team-{user % TEAMS}", "everybody"]})


def own_token(server, user):
    return server.ask("POST", "/v1/tokens", {"name": f"user-{user}", "role": "member", "queue": team_queue(user), "expires_in_s": 7200})["token"]


def submit_bytes(token, user, number):
    body = json.dumps({"name": f"j{number}", "queue": team_queue(user), "gpus": 1, "cpus": "0.1", "hold": True, "command": ["true"]})
    return (f"POST /v1/jobs HTTP/1.1\r\nHost: berth\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


def submits_per_s(port, requests):
    """Each connection sends its next request when the last one is answered."""
    waiting = selectors.DefaultSelector()
    left, answered, begin = list(reversed(requests)), 0, time.monotonic()
    for _ in range(CONNECTIONS):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(left.pop())
        waiting.register(connection, selectors.EVENT_READ, bytearray())
    while answered < len(requests):
        for key, _ in waiting.select():
            received = key.data
            received += key.fileobj.recv(65536)
            head = received.find(b"\r\n\r\n")
            if head < 0:
                continue
            at = received.lower().find(b"content-length:")
            if len(received) < head + 4 + int(received[at + 15:received.find(b"\r\n", at)]):
                continue
            if not received.startswith(b"HTTP/1.1 201"):
                raise SystemExit(f"a submit was refused: {bytes(received[:500])}")
            del received[:]
            answered += 1
            if left:
                key.fileobj.sendall(left.pop())
    took = time.monotonic() - begin
    for key in list(waiting.get_map().values()):
        key.fileobj.close()
    return len(requests) / took


def compare_submits(bench, options, result):
    server = bench.start(with_roles=True)
    users = [number * (USERS // TOKENS) for number in range(TOKENS)]
    kinds = {"own": [own_token(server, user) for user in users], "jwt": [bench.signed(user) for user in users]}
    best = {"own": [], "jwt": []}
    for turn in range(options.rounds):
        for kind in (("own", "jwt") if turn % 2 == 0 else ("jwt", "own")):
            requests = [submit_bytes(kinds[kind][n % TOKENS], users[n % TOKENS], n) for n in range(options.submits)]
            best[kind].append(submits_per_s(server.port, requests))
    middle = {kind: sorted(rates)[len(rates) // 2] for kind, rates in best.items()}
    result["submits_per_s"], result["submits_jwt_per_s"] = round(middle["own"]), round(middle["jwt"])
    result["submits_jwt_ratio"] = round(middle["jwt"] / middle["own"], 3)
    server.kill()


def resident_mib(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


def compare_memory(bench, result):
    """After each of the 5,000 users has asked once, so that its token is known; and a server without roles and users."""
    plain = bench.start(with_roles=False)
    plain.ask("GET", "/v1/identity")
    result["memory_without_mib"] = round(resident_mib(plain), 1)
    plain.kill()
    server = bench.start(with_roles=True)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for user in range(USERS):
        connection.request("GET", "/v1/identity", headers={"Authorization": "Bearer " + bench.signed(user)})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200 or len(json.loads(content)["roles"]) < 2:
            raise SystemExit(f"user {user} is answered {answer.status}: {content[:300]}")
    result["memory_mib"] = round(resident_mib(server), 1)
    return server


def measure_quota_changes(server, options, result):
    """From the request that raises a ceiling to the job that waits for it being seen to run or to start."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask(method, path, body=None):
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Authorization": "Bearer " + server.token, "Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path} is answered {answer.status}: {content[:300]}")
        return json.loads(content)

    took = []
    for _ in range(options.changes):
        job = ask("POST", "/v1/jobs", {"name": "waits", "queue": "late", "gpus": 1, "cpus": "0.1", "command": ["sleep", "600"]})["id"]
        begin = time.monotonic()
        ask("POST", "/v1/queues/late/changes", {"set": ["max.gpus=1"]})
        while ask("GET", f"/v1/jobs/{job}")["phase"] == "pending":
            time.sleep(0.001)
        took.append(time.monotonic() - begin)
        ask("DELETE", f"/v1/jobs/{job}")
        ask("POST", "/v1/queues/late/changes", {"set": ["max.gpus=0"]})
        while ask("GET", "/v1/jobs?queue=late&limit=1")["items"]:
            time.sleep(0.01)
    took.sort()
    result["quota_change_in_force_s"] = round(took[len(took) // 2], 4)
    result["quota_change_worst_s"] = round(took[-1], 4)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", help="this berth, and bench/bench_authorize beside it, as they are; else both are built")
    options.add_argument("--submits", type=int, default=8_000, help="in each turn")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--changes", type=int, default=30)
    options = options.parse_args()
    if not options.program:
        subprocess.run([os.path.join(ROOT, "tools", "build"), "release", "berth", "bench_authorize"], check=True, stdout=sys.stderr)
        options.program = os.path.join(ROOT, "build", "release", "berth")
    options.program = os.environ["BERTH"] = os.path.abspath(options.program)
    result = {"benchmark": "identity", "users": USERS, "teams": TEAMS, "bindings": BINDINGS}
    authorize = os.path.join(os.path.dirname(options.program), "bench", "bench_authorize")
    decided = subprocess.run([authorize], check=True, capture_output=True, text=True)
    result.update(json.loads(decided.stdout))
    directory = tempfile.mkdtemp(prefix="berth-bench-")
    os.chmod(directory, 0o755)
    try:
        bench = Bench(options.program, directory)
        compare_submits(bench, options, result)
        server = compare_memory(bench, result)
        measure_quota_changes(server, options, result)
        server.kill()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
