"""berth's commands of Slurm: a server with one simulated node, links as `berth slurm install` makes them, and a user alice."""
import os
import subprocess

from patience import stretched
from server import Server, berth_binary, fresh_directory

CONFIG = """
cluster: test
gpu_models:
  H100-SXM5-80GB: {weight: 1.0, memory: 80GiB}
pools:
  - name: train
priority_classes:
  usual: {value: 500, default: true}
  high: 600
queues:
  lab: {}
  vision:
    queues:
      day: {}
"""


class SlurmCommands:
    def __init__(self):
        self.directory = fresh_directory()
        os.chmod(self.directory, 0o755)
        self.home = os.path.join(self.directory, "home")
        self.links = os.path.join(self.directory, "links")
        os.makedirs(self.home)
        os.chmod(self.home, 0o1777)
        os.makedirs(self.links)
        config = os.path.join(self.directory, "cluster.yaml")
        with open(config, "w") as file:
            file.write(CONFIG)
        self.server = Server(self.directory, config=config, flags=["--node-pool", "train"])

    def start(self):
        assert self.server.start(), self.server.tail()
        installed = subprocess.run([berth_binary(), "slurm", "install", self.links], capture_output=True, text=True, check=True)
        assert len(installed.stdout.splitlines()) == 7, installed
        self.tokens = {"root": os.path.join(self.server.data, "token")}
        for user, queue in (("alice", "lab"), ("carol", "vision")):
            made = self.server.ask("POST", "/v1/tokens", {"name": user, "user": user, "role": "member", "queue": queue, "expires_in_s": 86400})
            self.tokens[user] = os.path.join(self.directory, user + ".token")
            with open(self.tokens[user], "w") as file:
                file.write(made["token"])

    def environment(self, user):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BERTH_", "SLURM_", "SBATCH_"))}
        return {**kept, "PATH": self.links + ":/usr/bin:/bin", "BERTH_SERVER": f"http://127.0.0.1:{self.server.port}", "TZ": "UTC",
                "BERTH_TOKEN_FILE": self.tokens[user], "SBATCH_PARTITION": "train", "SLURM_PARTITION": "train", "LANG": "C"}

    def run(self, *words, user="alice", env=None, text=None, cwd=None):
        return subprocess.run(words, capture_output=True, text=True, cwd=cwd or self.home, input=text, timeout=stretched(120),
                              env={**self.environment(user), **(env or {})})

    def stop(self):
        self.server.stop()
