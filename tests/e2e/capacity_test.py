#!/usr/bin/env python3
"""What could go and what would help, as an autoscaler asks it: the command, the API, and examples/autoscale."""
import http.client
import json
import os
import shutil
import subprocess
import sys

from patience import stretched
from server import ROOT, Problem, Server, berth_binary, fresh_directory

SCRIPT = os.path.join(ROOT, "examples", "autoscale", "autoscale.sh")


def run(server, *words, code=0):
    environment = {**os.environ, "BERTH_SERVER": f"http://127.0.0.1:{server.port}", "IDLE_FOR": "0s",
                   "BERTH_TOKEN_FILE": os.path.join(server.data, "token"),
                   "PATH": os.path.dirname(berth_binary()) + ":" + os.environ["PATH"]}
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=stretched(120), cwd=server.directory)
    assert ran.returncode == code, (words, ran)
    return ran.stdout


def kind_of(server):
    kinds = json.loads(run(server, "berth", "capacity", "--idle-for", "0", "-o", "json"))["items"]
    assert len(kinds) == 1, kinds
    return kinds[0]


def refuses(server, path, status, token=None):
    try:
        server.ask("GET", path, headers={"Authorization": "Bearer " + token} if token is not None else {})
    except Problem as problem:
        assert problem.status == status, (path, problem)
        return
    raise AssertionError(f"{path} is not refused")


def metrics_of(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=stretched(20))
    connection.request("GET", "/metrics", headers={"Authorization": "Bearer " + server.token})
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def main():
    directory = fresh_directory()
    config = os.path.join(directory, "cluster.yaml")
    with open(config, "w") as file:
        file.write("queues: {a: }\n")
    server = Server(directory, config)
    assert server.start()
    try:
        kind = kind_of(server)
        assert kind["nodes"] == 1 and kind["releasable"] == 1 and kind["gpus"] == 8, kind
        assert [idle["kept_for"] for idle in kind["idle"]] == ["nothing"], kind
        assert "recent" in run(server, "berth", "capacity"), "a node that has just joined is not idle for long"
        assert "n1" in run(server, "berth", "capacity", "--idle-for", "0", "-o", "wide")
        run(server, "berth", "capacity", "--idle-for", "-1s", code=2)
        run(server, "berth", "capacity", "--idle-for", "400d", code=2)
        for wrong in ("-1", "1e3", "99999999999999999999", "x", "31622401"):
            refuses(server, "/v1/capacity?idle_for_s=" + wrong, 400)
        refuses(server, "/v1/capacity?idle=1", 400)
        refuses(server, "/v1/capacity", 401, "wrong-token-0123456789")

        if shutil.which("jq") is None:
            print("SKIPPED: examples/autoscale needs jq")
        else:
            # Who cannot end the node gives it back.
            asked = os.path.join(directory, "asked")
            with open(os.path.join(directory, "fails"), "w") as file:
                file.write(f"#!/bin/sh\necho \"$@\" >> {asked}\nexit 1\n")
            os.chmod(file.name, 0o755)
            run(server, SCRIPT, "default", "false", file.name)
            with open(asked) as lines:
                assert lines.read() == "n1\n"
            assert kind_of(server)["idle"][0]["cordoned"] is False
            run(server, SCRIPT, "other", "false", "false")

        run(server, "berth", "submit", "--queue", "a", "--gpus", "8", "--tasks", "3", "--", "sleep", "600")
        kind = kind_of(server)
        assert kind["wanted"] == {"nodes": 2, "jobs": [1], "gpus": 24}, kind
        assert kind["releasable"] == 0 and kind["idle"][0]["kept_for"] == "wanted", kind
        assert 'berth_nodes_wanted{pool="default",model="H100-SXM5-80GB"} 2\n' in metrics_of(server)
        if shutil.which("jq") is not None:
            assert run(server, SCRIPT, "default", "echo make", "false") == "make 2\n"
            run(server, SCRIPT, "default", "false", "false", code=1)
    finally:
        server.stop()
    if shutil.which("jq") is not None:
        run(server, SCRIPT, "default", "false", "false", code=5)
    shutil.rmtree(directory, ignore_errors=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
