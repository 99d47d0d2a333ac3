#!/usr/bin/env python3
"""berth's commands of Slurm against a server with simulated GPUs: where options come from, what a script gets, bad input, and that
nothing is passed over in silence. slurm_oracle_test.py compares them with a real Slurm."""
import os
import re
import shutil
import subprocess
import sys
import traceback

from patience import eventually, stretched
from slurm_commands import SlurmCommands

checks = []


def check(rule):
    checks.append(rule)
    return rule


def script(slurm, name, text):
    path = os.path.join(slurm.home, name)
    with open(path, "w", newline="") as file:
        file.write(text)
    return path


def taken(ran):
    assert ran.returncode == 0, ran
    return int(re.fullmatch(r"Submitted batch job (\d+)\n", ran.stdout).group(1))


def output_of(slurm, job, name=None):
    slurm.server.wait_phase(job, "finished")
    with open(os.path.join(slurm.home, name or f"slurm-{job}.out")) as file:
        return file.read()


@check
def the_last_of_script_variable_and_command_line_wins(slurm):
    path = script(slurm, "order.sh", "#!/bin/sh\n#SBATCH -J script --comment=script\n#SBATCH --time=1:00:00\necho\n#SBATCH -n 9\n")
    job = taken(slurm.run("sbatch", "-H", "-t", "5", path, env={"SBATCH_JOB_NAME": "variable", "SBATCH_TIMELIMIT": "30"}))
    seen = slurm.server.job(job)
    assert seen["name"] == "variable" and seen["time_limit_s"] == 300 and seen["spec"]["comment"] == "script", seen
    assert seen["cpus"] == 1 and seen["pool"] == "train" and seen["queue"] == "lab" and seen["user"] == "alice", seen
    assert slurm.run("scancel", str(job)).returncode == 0


@check
def a_script_runs_from_its_copy_with_the_variables_of_slurm(slurm):
    path = script(slurm, "job.sh", "#!/bin/sh\n#SBATCH --gres=gpu:h100:2\n#SBATCH -n 1 --mem=64 -t 10\n"
                  'echo "$SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_MEM_PER_NODE $SLURM_GPUS_ON_NODE $1 $FROM_SHELL"\n'
                  'echo "$CUDA_VISIBLE_DEVICES" | tr , "\\n" | wc -l\necho err >&2\npwd\nls -l /proc/self/fd/9 | grep -c deleted\n')
    job = taken(slurm.run("sbatch", "-H", path, "word", env={"FROM_SHELL": "passed"}))
    script(slurm, "job.sh", "#!/bin/sh\necho another\n")
    assert slurm.run("scontrol", "release", str(job)).returncode == 0
    said = output_of(slurm, job)
    assert said == f"{job} job.sh 1 64 2 word passed\n2\nerr\n{os.path.realpath(slurm.home)}\n1\n", said
    assert slurm.server.job(job)["spec"]["gpu_models"] == ["H100-SXM5-80GB"]
    assert not [name for name in os.listdir("/tmp") if name.startswith("slurm_script.") and
                os.stat(os.path.join("/tmp", name)).st_uid == os.stat(os.path.join(slurm.home, f"slurm-{job}.out")).st_uid]


@check
def a_secret_of_the_shell_stays_out_of_the_log_unless_it_is_named(slurm):
    shell = {"HF_TOKEN": "hf_abc", "TOKENIZERS": "1"}
    run = slurm.run("sbatch", "-H", "--wrap", "true", env=shell)
    job = int(run.stdout.split()[-1])
    env = slurm.server.job(job)["spec"]["env"]
    assert "HF_TOKEN" not in env and env["TOKENIZERS"] == "1", env
    assert "not passed on" in run.stderr and "HF_TOKEN" in run.stderr and "hf_abc" not in run.stderr, run
    named = taken(slurm.run("sbatch", "-H", "--export=ALL,HF_TOKEN", "--wrap", "true", env=shell))
    assert slurm.server.job(named)["spec"]["env"]["HF_TOKEN"] == "hf_abc"
    assert slurm.run("scancel", str(job), str(named)).returncode == 0


@check
def an_array_has_the_numbers_of_its_elements(slurm):
    job = taken(slurm.run("sbatch", "-a", "3-9:3,20%2", "-o", "arr-%A_%3a.out", "--wrap",
                          "echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MAX"))
    slurm.server.wait_phase(job, "finished")
    for number in (3, 6, 9, 20):
        with open(os.path.join(slurm.home, f"arr-{job}_{number:03}.out")) as file:
            assert file.read() == f"{number} {job} 4 20\n", number
    shown = slurm.run("sacct", "-X", "-n", "-P", "-j", str(job), "-o", "jobid,state")
    assert shown.stdout == "".join(f"{job}_{number}|COMPLETED\n" for number in (3, 6, 9, 20)), shown
    many = slurm.run("sbatch", "-H", "--array=0-99999%1", "--wrap", "true")
    assert slurm.run("squeue", "-h", "-o", "%i %K").stdout.strip() == f"{taken(many)}_[0-99999%1] 0-99999%1", many
    assert slurm.run("scancel", str(taken(many))).returncode == 0
    beyond = slurm.run("sbatch", "-H", "--array=0-999999", "--wrap", "true")  # more than a user may write in a day
    assert beyond.returncode == 1 and "Job violates accounting/QOS policy" in beyond.stderr and "--day-limit" in beyond.stderr, beyond
    refused = slurm.run("sbatch", "--array=0-1000000", "--wrap", "true")
    assert refused.returncode == 1 and refused.stderr.endswith("Invalid job array specification\n"), refused


def begin_array(slurm, words, running):
    """An array of which `running` elements run and others wait."""
    job = taken(slurm.run("sbatch", *words, "--wrap", "trap '' USR1; touch began-$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID; sleep 300"))
    eventually("the elements run", lambda: all(os.path.exists(os.path.join(slurm.home, f"began-{job}-{one}")) for one in running))
    return job


def shown_elements(slurm):
    return sorted(slurm.run("squeue", "-h", "-o", "%i %t").stdout.splitlines())


@check
def no_choice_of_a_part_of_an_array_ends_all_of_it(slurm):
    """Elements that have not begun have no job of their own, so each of these would end the elements that run, too."""
    job = begin_array(slurm, ["-a", "0-3%1", "-J", "part"], [0])
    before = [f"{job}_0 R", f"{job}_[1-3%1] PD"]
    for words in (["-u", "alice", f"{job}_3"], ["--me", f"{job}_3"], [f"{job}_3"], ["-t", "PENDING", "-u", "alice"], ["-t", "PD", str(job)]):
        ran = slurm.run("scancel", *words)
        assert ran.returncode == 1 and f"ended with their array alone: scancel {job}" in ran.stderr, (words, ran)
        assert shown_elements(slurm) == before, words
    for words in (["-i", f"{job}_3"], ["-i", str(job)]):
        ran = slurm.run("scancel", *words, text="n\nn\n")
        assert ran.returncode == 1 and f"ended with their array alone: scancel {job}" in ran.stderr, (words, ran)
        assert shown_elements(slurm) == before, words
    assert slurm.run("scancel", "-u", "alice", "-n", "part").returncode == 0
    slurm.server.wait_phase(job, "finished")
    waiting = taken(slurm.run("sbatch", "-H", "-a", "0-3", "--wrap", "true"))
    assert slurm.run("scancel", "-t", "PENDING", "-u", "alice").returncode == 0, "none of it runs: all of it is chosen"
    slurm.server.wait_phase(waiting, "finished")


@check
def a_signal_goes_to_what_runs_and_ends_no_job(slurm):
    """Only KILL cancels; TERM is for a script that catches it."""
    job = taken(slurm.run("sbatch", "-t", "10", "-o", "term.out", "--wrap",
                          'trap "echo caught; exit 5" TERM; echo ready; while :; do sleep 0.1; done'))
    path = os.path.join(slurm.home, "term.out")
    eventually("the script is ready", lambda: os.path.exists(path) and "ready" in open(path).read())
    assert slurm.run("scancel", "-s", "TERM", str(job)).returncode == 0
    slurm.server.wait_phase(job, "finished")
    seen = slurm.server.job(job)
    said = open(path).read().splitlines()
    assert said[0] == "ready" and said[-1] == "caught" and seen["outcome"] == "failed" and seen["code"] == 5, (said, seen["outcome"])
    array = begin_array(slurm, ["-a", "0-3%2"], [0, 1])
    for words in ([str(array)], ["-u", "alice"]):
        assert (slurm.run("scancel", "-s", "USR1", *words).returncode, slurm.run("scancel", "-s", "CONT", *words).stderr) == (0, ""), words
    assert shown_elements(slurm) == [f"{array}_0 R", f"{array}_1 R", f"{array}_[2-3%2] PD"]
    assert slurm.run("scancel", "-s", "TERM", str(array)).returncode == 0
    for one in (2, 3):
        eventually("the others begin", lambda number=one: os.path.exists(os.path.join(slurm.home, f"began-{array}-{number}")))
    assert slurm.run("scancel", str(array)).returncode == 0
    slurm.server.wait_phase(array, "finished")


@check
def what_a_job_is_called_cannot_forge_a_line_or_command_a_terminal(slurm):
    typed = "x\n7 \x9b2J \u202e\x1b[31m"
    job = taken(slurm.run("sbatch", "-H", "--comment", typed, "--wrap", "true"))
    for words in (["squeue", "-h", "-o", "%k"], ["sacct", "-j", str(job), "-X", "-n", "-P", "-o", "comment"],
                  ["scontrol", "show", "job", str(job)], ["scontrol", "-o", "show", "job", str(job)]):
        ran = slurm.run(*words)
        assert "x\\n7 \\x9b2J \\u202e\\x1b[31m" in ran.stdout and not re.search("[\x1b\x9b\u202e]", ran.stdout), (words, ran)
    assert "\n   Comment=x\\n7 \\x9b2J \\u202e\\x1b[31m \n" in slurm.run("scontrol", "show", "job", str(job)).stdout
    assert slurm.run("scancel", str(job)).returncode == 0


@check
def streams_and_elements_of_one_file_keep_what_the_other_wrote(slurm):
    said = slurm.run("sbatch", "-W", "-o", "one.log", "-e", "one.log", "--wrap", "echo out; echo a longer line on stderr >&2; echo out")
    assert said.returncode == 0, said
    path = os.path.join(slurm.home, "one.log")
    assert open(path).read() == "out\na longer line on stderr\nout\n", open(path).read()
    slurm.run("sbatch", "-W", "-o", "one.log", "--wrap", "echo new")
    assert open(path).read() == "new\n", "it is emptied first"
    slurm.run("sbatch", "-W", "-o", "one.log", "--open-mode=append", "--wrap", "echo more")
    assert open(path).read() == "new\nmore\n", "unless it is to be kept"


@check
def a_wrong_order_is_refused_by_its_letter(slurm):
    ran = slurm.run("squeue", "-h", "-S", "i,0")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "squeue: error: Invalid sort specification: 0\n"), ran
    assert slurm.run("squeue", "-h", "-S", "U").returncode == 0, "by the number of the user"


@check
def a_step_obeys_its_files_and_its_directory_and_tells_what_it_does_not(slurm):
    path = script(slurm, "step.sh", "#!/bin/sh\nsrun -o step-%j.out -D /usr --gres=gpu:1 pwd; cat step-$SLURM_JOB_ID.out\n"
                  "SLURM_STDOUTMODE=variable.out srun echo by variable; cat variable.out\nsrun -o none echo nothing\n"
                  "srun -e errors.out sh -c 'echo err >&2'; cat errors.out\nsrun -D /nonexistent pwd\nsrun -i data.txt cat\necho code $?\n")
    said = output_of(slurm, taken(slurm.run("sbatch", path))).splitlines()
    node = slurm.server.node_name
    assert said == ["srun: warning: --gres is not held in a job: a step has all of the job", "/usr", "by variable", "err",
                    f"slurmstepd-{node}: error: couldn't chdir to `/nonexistent': going to /tmp instead", "/tmp",
                    "srun: error: Unable to allocate resources: Unspecified error",
                    "srun: berth: --input=data.txt is not held: a step has no stdin; redirect it in the command", "code 1"], said


@check
def a_stray_word_of_a_directive_is_refused(slurm):
    path = script(slurm, "stray.sh", "#!/bin/sh\n#SBATCH -J my job\n#SBATCH --time=5\necho\n")
    ran = slurm.run("sbatch", path)
    assert ran.returncode == 255 and ran.stderr.startswith("sbatch: error: Invalid directive found in batch script: job\n"), ran
    loop = os.path.join(slurm.home, "loop.sh")
    os.symlink(loop, loop)
    ran = slurm.run("sbatch", loop)
    assert (ran.returncode, ran.stderr) == (1, f"sbatch: error: Unable to open file {loop}\n"), ran


@check
def the_words_of_export_are_those_of_slurm(slurm):
    shell = {"GREETING": "hello", "BROKEN": "a\udcff"}
    run = slurm.run("sbatch", "-H", "--export=all,A='x,y',B=2", "--wrap", "true", env=shell)
    job = int(run.stdout.split()[-1])
    env = slurm.server.job(job)["spec"]["env"]
    assert env["GREETING"] == "hello" and env["A"] == "'x,y'" and env["B"] == "2" and "BROKEN" not in env, env
    assert "not passed on, since the value is not UTF-8: BROKEN\n" in run.stderr, run
    assert slurm.run("scancel", str(job)).returncode == 0


@check
def variables_of_scancel_narrow_and_guard_what_it_ends(slurm):
    job = taken(slurm.run("sbatch", "-H", "--wrap", "true"))
    for variables in ({"SCANCEL_USER": "carol"}, {"SCANCEL_STATE": "RUNNING"}, {"SCANCEL_NAME": "x"}, {"SCANCEL_INTERACTIVE": "true"}):
        assert slurm.run("scancel", str(job), env=variables).returncode == 0 and slurm.server.job(job)["phase"] == "pending", variables
    ran = slurm.run("scancel", str(job), env={"SCANCEL_INTERACTIVE": "1"})
    assert ran.returncode == 1 and ran.stderr.startswith("scancel: error: Unrecognized SCANCEL_INTERACTIVE value: 1\n"), ran
    ran = slurm.run("scancel", str(job), env={"SCANCEL_WCKEY": "a"})
    assert ran.returncode == 1 and "--wckey is not held" in ran.stderr, ran
    assert slurm.server.job(job)["phase"] == "pending"
    assert slurm.run("scancel", "-u", "alice", env={"SCANCEL_USER": "carol"}).returncode == 0, "the word wins"
    slurm.server.wait_phase(job, "finished")


@check
def lists_of_nodes_are_those_of_slurm(slurm):
    node = slurm.server.node_name
    folded = f"other[1-3],{node[:-1]}[{node[-1]}-9]" if node[-1].isdigit() else f"other[1-3],{node}"
    job = begin_array(slurm, ["-a", "0"], [0])
    for words in (["squeue", "-h", "-o", "%i", "-w", folded], ["squeue", "-h", "-o", "%i", "--nodes", folded],
                  ["sacct", "-X", "-n", "-P", "-o", "jobid", "-N", folded, "-s", "R"]):
        assert slurm.run(*words).stdout == f"{job}_0\n", (words, slurm.run(*words))
    ran = slurm.run("squeue", "-w", "n[1-")
    assert (ran.returncode, ran.stderr) == (1, "squeue: error: Invalid node name n[1-\n"), ran
    assert slurm.run("scancel", "-w", "other[1-3]").returncode == 0 and slurm.server.job(job)["phase"] == "running"
    assert slurm.run("scancel", "-w", folded).returncode == 0
    slurm.server.wait_phase(job, "finished")


@check
def scontrol_takes_its_words_and_options_in_any_order(slurm):
    job = taken(slurm.run("sbatch", "-H", "-o", "x-%4j-%a.txt", "-e", "err-%x", "-i", "in-%j", "-J", "jn", "-w", "n1,n[3-4]", "-x", "m1",
                          "-C", "a|b", "--wrap", "true"))
    wanted = slurm.run("scontrol", "-o", "show", "job", str(job)).stdout
    home = os.path.realpath(slurm.home)
    for part in (f"StdErr={home}/err-jn ", f"StdIn={home}/in-{job} ", f"StdOut={home}/x-%4j-4294967294.txt ", "ReqNodeList=n[1,3-4] ",
                 "ExcNodeList=m1 ", "Features=a|b "):
        assert part in wanted, (part, wanted)
    unchanging = lambda text: re.sub(r"LastSchedEval=\S+", "", text)
    for words in (["show", "jobid", "-dd", str(job), "-o"], ["show", f"job={job}", "-o"], ["-o", "show", f"JobId={job}"], ["show", "JOBS", str(job), "-o"]):
        ran = slurm.run("scontrol", *words)
        assert ran.returncode == 0 and unchanging(ran.stdout) == unchanging(wanted), (words, ran)
    ran = slurm.run("scontrol", "show", "job", str(job), str(job))
    assert (ran.returncode, ran.stderr) == (1, "too many arguments for keyword:show\n"), ran
    second = taken(slurm.run("sbatch", "-H", "--wrap", "sleep 300"))
    assert slurm.run("scontrol", "update", f"JobId={job},{second}", "Priority=3", user="root").returncode == 0
    assert [slurm.server.job(one)["priority"] for one in (job, second)] == [3, 3]
    assert slurm.run("scontrol", "release", f"jobid={second}").returncode == 0 and not slurm.server.job(second)["held"]
    assert slurm.run("scancel", str(job), str(second)).returncode == 0


@check
def one_element_is_shown_by_its_number_alone(slurm):
    job = taken(slurm.run("sbatch", "-H", "-a", "0-99999", "--wrap", "true"))
    shown = slurm.run("squeue", "-h", "-o", "%i", "-j", f"{job}_7,{job}_99999")
    assert shown.stdout == f"{job}_7\n{job}_99999\n", shown
    shown = slurm.run("scontrol", "-o", "show", "job", f"{job}_7")
    assert shown.stdout.startswith(f"JobId={job} ArrayJobId={job} ArrayTaskId=7 "), shown
    shown = slurm.run("sacct", "-X", "-n", "-P", "-o", "jobid,reqmem", "-j", f"{job}_7")
    assert shown.stdout.startswith(f"{job}_7|"), shown
    assert slurm.run("scancel", str(job)).returncode == 0


@check
def sacct_looks_back_and_knows_its_fields(slurm):
    every = slurm.run("sacct", "-X", "-P", "-o", "ALL")
    assert len(every.stdout.splitlines()[0].split("|")) > 40, every
    ran = slurm.run("sacct", "-o", "%10")
    assert (ran.returncode, ran.stderr) == (1, 'sacct: error: Invalid field requested: "%10"\n'), ran
    ran = slurm.run("sacct", "extra", "more")
    assert (ran.returncode, ran.stderr) == (1, "sacct: error: Unknown arguments:\nsacct: error:  extra\nsacct: error:  more\n"), ran
    ran = slurm.run("sacct", "-S", "now+1hour")
    assert ran.returncode == 1 and re.fullmatch(r"sacct: error: Start time \(\S+\) requested is after end time \(\S+\)\.\n", ran.stderr), ran
    assert slurm.run("sacct", "-X", "-n", "-S", "00:00").stdout != "", "this day's midnight, not the next one"


@check
def lists_are_sorted_by_number_and_long_is_long(slurm):
    jobs = [taken(slurm.run("sbatch", "-H", "-t", limit, "--wrap", "true")) for limit in ("100", "9", "20-00:00:00")]
    jobs.append(taken(slurm.run("sbatch", "-H", "--wrap", "true")))
    shown = slurm.run("squeue", "-h", "-o", "%i", "-S", "l").stdout.split()
    assert shown == [str(jobs[at]) for at in (1, 0, 2, 3)], shown
    titles = slurm.run("squeue", "-l", env={"SQUEUE_FORMAT": "%i %j"}).stdout.splitlines()[1]
    assert titles.split()[-1] == "NODELIST(REASON)", titles
    assert slurm.run("scancel", *map(str, jobs)).returncode == 0


@check
def waiting_outlasts_a_server_that_starts_again(slurm):
    waiting = subprocess.Popen(["sbatch", "-W", "--parsable", "-a", "1-3", "--wrap", "sleep 2; exit $SLURM_ARRAY_TASK_ID"], cwd=slurm.home,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=slurm.environment("alice"))
    job = int(waiting.stdout.readline())
    slurm.server.wait_phase(job, "running")
    slurm.server.stop()
    slurm.server.flags += ["--port", str(slurm.server.port)]
    assert slurm.server.start(), slurm.server.tail()
    said = waiting.communicate(timeout=stretched(120))
    assert waiting.returncode == 3, (waiting.returncode, said)


@check
def no_option_is_silent(slurm):
    """Of each tool one option that is warned of and one that is refused; parser_test has all of them."""
    for tool, warned, refused in (("sbatch", "--mail-user=a", "--licenses=a"), ("srun", "--mpi=none", "--multi-prog"),
                                  ("squeue", "--federation", "--start"), ("scancel", "--hurry", "--wckey=a"),
                                  ("sinfo", "--exact", "--list-reasons"), ("sacct", "--duplicates", "--completion"),
                                  ("scontrol", "--details", "--uid=1")):
        ran = slurm.run(tool, warned, refused, "--", "true")
        assert ran.returncode in (1, 255) and ran.stdout == "", ran
        names = [word.split("=")[0] for word in (warned, refused)]
        assert re.fullmatch(rf"{tool}: warning: {names[0]} is not held: .+\n{tool}: error: {names[1]} is not held: .+\n", ran.stderr), ran
    warned = slurm.run("sbatch", "-H", "--parsable", "--mail-type=END", "--wrap", "true")
    assert warned.returncode == 0 and warned.stderr == "sbatch: warning: --mail-type is not held: no mail is sent\n", warned
    slurm.run("scancel", warned.stdout.strip())


@check
def what_is_not_there_is_refused_by_name(slurm):
    for words, said in ((["sbatch", "-N2", "--wrap", "true"], "--nodes=2 is not held"),
                        (["sbatch", "-d", "singleton", "--wrap", "true"], "--dependency=singleton is not held"),
                        (["srun", "--pty", "sh"], "--pty is not held"),
                        (["scontrol", "requeue", "1"], "requeue is not held"),
                        (["sbatch", "--container-mounts=/a:/b", "--wrap", "true"], "--container-mounts=/a:/b is not held"),
                        (["squeue", "--json"], "--json is not held")):
        ran = slurm.run(*words)
        assert ran.returncode != 0 and said in ran.stderr, (words, ran)
    large = script(slurm, "large.sh", "#!/bin/sh\n" + "# padding\n" * 20_000)
    ran = slurm.run("sbatch", large)
    assert ran.returncode == 1 and "128 KiB" in ran.stderr, ran


@check
def accounts_are_paths_and_those_of_others_are_refused(slurm):
    job = taken(slurm.run("sbatch", "-H", "-A", "vision/day", "--wrap", "true", user="carol"))
    shown = slurm.run("squeue", "-h", "-A", "vision", "-o", "%i %a %u", user="carol")
    assert shown.stdout == f"{job} vision/day carol\n", shown
    for account in ("nosuch", "lab/x", "vision/day", "vision", "/", "a//b", "x" * 300):
        ran = slurm.run("sbatch", "-A", account, "--wrap", "true")
        assert ran.returncode == 1 and ran.stderr.startswith(
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n"), (account, ran)
    assert slurm.run("squeue", "-h").stdout == "", "alice sees no job of carol"
    assert slurm.run("scancel", str(job)).returncode == 0 and slurm.server.job(job)["phase"] == "pending"
    assert slurm.run("scancel", str(job), user="carol").returncode == 0


@check
def a_dependency_holds_a_job_back_until_the_other_has_succeeded(slurm):
    first = taken(slurm.run("sbatch", "-H", "--wrap", "exit 0"))
    second = taken(slurm.run("sbatch", "-d", f"afterok:{first}", "--wrap", "echo after"))
    shown = slurm.run("squeue", "-h", "-j", str(second), "-o", "%i %t %r %E")
    assert shown.stdout == f"{second} PD Dependency afterok:{first}(unfulfilled)\n", shown
    slurm.run("scontrol", "release", str(first))
    assert output_of(slurm, second) == "after\n"


@check
def srun_in_a_script_starts_tasks_and_tells_their_exits(slurm):
    path = script(slurm, "steps.sh", "#!/bin/sh\nsrun -n 3 sh -c 'exit $SLURM_PROCID'\necho code $?\nsrun nosuchprogram\necho code $?\n")
    node = slurm.server.node_name
    said = output_of(slurm, taken(slurm.run("sbatch", path)))
    assert said == (f"srun: error: {node}: task 1: Exited with exit code 1\nsrun: error: {node}: task 2: Exited with exit code 2\ncode 2\n"
                    f"slurmstepd-{node}: error: execve(): nosuchprogram: No such file or directory\n"
                    f"srun: error: {node}: task 0: Exited with exit code 2\ncode 2\n"), said


@check
def srun_by_itself_shows_output_and_exits_as_the_command(slurm):
    ran = slurm.run("srun", "-Q", "--gres=gpu:1", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert ran.returncode == 7 and ran.stdout == "out\n", ran
    assert ran.stderr == f"err\nsrun: error: {slurm.server.node_name}: task 0: Exited with exit code 7\n", ran


@check
def a_server_that_is_away_is_told_in_both_words(slurm):
    away = {"BERTH_SERVER": "unix:/nonexistent"}
    ran = slurm.run("sbatch", "--wrap", "true", env=away)
    assert ran.returncode == 1 and ran.stderr.startswith(
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\nsbatch: berth: "), ran
    ran = slurm.run("squeue", env=away)
    assert ran.returncode == 1 and ran.stderr.startswith("slurm_load_jobs error: Unable to contact slurm controller"), ran


@check
def signals_and_waits_are_passed_on(slurm):
    job = taken(slurm.run("sbatch", "-t", "10", "--signal=B:USR1@30", "--wrap",
                          'trap "echo caught; exit 0" USR1; echo ready; while :; do sleep 0.1; done'))
    path = os.path.join(slurm.home, f"slurm-{job}.out")
    eventually("the script is ready", lambda: os.path.exists(path) and "ready" in open(path).read())
    assert slurm.server.job(job)["spec"]["checkpoint"]["grace"] in ("30s", 30), slurm.server.job(job)["spec"]
    assert slurm.run("scancel", "-s", "USR1", str(job)).returncode == 0
    said = output_of(slurm, job).splitlines()
    assert said[0] == "ready" and said[-1] == "caught", said
    ran = slurm.run("sbatch", "-W", "--wrap", "exit 3")
    assert ran.returncode == 3, ran


def main():
    slurm = SlurmCommands()
    slurm.start()
    only = sys.argv[1:]
    ran = [rule for rule in checks if not only or rule.__name__ in only]
    failed = 0
    for rule in ran:
        try:
            rule(slurm)
        except (AssertionError, KeyError, IndexError, ValueError, AttributeError, OSError, subprocess.SubprocessError) as problem:
            failed += 1
            line = traceback.extract_tb(problem.__traceback__)[1]
            print(f"FAILED: {rule.__name__.replace('_', ' ')}: line {line.lineno}, {line.line}: {type(problem).__name__} {problem}")
    slurm.stop()
    if failed == 0:
        shutil.rmtree(slurm.directory, ignore_errors=True)
    else:
        print("evidence is in", slurm.directory)
    print(f"{len(ran) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
