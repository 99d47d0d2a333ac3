#!/usr/bin/env python3
"""A PyTorch program, data-parallel over gloo, that keeps berth's checkpoint contract. What launch_test.py runs as a job.

All ranks stop after the same step when one of them is asked to, and rank 0 saves. With --elastic a rank that is asked leaves
alone: the others fail in the next step, and their launchers start them anew from what was saved last.
"""
import argparse
import json
import os
import signal
import time

asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))  # before the slow import: the request may come at once

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

DIRECTORY = os.environ["BERTH_CHECKPOINT_DIR"]
ATTEMPT = int(os.environ["BERTH_ATTEMPT"])
SAVED = os.path.join(DIRECTORY, "model.pt")


def save(step, model):
    torch.save({"step": step, "model": model.state_dict()}, SAVED + ".new")
    os.rename(SAVED + ".new", SAVED)
    ack = os.path.join(DIRECTORY, "ack.json")
    with open(ack + ".new", "w") as file:
        json.dump({"attempt": ATTEMPT, "step": step, "time": int(time.time())}, file)
    os.rename(ack + ".new", ack)


def note(**what):
    """One line for each step done, so that it can be seen afterwards that none is missing."""
    with open(os.path.join(DIRECTORY, "steps.jsonl"), "a") as file:
        file.write(json.dumps({"attempt": ATTEMPT, **what}) + "\n")


def anyone_asked():
    flag = torch.tensor([float(bool(asked))])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return flag.item() > 0


def train(options, rank, model):
    start = torch.load(SAVED) if os.path.exists(SAVED) else {"step": 0, "model": model.state_dict()}
    model.load_state_dict(start["model"])
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    step = start["step"]
    last = step + options.steps if step and not options.elastic else None
    while step != last and not (options.elastic and asked):
        if not options.elastic and anyone_asked():
            break
        inputs = torch.full((4, 8), float(rank + 1))
        loss = parallel(inputs).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if rank == 0:
            note(step=step, world=dist.get_world_size())
            if options.elastic:
                save(step, model)
        time.sleep(options.step_ms / 1000)  # allowed: this is the work of a job
    if rank == 0:
        save(step, model)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="ends so many steps after it went on from a checkpoint; never before that")
    parser.add_argument("--step-ms", type=int, default=20)
    parser.add_argument("--elastic", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if "OMPI_COMM_WORLD_RANK" in os.environ:  # below mpirun, where berth sees one process and no ranks
        dist.init_process_group("gloo", init_method=f"file://{DIRECTORY}/meet-{ATTEMPT}", rank=int(os.environ["OMPI_COMM_WORLD_RANK"]),
                                world_size=int(os.environ["OMPI_COMM_WORLD_SIZE"]))
    else:
        dist.init_process_group("gloo")
    rank = dist.get_rank()
    try:
        train(options, rank, torch.nn.Linear(8, 2))
    except RuntimeError as problem:  # another rank has left
        if not asked:
            raise
        print(f"rank {rank}: asked to leave, and {problem}", flush=True)


if __name__ == "__main__":
    main()
