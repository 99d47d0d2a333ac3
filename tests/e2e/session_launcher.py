#!/usr/bin/env python3
"""Stands for torchrun of 2.2 and later, which puts each worker into a session of its own, so that a signal to its process group
does not reach them. Takes the options that berth gives for a gang of fixed size. Like torchrun it dies of a SIGUSR1."""
import argparse
import os
import subprocess
import sys

parser = argparse.ArgumentParser()
for name in ("nnodes", "node_rank", "nproc_per_node", "master_port"):
    parser.add_argument("--" + name, type=int, required=True)
parser.add_argument("--master_addr", required=True)
parser.add_argument("--no_python", action="store_true")
parser.add_argument("command", nargs=argparse.REMAINDER)
given = parser.parse_args()

workers = []
for local in range(given.nproc_per_node):
    ranks = {"RANK": given.node_rank * given.nproc_per_node + local, "LOCAL_RANK": local, "GROUP_RANK": given.node_rank,
             "WORLD_SIZE": given.nnodes * given.nproc_per_node, "MASTER_ADDR": given.master_addr, "MASTER_PORT": given.master_port}
    command = given.command if given.no_python else [sys.executable, *given.command]
    workers.append(subprocess.Popen(command, start_new_session=True, env={**os.environ, **{k: str(v) for k, v in ranks.items()}}))
sys.exit(max(worker.wait() for worker in workers))
