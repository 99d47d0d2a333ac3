#include "slurm/options.h"

#include <algorithm>
#include <array>

namespace berth::slurm {
namespace {

constexpr Takes kNo = Takes::kNothing;
constexpr Takes kVal = Takes::kValue;
constexpr Takes kMay = Takes::kMaybe;
constexpr Held kYes = Held::kHeld;
constexpr Held kWarn = Held::kWarned;
constexpr Held kNot = Held::kRefused;

// Of sbatch (b), srun (r) or both.
struct JobOption {
  std::string_view tools;
  Option option;
};

// clang-format off
constexpr auto kJobOptions = std::to_array<JobOption>({
    {"b",  {"array", 'a', kVal, kYes, "ARRAY_INX", "an array of these elements, `%N` at once"}},
    {"br", {"account", 'A', kVal, kYes, "ACCOUNT", "the queue, by its path"}},
    {"r",  {"acctg-freq", 0, kVal, kWarn, "ACCTG_FREQ", "nothing samples here"}},
    {"b",  {"acctg-freq", 0, kVal, kWarn, "ACCTG_FREQ", "nothing samples here"}},
    {"br", {"bb", 0, kVal, kNot, "BURST_BUFFER", "there are no burst buffers"}},
    {"br", {"bbf", 0, kVal, kNot, "", "there are no burst buffers"}},
    {"b",  {"batch", 0, kVal, kNot, "BATCH", "a batch script has one node"}},
    {"r",  {"bcast", 0, kMay, kNot, "BCAST", "no file is copied to the node"}},
    {"br", {"begin", 'b', kVal, kYes, "", "`earliest_start`: `now+1hour`, `16:00`, `tomorrow`, ISO 8601"}},
    {"br", {"cluster-constraint", 0, kVal, kNot, "", "there is one cluster"}},
    {"br", {"clusters", 'M', kVal, kNot, "CLUSTERS", "there is one cluster"}},
    {"br", {"comment", 0, kVal, kYes, "COMMENT", "`comment`"}},
    {"r",  {"compress", 0, kMay, kNot, "COMPRESS", "no file is copied to the node"}},
    {"br", {"constraint", 'C', kVal, kYes, "CONSTRAINT", "labels that a node must have: `a&b`, `a|b`, `a=1`"}},
    {"br", {"container", 0, kVal, kNot, "CONTAINER", "no OCI bundle is run; give --container-image"}},
    {"br", {"container-image", 0, kVal, kYes, "", "`image`, for Kubernetes; a server on one machine refuses it"}},
    {"br", {"container-mounts", 0, kVal, kYes, "", "volumes of the queue: `NAME:/PATH[:ro]`; no paths of the node"}},
    {"br", {"container-name", 0, kVal, kNot, "", "no container is kept"}},
    {"br", {"container-workdir", 0, kVal, kYes, "", "`workdir`"}},
    {"br", {"contiguous", 0, kNo, kWarn, "", "a job has one node"}},
    {"br", {"core-spec", 'S', kVal, kNot, "CORE_SPEC", "no cores are set aside"}},
    {"br", {"cores-per-socket", 0, kVal, kNot, "", "nodes are not told apart by sockets"}},
    {"r",  {"cpu-bind", 0, kVal, kWarn, "CPU_BIND", "cores are not bound to tasks"}},
    {"br", {"cpu-freq", 0, kVal, kWarn, "CPU_FREQ_REQ", "frequencies are not set"}},
    {"br", {"cpus-per-gpu", 0, kVal, kYes, "CPUS_PER_GPU", "cores for each GPU"}},
    {"b",  {"cpus-per-task", 'c', kVal, kYes, "CPUS_PER_TASK", "cores for each of the tasks"}},
    {"r",  {"cpus-per-task", 'c', kVal, kYes, "SRUN_CPUS_PER_TASK", "cores for each of the tasks"}},
    {"br", {"deadline", 0, kVal, kYes, "", "`deadline`: the job becomes urgent; it is not removed"}},
    {"br", {"debugger-test", 0, kNo, kNot, "", "for Slurm's own tests"}},
    {"br", {"delay-boot", 0, kVal, kWarn, "DELAY_BOOT", "no node is booted for a job"}},
    {"br", {"dependency", 'd', kVal, kYes, "DEPENDENCY", "`after`, `afterok`, `afterany`, joined by commas"}},
    {"b",  {"chdir", 'D', kVal, kYes, "CHDIR", "`workdir`"}},
    {"r",  {"chdir", 'D', kVal, kYes, "WORKING_DIR REMOTE_CWD", "`workdir`"}},
    {"r",  {"disable-status", 'X', kNo, kWarn, "DISABLE_STATUS", "Ctrl-C cancels the job at once"}},
    {"br", {"distribution", 'm', kVal, kWarn, "DISTRIBUTION", "a job has one node"}},
    {"r",  {"epilog", 0, kVal, kNot, "EPILOG", "no program runs after the step"}},
    {"b",  {"error", 'e', kVal, kYes, "ERROR", "the file of stderr; patterns as for --output"}},
    {"r",  {"error", 'e', kVal, kYes, "STDERRMODE", "the file of stderr; patterns as for --output"}},
    {"br", {"exact", 0, kNo, kWarn, "EXACT", "one step has all of the job"}},
    {"br", {"exclude", 'x', kVal, kYes, "", "nodes to keep away from: `n1,n[3-5]`"}},
    {"br", {"exclusive", 0, kMay, kYes, "EXCLUSIVE", "`exclusive`; `=user` and `=mcs` are refused"}},
    {"b",  {"export", 0, kVal, kYes, "EXPORT", "variables of the job: ALL (the default), NONE, names, NAME=VALUE"}},
    {"r",  {"export", 0, kVal, kYes, "EXPORT_ENV SRUN_EXPORT_ENV", "variables of the job: ALL (the default), NONE, names, NAME=VALUE"}},
    {"b",  {"export-file", 0, kVal, kNot, "", "give --export"}},
    {"br", {"extra-node-info", 'B', kVal, kNot, "EXTRA_NODE_INFO", "nodes are not told apart by sockets"}},
    {"b",  {"get-user-env", 0, kMay, kWarn, "GET_USER_ENV", "the job has the environment of the command"}},
    {"br", {"gid", 0, kVal, kNot, "", "a job runs as its user"}},
    {"br", {"gpu-bind", 0, kVal, kWarn, "GPU_BIND", "each task sees all GPUs of the job"}},
    {"br", {"gpu-freq", 0, kVal, kWarn, "GPU_FREQ", "frequencies are not set"}},
    {"br", {"gpus", 'G', kVal, kYes, "GPUS", "GPUs of the job: `2`, `h100:2`"}},
    {"br", {"gpus-per-node", 0, kVal, kYes, "GPUS_PER_NODE", "the same, as a job has one node"}},
    {"br", {"gpus-per-socket", 0, kVal, kNot, "GPUS_PER_SOCKET", "nodes are not told apart by sockets"}},
    {"br", {"gpus-per-task", 0, kVal, kYes, "GPUS_PER_TASK", "so many times --ntasks"}},
    {"br", {"gres", 0, kVal, kYes, "GRES", "`gpu:2`, `gpu:h100:2`, `none`; nothing but gpu"}},
    {"br", {"gres-flags", 0, kVal, kWarn, "GRES_FLAGS", "GPUs are placed by the server"}},
    {"r",  {"het-group", 0, kVal, kNot, "", "there are no heterogeneous jobs"}},
    {"br", {"hint", 0, kVal, kWarn, "HINT", "cores are not told apart"}},
    {"br", {"hold", 'H', kNo, kYes, "", "`hold`"}},
    {"b",  {"ignore-pbs", 0, kNo, kYes, "IGNORE_PBS", "lines of PBS and LSF are never read"}},
    {"r",  {"immediate", 'I', kMay, kNot, "IMMEDIATE", "a job that cannot start waits"}},
    {"b",  {"input", 'i', kVal, kYes, "INPUT", "the file of stdin"}},
    {"r",  {"input", 'i', kVal, kYes, "STDINMODE", "`none` and /dev/null alone: a step has no stdin"}},
    {"r",  {"interactive", 0, kNo, kNot, "", "there is no shell in a job here"}},
    {"r",  {"jobid", 0, kVal, kNot, "", "a step runs in the job that it is started in"}},
    {"br", {"job-name", 'J', kVal, kYes, "JOB_NAME", "`name`"}},
    {"br", {"kill-on-bad-exit", 'K', kMay, kWarn, "KILL_BAD_EXIT", "the other tasks run to their end"}},
    {"br", {"kill-on-invalid-dep", 0, kVal, kWarn, "KILL_INVALID_DEP", "such a job waits until it is cancelled"}},
    {"r",  {"label", 'l', kNo, kNot, "LABELIO", "lines carry no number of their task"}},
    {"br", {"licenses", 'L', kVal, kNot, "", "there are no licenses"}},
    {"br", {"mail-type", 0, kVal, kWarn, "", "no mail is sent"}},
    {"br", {"mail-user", 0, kVal, kWarn, "", "no mail is sent"}},
    {"br", {"mcs-label", 0, kVal, kNot, "", "there are no such labels"}},
    {"br", {"mem", 0, kVal, kYes, "MEM_PER_NODE", "memory of the job, in MB without a suffix; 0 is refused"}},
    {"br", {"mem-bind", 0, kVal, kWarn, "MEM_BIND", "memory is not bound"}},
    {"br", {"mem-per-cpu", 0, kVal, kYes, "MEM_PER_CPU", "so much for each core"}},
    {"br", {"mem-per-gpu", 0, kVal, kYes, "MEM_PER_GPU", "so much for each GPU"}},
    {"br", {"mincpus", 0, kVal, kYes, "", "at least so many cores"}},
    {"r",  {"mpi", 0, kVal, kWarn, "MPI_TYPE", "tasks are started without MPI"}},
    {"r",  {"msg-timeout", 0, kVal, kWarn, "", "there are no such messages"}},
    {"r",  {"multi-prog", 0, kNo, kNot, "MULTI_PROG", "all tasks run one command"}},
    {"br", {"network", 0, kVal, kNot, "NETWORK", "networks are not set"}},
    {"br", {"nice", 0, kMay, kWarn, "", "the priority is that of --qos"}},
    {"r",  {"no-allocate", 'Z', kNo, kNot, "", "each job is placed by the server"}},
    {"br", {"no-kill", 'k', kMay, kWarn, "NO_KILL", "a job has one node"}},
    {"br", {"no-requeue", 0, kNo, kWarn, "NO_REQUEUE", "a job that is evicted is always started again"}},
    {"br", {"nodefile", 'F', kVal, kNot, "", "give --constraint"}},
    {"br", {"nodelist", 'w', kVal, kYes, "", "one of these nodes: `n1,n[3-5]`"}},
    {"b",  {"nodes", 'N', kVal, kYes, "", "1; more are refused, as a step has one node"}},
    {"r",  {"nodes", 'N', kVal, kYes, "JOB_NUM_NODES", "1; more are refused, as a step has one node"}},
    {"b",  {"ntasks", 'n', kVal, kYes, "NTASKS", "how many tasks a step starts"}},
    {"r",  {"ntasks", 'n', kVal, kYes, "NPROCS NTASKS", "how many tasks a step starts"}},
    {"br", {"ntasks-per-core", 0, kVal, kWarn, "NTASKS_PER_CORE", "cores are not told apart"}},
    {"br", {"ntasks-per-gpu", 0, kVal, kNot, "NTASKS_PER_GPU", "give --ntasks"}},
    {"br", {"ntasks-per-node", 0, kVal, kYes, "NTASKS_PER_NODE", "the tasks, where --ntasks is not given"}},
    {"br", {"ntasks-per-socket", 0, kVal, kWarn, "", "nodes are not told apart by sockets"}},
    {"br", {"open-mode", 0, kVal, kYes, "OPEN_MODE", "`append` or `truncate` (the default)"}},
    {"b",  {"output", 'o', kVal, kYes, "OUTPUT", "the file of stdout: %j %J %A %a %x %u %N %n %t %s %%, `%4j`; `none`"}},
    {"r",  {"output", 'o', kVal, kYes, "STDOUTMODE", "the file of stdout: %j %J %A %a %x %u %N %n %t %s %%, `%4j`; `none`"}},
    {"br", {"overcommit", 'O', kNo, kWarn, "OVERCOMMIT", "each task has its cores"}},
    {"r",  {"overlap", 0, kNo, kWarn, "OVERLAP", "steps of a job share all of it"}},
    {"br", {"oversubscribe", 's', kNo, kWarn, "", "each job has its cores"}},
    {"b",  {"parsable", 0, kNo, kYes, "", "prints the number alone"}},
    {"br", {"partition", 'p', kVal, kYes, "PARTITION", "the pool; one"}},
    {"br", {"power", 0, kVal, kWarn, "POWER", "power is not set"}},
    {"br", {"prefer", 0, kVal, kWarn, "", "labels are required or not looked at"}},
    {"r",  {"preserve-env", 'E', kNo, kWarn, "", "the environment is passed on"}},
    {"br", {"priority", 0, kVal, kNot, "", "give --qos, or `scontrol update Priority=` as a lead"}},
    {"br", {"profile", 0, kVal, kWarn, "PROFILE", "nothing samples here"}},
    {"r",  {"prolog", 0, kVal, kNot, "PROLOG", "no program runs before the step"}},
    {"br", {"propagate", 0, kMay, kWarn, "PROPAGATE", "limits of the shell are not passed on"}},
    {"r",  {"pty", 0, kNo, kNot, "", "there is no shell in a job here"}},
    {"br", {"qos", 'q', kVal, kYes, "QOS", "the priority class; `normal` is the default one"}},
    {"br", {"quiet", 'Q', kNo, kYes, "QUIET", "says less"}},
    {"r",  {"quit-on-interrupt", 0, kNo, kWarn, "", "Ctrl-C cancels the job at once"}},
    {"br", {"reboot", 0, kNo, kNot, "", "no node is booted for a job"}},
    {"r",  {"relative", 'r', kVal, kNot, "", "a job has one node"}},
    {"br", {"requeue", 0, kNo, kYes, "REQUEUE", "always so where the job is evicted"}},
    {"br", {"reservation", 0, kVal, kNot, "RESERVATION", "there are no such reservations"}},
    {"r",  {"resv-ports", 0, kMay, kNot, "RESV_PORTS", "give `ports` of a job document"}},
    {"r",  {"send-libs", 0, kMay, kNot, "SEND_LIBS", "no file is copied to the node"}},
    {"br", {"signal", 0, kVal, kYes, "SIGNAL", "the checkpoint signal and, after @, its grace"}},
    {"r",  {"slurmd-debug", 0, kVal, kWarn, "SLURMD_DEBUG", "there is no slurmd"}},
    {"br", {"sockets-per-node", 0, kVal, kNot, "", "nodes are not told apart by sockets"}},
    {"br", {"spread-job", 0, kNo, kWarn, "SPREAD_JOB", "a job has one node"}},
    {"br", {"switches", 0, kVal, kWarn, "REQ_SWITCH", "a job has one node"}},
    {"r",  {"task-epilog", 0, kVal, kNot, "TASK_EPILOG", "no program runs after a task"}},
    {"r",  {"task-prolog", 0, kVal, kNot, "TASK_PROLOG", "no program runs before a task"}},
    {"b",  {"test-only", 0, kNo, kYes, "", "when it would start; nothing is submitted"}},
    {"r",  {"test-only", 0, kNo, kNot, "TEST_EXEC", "give it to sbatch"}},
    {"br", {"thread-spec", 0, kVal, kNot, "THREAD_SPEC", "no cores are set aside"}},
    {"r",  {"threads", 'T', kVal, kWarn, "THREADS", "one node is asked"}},
    {"br", {"threads-per-core", 0, kVal, kWarn, "THREADS_PER_CORE", "cores are not told apart"}},
    {"br", {"time", 't', kVal, kYes, "TIMELIMIT", "`time_limit`, in whole minutes"}},
    {"br", {"time-min", 0, kVal, kWarn, "", "the limit is --time"}},
    {"br", {"tmp", 0, kVal, kWarn, "", "disk is not counted"}},
    {"br", {"tres-per-task", 0, kVal, kNot, "", "give --gpus-per-task"}},
    {"br", {"uid", 0, kVal, kNot, "", "a job runs as its user"}},
    {"r",  {"unbuffered", 'u', kNo, kWarn, "UNBUFFEREDIO", "output comes as it is written"}},
    {"br", {"use-min-nodes", 0, kNo, kYes, "USE_MIN_NODES", "always so"}},
    {"br", {"verbose", 'v', kNo, kWarn, "DEBUG", "there is no more to say"}},
    {"b",  {"wait", 'W', kNo, kYes, "WAIT", "waits, and exits with the job's code"}},
    {"r",  {"wait", 'W', kVal, kWarn, "WAIT", "all tasks are waited for"}},
    {"br", {"wait-all-nodes", 0, kVal, kYes, "WAIT_ALL_NODES", "always so"}},
    {"br", {"wckey", 0, kVal, kWarn, "WCKEY", "usage is kept by queue and user"}},
    {"r",  {"whole", 0, kNo, kYes, "WHOLE", "always so"}},
    {"b",  {"wrap", 0, kVal, kYes, "", "the script is this line for sh"}},
    {"r",  {"x11", 0, kMay, kNot, "", "no display is passed on"}},
    {"br", {"help", 'h', kNo, kYes, "", "where the options are told"}},
    {"br", {"usage", 0, kNo, kYes, "", "the same"}},
    {"br", {"version", 'V', kNo, kYes, "", "the release of Slurm that is followed"}},
});

constexpr auto kSqueueOptions = std::to_array<Option>({
    {"accounts", 'A', kVal, kYes, "", "jobs of these queues and of all below"},
    {"all", 'a', kNo, kYes, "", "always so"},
    {"array", 'r', kNo, kYes, "", "a line for each element of an array"},
    {"array-unique", 0, kNo, kYes, "", "always so for elements that run"},
    {"clusters", 'M', kVal, kNot, "", "there is one cluster"},
    {"federation", 0, kNo, kWarn, "", "there is one cluster"},
    {"Format", 'O', kVal, kYes, "", "fields by name, `name:[.][width][suffix]`"},
    {"format", 'o', kVal, kYes, "", "fields by letter, `%[.][width]letter`; also SQUEUE_FORMAT"},
    {"help", 0, kNo, kYes, "", "where the options are told"},
    {"hide", 0, kNo, kYes, "", "always so"},
    {"iterate", 'i', kVal, kNot, "", "give `berth jobs --watch`"},
    {"job", 'j', kMay, kYes, "", "these jobs: `7`, `7_3`, joined by commas"},
    {"jobs", 0, kMay, kYes, "", "the same"},
    {"json", 0, kNo, kNot, "", "give `berth jobs -o json`"},
    {"licenses", 'L', kVal, kNot, "", "there are no licenses"},
    {"local", 0, kNo, kYes, "", "always so"},
    {"long", 'l', kNo, kYes, "", "with the time limit"},
    {"me", 0, kNo, kYes, "", "jobs of the user that asks"},
    {"name", 'n', kVal, kYes, "", "jobs of these names"},
    {"noconvert", 0, kNo, kWarn, "", "memory is shown in the largest unit"},
    {"nodelist", 'w', kVal, kYes, "", "jobs that run on these nodes: `n1,n[3-5]`"},
    {"nodes", 0, kVal, kYes, "", "the same"},
    {"noheader", 'h', kNo, kYes, "", "no titles"},
    {"partitions", 'p', kVal, kYes, "", "jobs of these pools"},
    {"priority", 'P', kNo, kWarn, "", "a job has one pool"},
    {"qos", 'q', kVal, kYes, "", "jobs of these priority classes"},
    {"reservation", 'R', kVal, kNot, "", "there are no such reservations"},
    {"sibling", 0, kNo, kWarn, "", "there is one cluster"},
    {"sort", 'S', kVal, kYes, "", "by fields, `-` for descending (P,t,-p)"},
    {"start", 0, kNo, kNot, "", "give `berth why ID`"},
    {"states", 't', kVal, kYes, "", "jobs in these states; all"},
    {"steps", 's', kMay, kNot, "", "steps are not listed"},
    {"usage", 0, kNo, kYes, "", "as Slurm says it"},
    {"user", 'u', kVal, kYes, "", "jobs of these users"},
    {"users", 0, kVal, kYes, "", "the same"},
    {"verbose", 'v', kNo, kWarn, "", "there is no more to say"},
    {"version", 'V', kNo, kYes, "", "the release of Slurm that is followed"},
    {"yaml", 0, kNo, kNot, "", "give `berth jobs -o yaml`"},
});

constexpr auto kScancelOptions = std::to_array<Option>({
    {"account", 'A', kVal, kYes, "ACCOUNT", "jobs of this queue and of all below"},
    {"batch", 'b', kNo, kWarn, "BATCH", "a signal goes to all processes of the job"},
    {"ctld", 0, kNo, kYes, "CTLD", "always so"},
    {"full", 'f', kNo, kYes, "FULL", "always so"},
    {"help", 0, kNo, kYes, "", "where the options are told"},
    {"hurry", 'H', kNo, kWarn, "HURRY", "there are no burst buffers"},
    {"interactive", 'i', kNo, kYes, "INTERACTIVE", "asks before each job"},
    {"clusters", 'M', kVal, kNot, "", "there is one cluster"},
    {"me", 0, kNo, kYes, "", "jobs of the user that asks"},
    {"name", 'n', kVal, kYes, "NAME", "jobs of this name"},
    {"jobname", 0, kVal, kYes, "", "the same"},
    {"nodelist", 'w', kVal, kYes, "", "jobs that run on these nodes: `n1,n[3-5]`"},
    {"partition", 'p', kVal, kYes, "PARTITION", "jobs of this pool"},
    {"qos", 'q', kVal, kYes, "QOS", "jobs of this priority class"},
    {"quiet", 'Q', kNo, kYes, "", "says nothing of jobs that are over"},
    {"reservation", 'R', kVal, kNot, "", "there are no such reservations"},
    {"sibling", 0, kVal, kNot, "", "there is one cluster"},
    {"signal", 's', kVal, kYes, "", "sends a signal; KILL cancels the job"},
    {"state", 't', kVal, kYes, "STATE", "PENDING, RUNNING or SUSPENDED"},
    {"usage", 0, kNo, kYes, "", "where the options are told"},
    {"user", 'u', kVal, kYes, "USER", "jobs of this user"},
    {"verbose", 'v', kNo, kYes, "VERBOSE", "says what is cancelled"},
    {"version", 'V', kNo, kYes, "", "the release of Slurm that is followed"},
    {"wckey", 0, kVal, kNot, "WCKEY", "there are no such keys"},
});

constexpr auto kSinfoOptions = std::to_array<Option>({
    {"all", 'a', kNo, kYes, "", "always so"},
    {"clusters", 'M', kVal, kNot, "", "there is one cluster"},
    {"dead", 'd', kNo, kYes, "", "nodes that do not respond alone"},
    {"exact", 'e', kNo, kWarn, "", "nodes are grouped by pool and state"},
    {"federation", 0, kNo, kWarn, "", "there is one cluster"},
    {"Format", 'O', kVal, kYes, "", "fields by name, `name:[.][width][suffix]`"},
    {"format", 'o', kVal, kYes, "", "fields by letter, `%[.][width]letter`; also SINFO_FORMAT"},
    {"help", 0, kNo, kYes, "", "where the options are told"},
    {"hide", 0, kNo, kYes, "", "always so"},
    {"iterate", 'i', kVal, kNot, "", "give `berth nodes --watch`"},
    {"json", 0, kNo, kNot, "", "give `berth nodes -o json`"},
    {"list-reasons", 'R', kNo, kNot, "", "give `berth nodes`"},
    {"local", 0, kNo, kYes, "", "always so"},
    {"long", 'l', kNo, kYes, "", "with more fields"},
    {"noconvert", 0, kNo, kYes, "", "always so"},
    {"Node", 'N', kNo, kYes, "", "a line for each node"},
    {"nodes", 'n', kVal, kYes, "", "these nodes: `n1,n[3-5]`"},
    {"noheader", 'h', kNo, kYes, "", "no titles"},
    {"partition", 'p', kVal, kYes, "", "these pools"},
    {"reservation", 'T', kNo, kNot, "", "there are no such reservations"},
    {"responding", 'r', kNo, kYes, "", "nodes that respond alone"},
    {"sort", 'S', kVal, kNot, "", "the order is that of pools and states"},
    {"states", 't', kVal, kYes, "", "nodes in these states"},
    {"summarize", 's', kNo, kYes, "", "a line for each pool"},
    {"usage", 0, kNo, kYes, "", "where the options are told"},
    {"verbose", 'v', kNo, kWarn, "", "there is no more to say"},
    {"version", 'V', kNo, kYes, "", "the release of Slurm that is followed"},
    {"yaml", 0, kNo, kNot, "", "give `berth nodes -o yaml`"},
});

constexpr auto kSacctOptions = std::to_array<Option>({
    {"accounts", 'A', kVal, kYes, "", "jobs of these queues and of all below"},
    {"allclusters", 'L', kNo, kWarn, "", "there is one cluster"},
    {"allocations", 'X', kNo, kYes, "", "jobs without their steps"},
    {"allusers", 'a', kNo, kYes, "", "jobs of all users that may be seen"},
    {"array", 0, kNo, kWarn, "", "elements that wait are one line"},
    {"associations", 'x', kVal, kNot, "", "give --accounts"},
    {"batch-script", 'B', kNo, kNot, "", "give `berth job ID -o yaml`"},
    {"brief", 'b', kNo, kYes, "", "JobID, State, ExitCode"},
    {"cluster", 0, kVal, kNot, "", "there is one cluster"},
    {"clusters", 'M', kVal, kNot, "", "there is one cluster"},
    {"completion", 'c', kNo, kNot, "", "there is one history"},
    {"constraints", 'C', kVal, kNot, "", "give --partition"},
    {"delimiter", 0, kVal, kYes, "", "between the fields of -p and -P"},
    {"duplicates", 'D', kNo, kWarn, "", "give `berth job ID` for all attempts"},
    {"endtime", 'E', kVal, kYes, "", "jobs submitted before"},
    {"env-vars", 0, kNo, kNot, "", "give `berth job ID -o yaml`"},
    {"federation", 0, kNo, kWarn, "", "there is one cluster"},
    {"file", 'f', kVal, kNot, "", "there is one history"},
    {"flags", 'F', kVal, kNot, "", "jobs have no such flags"},
    {"format", 'o', kVal, kYes, "", "fields by name, `name%[-]width`; ALL; also SACCT_FORMAT"},
    {"gid", 'g', kVal, kNot, "", "give --user"},
    {"group", 0, kVal, kNot, "", "give --user"},
    {"help", 'h', kNo, kYes, "", "where the options are told"},
    {"helpformat", 'e', kNo, kYes, "", "the names of all fields"},
    {"jobs", 'j', kVal, kYes, "", "these jobs: `7`, `7_3`, joined by commas"},
    {"json", 0, kNo, kNot, "", "give `berth jobs --all -o json`"},
    {"local", 0, kNo, kYes, "", "always so"},
    {"long", 'l', kNo, kNot, "", "give --format"},
    {"name", 0, kVal, kYes, "", "jobs of these names"},
    {"ncpus", 'I', kVal, kNot, "", "give --format=ncpus"},
    {"nnodes", 'i', kVal, kNot, "", "give --format=nnodes"},
    {"noconvert", 0, kNo, kWarn, "", "memory is shown in the largest unit"},
    {"nodelist", 'N', kVal, kYes, "", "jobs that ran on these nodes: `n1,n[3-5]`"},
    {"noheader", 'n', kNo, kYes, "", "no titles"},
    {"parsable", 'p', kNo, kYes, "", "fields between bars, with one at the end"},
    {"parsable2", 'P', kNo, kYes, "", "fields between bars"},
    {"partition", 'r', kVal, kYes, "", "jobs of these pools"},
    {"qos", 'q', kVal, kYes, "", "jobs of these priority classes"},
    {"reason", 'R', kVal, kNot, "", "give --format=reason"},
    {"starttime", 'S', kVal, kYes, "", "jobs that lived at or after; today 00:00"},
    {"state", 's', kVal, kYes, "", "jobs in these states"},
    {"timelimit-max", 'K', kVal, kNot, "", "give --format=timelimit"},
    {"timelimit-min", 'k', kVal, kNot, "", "give --format=timelimit"},
    {"truncate", 'T', kNo, kNot, "", "times are shown as they are"},
    {"uid", 0, kVal, kYes, "", "jobs of these users"},
    {"units", 0, kVal, kNot, "", "memory is shown in the largest unit"},
    {"usage", 'U', kNo, kYes, "", "where the options are told"},
    {"user", 'u', kVal, kYes, "", "jobs of these users"},
    {"verbose", 'v', kNo, kWarn, "", "there is no more to say"},
    {"version", 'V', kNo, kYes, "", "the release of Slurm that is followed"},
    {"wckeys", 'W', kVal, kNot, "", "there are no such keys"},
    {"whole-hetjob", 0, kMay, kWarn, "", "there are no such jobs"},
    {"yaml", 0, kNo, kNot, "", "give `berth jobs --all -o yaml`"},
});

constexpr auto kScontrolOptions = std::to_array<Option>({
    {"all", 'a', kNo, kYes, "", "always so"},
    {"clusters", 'M', kVal, kNot, "", "there is one cluster"},
    {"details", 'd', kNo, kWarn, "", "there is no more to say"},
    {"federation", 0, kNo, kWarn, "", "there is one cluster"},
    {"future", 'F', kNo, kWarn, "", "there are no such nodes"},
    {"help", 'h', kNo, kYes, "", "where the commands are told"},
    {"hide", 0, kNo, kYes, "", "always so"},
    {"local", 0, kNo, kYes, "", "always so"},
    {"oneliner", 'o', kNo, kYes, "", "one line for each job"},
    {"quiet", 'Q', kNo, kYes, "", "always so"},
    {"sibling", 0, kNo, kWarn, "", "there is one cluster"},
    {"uid", 'u', kVal, kNot, "", "a command is its user's"},
    {"usage", 0, kNo, kYes, "", "where the commands are told"},
    {"verbose", 'v', kNo, kWarn, "", "there is no more to say"},
    {"version", 'V', kNo, kYes, "", "the release of Slurm that is followed"},
});
// clang-format on

std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

bool has_variables(Tool tool) { return tool == Tool::kSbatch || tool == Tool::kSrun || tool == Tool::kScancel; }

std::string option_line(Tool tool, const Option& option) {
  std::string names = "`--" + std::string(option.name) + "`";
  if (option.letter != 0) names = "`-" + std::string(1, option.letter) + "` " + names;
  std::string variable;
  for (const std::string& one : variables_of(tool, option)) variable += (variable.empty() ? "`" : " `") + one + "`";
  return "| " + names + " | " + (has_variables(tool) ? variable + " | " : "") + std::string(name_of(option.held)) +
         " | " + cell(option.says) + " |\n";
}

}  // namespace

std::vector<Option> options_of(Tool tool) {
  const auto copied = [](std::span<const Option> options) {
    return std::vector<Option>(options.begin(), options.end());
  };
  switch (tool) {
    case Tool::kSqueue:
      return copied(kSqueueOptions);
    case Tool::kScancel:
      return copied(kScancelOptions);
    case Tool::kSinfo:
      return copied(kSinfoOptions);
    case Tool::kSacct:
      return copied(kSacctOptions);
    case Tool::kScontrol:
      return copied(kScontrolOptions);
    case Tool::kSbatch:
    case Tool::kSrun:
      break;
  }
  std::vector<Option> options;
  for (const JobOption& one : kJobOptions) {
    if (one.tools.find(tool == Tool::kSbatch ? 'b' : 'r') != std::string_view::npos) options.push_back(one.option);
  }
  return options;
}

std::vector<std::string> variables_of(Tool tool, const Option& option) {
  const std::string prefix = tool == Tool::kSrun ? "SLURM_" : tool == Tool::kScancel ? "SCANCEL_" : "SBATCH_";
  std::vector<std::string> names;
  std::string_view rest = option.variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string name(rest.substr(0, end));
    const bool is_whole = name.starts_with("SRUN_") || name.starts_with("SLURMD_");
    names.push_back(is_whole ? name : prefix + name);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

std::string option_pages() {
  std::string text;
  for (const Tool tool : kTools) {
    text += (text.empty() ? "" : "\n") + std::string("### ") + std::string(name_of(tool)) + "\n\n";
    text += has_variables(tool) ? "| option | variable | | |\n|---|---|---|---|\n" : "| option | | |\n|---|---|---|\n";
    for (const Option& option : options_of(tool)) text += option_line(tool, option);
  }
  return text;
}

}  // namespace berth::slurm
