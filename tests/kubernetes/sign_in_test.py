#!/usr/bin/env python3
"""Service accounts sign in at berth with tokens that a real API server issued: by its discovery document and its keys, or by a
file with the keys. berth is an ordinary server here, with nodes of its own: it needs the cluster for nothing but the keys."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from cluster import eventually, stretched
from fleet import Server, berth_binary, main

ACCOUNT = "user:k8s:system:serviceaccount:team-red:trainer"
CONFIG = {"cluster": "test", "queues": {"red": {}, "blue": {}}, "roles": [{"subject": ACCOUNT, "role": "member", "queue": "red"}]}


class Door:
    """A berth server that takes tokens of the cluster's service accounts; gone behind the case."""

    def __init__(self, cluster, **issuer):
        self.cluster = cluster
        self.directory = tempfile.mkdtemp(prefix="door-", dir=cluster.directory)
        for name, content in (("cluster.yaml", CONFIG), ("issuers.yaml", {"issuers": [
                {"name": "k8s", "url": cluster.url, "audience": "berth", **issuer}]})):
            with open(os.path.join(self.directory, name), "w") as file:
                json.dump(content, file)
        self.server = Server(self.directory, os.path.join(self.directory, "cluster.yaml"),
                             flags=["--issuers", os.path.join(self.directory, "issuers.yaml")])

    def __enter__(self):
        assert self.server.start(), self.server.tail()
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            print(self.server.tail())
        self.server.kill()
        if kind is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def berth(self, token, *words, code=0):
        """What the command printed, with the token in a file as a projected volume has it."""
        path = os.path.join(self.directory, "mounted-token")
        with open(path, "w") as file:
            file.write(token)
        os.chmod(path, 0o644)
        ran = subprocess.run([berth_binary(), *words], capture_output=True, text=True, check=False, timeout=stretched(60), env={
            **os.environ, "HOME": self.directory, "BERTH_SERVER": f"http://127.0.0.1:{self.server.port}", "BERTH_TOKEN_FILE": path})
        assert ran.returncode == code, (words, ran)
        return ran.stdout if code == 0 else ran.stdout + ran.stderr

    def submit(self, token, queue="red", code=0):
        return self.berth(token, "submit", "--queue", queue, "--gpus", "1", "--", "true", code=code)


def token_of(cluster, account, audience="berth"):
    return cluster.kubectl("create", "token", account, "-n", "team-red", "--audience", audience, "--duration", "10m").strip()


def signed_anew(cluster, token, **changed):
    """The token with other claims, signed by the key of the API server, which gives no token that has ended already."""
    head, body, _ = token.split(".")
    claims = {**json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))), **changed}

    def encoded(content):
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
    text = head + "." + encoded(json.dumps(claims).encode())
    signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", os.path.join(cluster.pki, "sa.key")], input=text.encode(),
                               capture_output=True, check=True).stdout
    return text + "." + encoded(signature)


def keys_that_may_not_be_read_are_told(cluster, kubeconfig):
    """As an API server is set up: its discovery is for those that have signed in there."""
    cluster.kubectl("create", "namespace", "team-red")
    for account in ("trainer", "other"):
        cluster.kubectl("create", "serviceaccount", account, "-n", "team-red")
    with Door(cluster, ca_file=cluster.pki + "/ca.crt") as door:
        said = door.submit(token_of(cluster, "trainer"), code=6)
        assert "the keys of the token's issuer could not be fetched yet" in said, said
        assert "/.well-known/openid-configuration answers 40" in door.server.tail(), door.server.tail()


def a_service_account_signs_in_by_the_discovery_of_its_api_server(cluster, kubeconfig):
    cluster.kubectl("create", "clusterrolebinding", "issuer-discovery", "--clusterrole=system:service-account-issuer-discovery",
                    "--group=system:unauthenticated")
    eventually("the keys may be read",
               lambda: subprocess.run(["curl", "-sf", "--cacert", cluster.pki + "/ca.crt", cluster.url + "/openid/v1/jwks"],
                                      capture_output=True, check=False).returncode == 0)
    document = cluster.ask("GET", "/.well-known/openid-configuration")
    assert document["issuer"] == cluster.url and document["jwks_uri"] == cluster.url + "/openid/v1/jwks", document
    with Door(cluster, ca_file=cluster.pki + "/ca.crt") as door:
        token = token_of(cluster, "trainer")
        assert ACCOUNT in door.berth(token, "auth", "explain")
        door.submit(token)
        job, = json.loads(door.berth(token, "jobs", "--all", "-o", "json"))
        assert job["user"] == ACCOUNT.removeprefix("user:"), job
        assert "may not submit in queue blue" in door.submit(token, "blue", code=6)
        assert "may not submit" in door.submit(token_of(cluster, "other"), code=6)
        assert "made for another audience" in door.submit(token_of(cluster, "trainer", "vault"), code=6)
        now = int(time.time())
        door.submit(signed_anew(cluster, token, exp=now + 300))  # what is changed below is the end alone
        ended = signed_anew(cluster, token, iat=now - 900, nbf=now - 900, exp=now - 300)
        assert "the token has expired" in door.submit(ended, code=6)
        forged = token[:-20] + ("A" * 20)
        assert "signature" in door.submit(forged, code=6)
        admin = door.server.token

        def audit():
            return door.berth(admin, "audit", "--subject", ACCOUNT, "-o", "json")

        def audited():  # a sign-in is written a second later
            entries = [json.loads(line) for line in audit().splitlines()]
            return {("sign-in", "issuer"), ("submit", "issuer")} <= {(one["verb"], one["proof"]) for one in entries}

        eventually(audit, audited, 20)
        door.berth(admin, "revoke", "--subject", ACCOUNT)
        assert "was ended here" in door.submit(token, code=6)


def keys_in_a_file_need_no_way_to_the_api_server(cluster, kubeconfig):
    path = cluster.path("k8s-keys.json")
    with open(path, "w") as file:
        file.write(cluster.kubectl("get", "--raw", "/openid/v1/jwks"))
    with Door(cluster, keys_file=path) as door:
        door.submit(token_of(cluster, "trainer"))
        assert "made for another audience" in door.submit(token_of(cluster, "trainer", "vault"), code=6)


if __name__ == "__main__":
    sys.exit(main([keys_that_may_not_be_read_are_told, a_service_account_signs_in_by_the_discovery_of_its_api_server,
                   keys_in_a_file_need_no_way_to_the_api_server], own_issuer=True))
