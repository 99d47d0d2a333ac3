#!/usr/bin/env python3
"""A small data-parallel training program that keeps berth's checkpoint contract.

Every rank holds its own shard of a made-up data set and computes the gradient of a logistic regression on it; rank 0
averages the gradients over sockets and sends the new weights back, so the ranks really depend on each other. When berth
asks for the GPUs back it sends the contract's signal: rank 0 finishes the step, saves, acknowledges by renaming ack.json
into BERTH_CHECKPOINT_DIR, and all ranks leave. The next attempt goes on from the step that was saved.

    berth submit --queue team-b --tasks 2 --gpus 4 --launch per-gpu --checkpoint-signal SIGUSR1 -- \
        python3 examples/training/train.py --steps 200
"""
import argparse
import json
import math
import os
import random
import signal
import socket
import struct
import sys
import time

FEATURES = 8
SAMPLES = 48
LEARNING_RATE = 0.5


def shard(rank):
    """This rank's samples: the same on every attempt, different on every rank."""
    source = random.Random(1000 + rank)
    truth = [math.sin(i + 1) * 2 for i in range(FEATURES)]
    samples = []
    for _ in range(SAMPLES):
        x = [source.gauss(0, 1) for _ in range(FEATURES)]
        noisy = sum(w * v for w, v in zip(truth, x)) + source.gauss(0, 0.5)
        samples.append((x, 1.0 if noisy > 0 else 0.0))
    return samples


def gradient(weights, samples):
    loss, total = 0.0, [0.0] * FEATURES
    for x, y in samples:
        z = max(-30.0, min(30.0, sum(w * v for w, v in zip(weights, x))))
        p = 1.0 / (1.0 + math.exp(-z))
        loss -= y * math.log(p + 1e-12) + (1 - y) * math.log(1 - p + 1e-12)
        for i, v in enumerate(x):
            total[i] += (p - y) * v
    return loss / len(samples), [g / len(samples) for g in total]


def send(connection, message):
    body = json.dumps(message).encode()
    connection.sendall(struct.pack("!I", len(body)) + body)


def receive(connection):
    def exactly(count):
        parts = b""
        while len(parts) < count:
            part = connection.recv(count - len(parts))
            if not part:
                raise ConnectionError("another rank went away")
            parts += part
        return parts

    return json.loads(exactly(struct.unpack("!I", exactly(4))[0]))


def connect(address, port, rank):
    for _ in range(600):
        try:
            connection = socket.create_connection((address, port), timeout=60)
            send(connection, {"rank": rank})
            return connection
        except (ConnectionRefusedError, socket.timeout):
            time.sleep(0.1)
    sys.exit(f"rank {rank}: nobody answers on {address}:{port}")


def replace(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


class Checkpoint:
    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        self.path = os.path.join(directory, "model.json")
        self.journal = os.path.join(directory, "steps.jsonl")

    def load(self):
        if not os.path.exists(self.path):
            return 0, [0.0] * FEATURES
        with open(self.path) as file:
            saved = json.load(file)
        return saved["step"], saved["weights"]

    def save(self, attempt, step, weights):
        replace(self.path, json.dumps({"step": step, "weights": weights}))
        replace(os.path.join(self.directory, "ack.json"), json.dumps({"attempt": attempt, "step": step, "time": time.time()}))

    def note(self, attempt, step, loss):
        """One line for each step done, so that it can be seen afterwards that none was done twice."""
        with open(self.journal, "a") as file:
            file.write(json.dumps({"attempt": attempt, "step": step, "loss": round(loss, 6)}) + "\n")


def lead(options, world, samples, asked_to_stop):
    """Rank 0: averages the gradients, steps, saves when asked, and tells the others."""
    attempt = int(os.environ.get("BERTH_ATTEMPT", "1"))
    checkpoint = Checkpoint(os.environ.get("BERTH_CHECKPOINT_DIR", "checkpoint"))
    step, weights = checkpoint.load()
    print(f"attempt {attempt}: {world} ranks, " + (f"resuming after step {step}" if step else "starting"), flush=True)
    peers = []
    if world > 1:
        with socket.create_server(("", int(os.environ["MASTER_PORT"])), backlog=world) as server:
            server.settimeout(120)
            for _ in range(world - 1):
                connection, _ = server.accept()
                receive(connection)
                peers.append(connection)
    while step < options.steps and not asked_to_stop:
        for peer in peers:
            send(peer, {"weights": weights})
        parts = [gradient(weights, samples)] + [receive(peer) for peer in peers]
        loss = sum(part[0] for part in parts) / world
        weights = [w - LEARNING_RATE * sum(part[1][i] for part in parts) / world for i, w in enumerate(weights)]
        step += 1
        checkpoint.note(attempt, step, loss)
        if step % 20 == 0 or step == options.steps:
            print(f"step {step} loss {loss:.4f}", flush=True)
        if options.save_every and step % options.save_every == 0:
            checkpoint.save(attempt, step, weights)
        time.sleep(options.step_ms / 1000)
    checkpoint.save(attempt, step, weights)
    print(f"saved step {step}" + (": asked to leave" if step < options.steps else ": done"), flush=True)
    for peer in peers:
        send(peer, {"stop": True})


def follow(rank, samples):
    connection = connect(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), rank)
    connection.settimeout(120)
    while True:
        message = receive(connection)
        if "stop" in message:
            return
        send(connection, gradient(message["weights"], samples))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--step-ms", type=int, default=20, help="pause after each step: stands for a GPU's work")
    parser.add_argument("--save-every", type=int, default=0, help="also save after every N steps")
    options = parser.parse_args()
    asked_to_stop = []
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_stop.append(True))
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    samples = shard(rank)
    if rank == 0:
        lead(options, world, samples, asked_to_stop)
    else:
        follow(rank, samples)


if __name__ == "__main__":
    main()
