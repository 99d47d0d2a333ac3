#!/usr/bin/env python3
"""berth's commands of Slurm beside those of a real Slurm: the same command lines in the same order give the same output, errors and
exit codes. Both have one node n1, one partition train, a queue (account) lab and a user alice, and both count jobs from 1.

What is made alike before lines are compared:
  1. the home of alice is HOME, and a time such as 2026-11-29T11:58:57 is TIME;
  2. lines of a list are sorted, where no --sort is given: of equal priorities Slurm says no order; those of a file, too;
  3. berth's own lines ("sbatch: berth: ...", "sbatch: warning: --x is not held") are left out: they add to Slurm's words;
  4. "srun: job N queued" and "has been allocated" are left out: a race in both.

    slurm_oracle_test.py [-v]      -v prints each command line with both answers
"""
import os
import re
import shutil
import sys

from patience import eventually
from server import fresh_directory
from slurm_commands import SlurmCommands
from slurm_oracle import NotToBeHad, Oracle

SCRIPTS = {
    "ok.sh": "#!/bin/sh\n#SBATCH --comment=fine\necho hi $SLURM_JOB_ID $SLURM_JOB_NAME \"$@\"\n",
    "crlf.sh": "#!/bin/sh\r\n#SBATCH -J crlf\r\necho hi\r\n",
    "noshebang.sh": "echo hi\n",
    "badshebang.sh": "#!/no/such/shell\necho hi\n",
    "late.sh": "#!/bin/sh\n#SBATCH -J early\necho hi\n#SBATCH -J late\n",
    "quoted.sh": "#!/bin/sh\n#SBATCH --job-name=\"a b\"  # comment\n#SBATCH --time=1:00\necho hi\n",
    "badopt.sh": "#!/bin/sh\n#SBATCH --no-such-option\necho hi\n",
    "empty.sh": "",
    "blank.sh": "   \n\n",
    "stray.sh": "#!/bin/sh\n#SBATCH -J my job\n#SBATCH --time=5\necho hi\n",
    "steps.sh": "#!/bin/sh\nsrun -n 1 sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_STEP_ID; exit 4'\necho code $?\n",
    "variables.sh": "#!/bin/sh\n#SBATCH -n 1 -c 1 --ntasks-per-node=1 --mem=64 --gres=gpu:1 -t 5\nenv | grep ^SLURM_ | sort\n",
}
# Of the environment of a job: where it is, which Slurm it is, and what only a network of daemons has.
OF_THE_SITE = ("SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_WORKING_CLUSTER", "SLURM_JOB_UID", "SLURM_JOB_GID", "SLURM_TASK_PID", "SLURM_JOB_GPUS",
               "SLURM_PARTITION")  # berth has no default partition: its users set one

HELD = """
sbatch -H ok.sh
sbatch --parsable -H -J two -t 1-00:00:00 --wrap true
sbatch -H -q high -J urgent -n1 late.sh
sbatch -H -J dep -d afterok:1 --comment=x -t 90 ok.sh
sbatch -H late.sh
sbatch -H quoted.sh
until 6 lines: squeue -h
until 1 lines: sacct -n -X -P -j 6
squeue
squeue -h
squeue -u alice
squeue --me
squeue -r
squeue -j 2
squeue -j 2,99999
squeue -j 99999
squeue -j abc
squeue -t PD
squeue -t R
squeue -t PENDING,RUNNING -h -o %i
squeue -t nosuch
squeue -p train
squeue -p nosuch
squeue -A lab
squeue -A nosuch
squeue -q high
squeue -n two,urgent
squeue -S i
squeue -S -i
squeue -S j
squeue -S U -j 2
squeue -S 0
squeue --accounts=lab
squeue --partitions=train
squeue --nosuch
squeue extra
squeue -w n1
squeue -o %i|%.5j|%-10u|%t|%T
squeue -o %A|%a|%D|%i|%j|%l|%L|%M|%N|%P|%q|%R|%r|%S|%T|%t|%u|%v|%W|%w|%x|%n|%h|%f|%d|%c|%C|%F|%K|%B|%b|%e|%V
squeue -o %.18i_%.9P_%8j.%.2t
squeue -h -o %k|%Z
squeue -h -o plain
squeue -O jobid,name,state
squeue -O jobid:10,name:.12,state:5,reasonlist
squeue -O JobArrayID,Partition,Name,UserName,StateCompact,TimeUsed,NumNodes,ReasonList,TimeLimit,Account,QOS
squeue -O nosuch
squeue --noheader --format=%i --states=PENDING
sacct -X -n -P -o jobid,jobname,partition,account,state,exitcode,timelimit,qos,user
sacct -X -j 2 -o jobid,jobname%4,state%6,exitcode
sacct -X -j 2
sacct -X -j 2 -P
sacct -X -j 2 -p
sacct -X -b -j 1,2
sacct -j 99999
sacct -j abc
sacct -X --format=jobid,nosuch
sacct -X -s nosuch
sacct -X -S nosuch
sacct extra more
scontrol hold 99999
scontrol release 99999
scontrol show job 99999
scontrol show job abc
scontrol show job 1 2
scontrol show jobs 1,2
scontrol show
scontrol update JobId=99999 Priority=5
scontrol update Name=a
scontrol nosuch
scontrol show nosuch
scontrol show hostlist n1,n2,n3,m5
scancel 1
squeue -j 1
scancel -n two
scancel -q high
until 3 lines: squeue -h
until 1 lines: sacct -n -X -P -j 1 -s CA
scancel 99999
scancel abc
scancel
scancel -t NOSUCH
scancel -s NOSUCH 2
scancel -Q 99999
scancel --nosuch
squeue -h -o %i|%j|%t|%r
squeue -h -t all -o %i|%j|%t
sacct -X -n -P -j 1 -o jobid,exitcode
scancel -u alice
until 0 lines: squeue -h
squeue
"""

# Each of these is refused; Slurm takes numbers of jobs for some of them, so they stand behind all that shows numbers.
REFUSED = """
sbatch crlf.sh
sbatch noshebang.sh
sbatch badopt.sh
sbatch stray.sh
sbatch --mem=100 --mem-per-cpu=10 ok.sh
sbatch empty.sh
sbatch blank.sh
sbatch /no/such/file
sbatch /tmp
sbatch --wrap
sbatch --wrap true ok.sh
sbatch -p nosuch ok.sh
sbatch -A nosuch ok.sh
sbatch -A lab/x ok.sh
sbatch -q nosuch ok.sh
sbatch --array=0-1000000 ok.sh
sbatch --array=5-2 ok.sh
sbatch --array=a ok.sh
sbatch -t abc ok.sh
sbatch -t 1:2:3:4 ok.sh
sbatch --time
sbatch --mem=abc ok.sh
sbatch --gres=gpu:a100:2 ok.sh
sbatch --gres=foo:1 ok.sh
sbatch -n 0 ok.sh
sbatch -c 0 ok.sh
sbatch -n -1 ok.sh
sbatch -c x ok.sh
sbatch -N 0 ok.sh
sbatch -N 2-1 ok.sh
sbatch -N abc ok.sh
sbatch -d afterok:1:x ok.sh
sbatch -d nosuch:1 ok.sh
sbatch --signal=FOO@1 ok.sh
sbatch --nosuch ok.sh
sbatch -@ ok.sh
sbatch -J
sbatch --mail-type=nosuch ok.sh
sbatch --begin=yesterday ok.sh
sbatch --begin=xx ok.sh
sbatch --exclusive=foo ok.sh
sbatch --deadline=xx ok.sh
sbatch --version
squeue --version
srun --nosuch echo
srun
srun -p nosuch echo x
srun -A nosuch echo x
"""

RUN = """
sbatch -W ok.sh a b
sbatch -W --wrap exit\\ 3
sbatch -W badshebang.sh
sbatch -W -o out-%4j-%x.txt -J named ok.sh
sbatch -W steps.sh
sbatch -W --export=NONE --wrap echo\\ $GREETING.
sbatch -W --export=ALL --wrap echo\\ $GREETING.
srun echo hello
srun sh -c exit\\ 3
srun nosuchprogram
srun sh -c echo\\ out;echo\\ err>&2
sbatch -W -o out-both.txt -e out-both.txt --wrap echo\\ out;echo\\ err>&2;echo\\ out2
sbatch -W -o out-step.txt --wrap srun\\ -o\\ out-step-of.txt\\ -D\\ /usr\\ pwd
sbatch -W -o none --wrap echo\\ hi
sbatch -W variables.sh
sbatch -W -a 3-9:3 -o arr-%A_%a.txt --wrap echo\\ $SLURM_ARRAY_TASK_ID\\ $SLURM_ARRAY_TASK_COUNT\\ $SLURM_ARRAY_TASK_MAX\\ $SLURM_ARRAY_TASK_STEP
"""


def words_of(line):
    return [word.replace("\0", " ") for word in line.replace("\\ ", "\0").split(" ")]


class Side:
    """One of the two, and what it said to each line."""

    def __init__(self, name, run, home):
        self.name, self.runs, self.home = name, run, home
        self.answers = {}
        for file, text in SCRIPTS.items():
            with open(os.path.join(home, file), "w", newline="") as out:
                out.write(text)
            os.chmod(os.path.join(home, file), 0o644)

    def alike(self, text, sort):
        text = text.replace(os.path.realpath(self.home), "HOME").replace(self.home, "HOME")
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
        lines = [line for line in text.splitlines() if not re.match(r"\w+: berth: |\w+: warning: --\S+ is not held|srun: job \d+ (queued|has been alloc)", line)]
        return sorted(lines) if sort else lines

    def play(self, lines):
        for line in lines.strip().splitlines():
            if line.startswith("until "):
                self.settle(line)
                continue
            words = words_of(line)
            ran = self.runs(*words, env={"GREETING": "hello"})
            sort = words[0] in ("squeue", "sacct", "srun") and "-S" not in words
            self.answers[line] = (self.alike(ran.stdout, sort), self.alike(ran.stderr, sort), ran.returncode)

    def settle(self, line):
        """Slurm's lists follow what was done a moment later."""
        count, command = re.match(r"until (\d+) lines: (.*)", line).groups()
        eventually(lambda: f"{self.name}: {line}", lambda: len(self.runs(*command.split()).stdout.splitlines()) == int(count))

    def read(self, name):
        path = os.path.join(self.home, name)
        if not os.path.exists(path):
            return "no such file"
        with open(path) as file:
            lines = self.alike(file.read(), False)
        return "\n".join(sorted(line for line in lines if line.split("=")[0] not in OF_THE_SITE))

    def files(self):
        return sorted(name for name in os.listdir(self.home) if name.startswith(("slurm-", "out-", "arr-")))


def compare(ours, theirs, verbose):
    equal, differ = 0, []
    for line, wanted in theirs.answers.items():
        if ours.answers[line] == wanted:
            equal += 1
        else:
            differ.append(line)
        if verbose or line in differ:
            print(f"{'same' if line not in differ else 'DIFFERS'}: {line}\n  slurm {wanted}\n  berth {ours.answers[line]}")
    return equal, differ


def compare_files(ours, theirs):
    differ = []
    if ours.files() != theirs.files():
        print(f"DIFFERS: files\n  slurm {theirs.files()}\n  berth {ours.files()}")
        differ.append("files")
    for name in theirs.files():
        if ours.read(name) != theirs.read(name):
            print(f"DIFFERS: {name}\n--- slurm\n{theirs.read(name)}\n--- berth\n{ours.read(name)}")
            differ.append(name)
    return len(theirs.files()) + 1 - len(differ), differ


def main():
    verbose = "-v" in sys.argv
    directory = fresh_directory()
    try:
        oracle = Oracle(os.path.join(directory, "oracle"))
    except NotToBeHad as problem:
        print(f"SKIPPED: no real Slurm: {problem}")
        sys.exit(77)
    berth = SlurmCommands()
    failed = []
    try:
        os.chmod(directory, 0o755)
        oracle.start()
        berth.start()
        theirs = Side("slurm", oracle.run, os.path.join(oracle.at, "home", "alice"))
        ours = Side("berth", berth.run, berth.home)
        for side in (theirs, ours):
            side.play(HELD)
            side.play(RUN)
            side.play(REFUSED)
        eventually("berth's jobs are over", lambda: not berth.server.all("/v1/jobs"))
        equal, failed = compare(ours, theirs, verbose)
        files_equal, files_differ = compare_files(ours, theirs)
        failed += files_differ
        print(f"{equal} of {len(theirs.answers)} command lines and {files_equal} of {files_equal + len(files_differ)} files are equal")
    finally:
        oracle.stop()
        berth.stop()
    shutil.rmtree(directory, ignore_errors=True)
    shutil.rmtree(berth.directory, ignore_errors=True)
    print(f"{equal + files_equal} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
