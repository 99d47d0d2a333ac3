#include "slurm/job_script.h"

#include <algorithm>

#include "slurm/letter_case.h"
#include "slurm/script.h"

namespace berth::slurm {
namespace {

// What berth tells each task (docs/running.md) in Slurm's names.
constexpr std::string_view kTold = R"(SLURM_JOB_ID=$BERTH_JOB
SLURM_JOBID=$BERTH_JOB
SLURM_JOB_NAME=$BERTH_JOB_NAME
SLURM_JOB_ACCOUNT=$BERTH_QUEUE
SLURMD_NODENAME=$BERTH_NODE
SLURM_JOB_NODELIST=$BERTH_NODE
SLURM_NODELIST=$BERTH_NODE
SLURM_TOPOLOGY_ADDR=$BERTH_NODE
SLURM_JOB_USER=${USER:-$(id -un)}
SLURM_JOB_UID=$(id -u)
SLURM_JOB_GID=$(id -g)
SLURM_TASK_PID=$$
export SLURM_JOB_ID SLURM_JOBID SLURM_JOB_NAME SLURM_JOB_ACCOUNT SLURMD_NODENAME SLURM_JOB_NODELIST SLURM_NODELIST
export SLURM_TOPOLOGY_ADDR SLURM_JOB_USER SLURM_JOB_UID SLURM_JOB_GID SLURM_TASK_PID
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  SLURM_JOB_GPUS=$CUDA_VISIBLE_DEVICES
  export SLURM_JOB_GPUS
fi
if [ "${BERTH_ATTEMPT:-1}" -gt 1 ]; then
  SLURM_RESTART_COUNT=$((BERTH_ATTEMPT - 1))
  export SLURM_RESTART_COUNT
fi
)";

// The n-th number of the array, walked range by range.
std::string array_lines(const ArraySpec& array) {
  std::string text = "_berth_left=$BERTH_ARRAY_INDEX\nSLURM_ARRAY_TASK_ID=\nfor _berth_range in";
  for (const ElementRange& range : array.ranges) {
    text += " " + std::to_string(range.first) + ":" + std::to_string(range.count()) + ":" + std::to_string(range.step);
  }
  return text + R"(; do
  _berth_first=${_berth_range%%:*}
  _berth_rest=${_berth_range#*:}
  if [ "$_berth_left" -lt "${_berth_rest%%:*}" ]; then
    SLURM_ARRAY_TASK_ID=$((_berth_first + _berth_left * ${_berth_rest#*:}))
    break
  fi
  _berth_left=$((_berth_left - ${_berth_rest%%:*}))
done
unset _berth_left _berth_range _berth_first _berth_rest
SLURM_ARRAY_JOB_ID=$BERTH_PARENT
export SLURM_ARRAY_TASK_ID SLURM_ARRAY_JOB_ID
)";
}

// Files are emptied first and then written at their end, so that two streams, or elements, of one file keep what the
// other wrote.
std::string files(const JobRequest& request, bool batch) {
  std::string text;
  if (!request.input.empty()) text += "exec <" + file_word(request, request.input) + " || exit 1\n";
  std::string output = request.output;
  if (output.empty() && batch) output = request.array ? "slurm-%A_%a.out" : "slurm-%j.out";
  for (const std::string& pattern : {request.error, output}) {
    const std::string word = file_word(request, pattern);
    if (!pattern.empty() && !request.append) text += "[ ! -f " + word + " ] || : >" + word + " || exit 1\n";
  }
  if (!request.error.empty()) text += "exec 2>>" + file_word(request, request.error) + " || exit 1\n";
  if (!output.empty())
    text += "exec >>" + file_word(request, output) + (request.error.empty() ? " 2>&1" : "") + " || exit 1\n";
  return text;
}

// A script is read from a file that has no name any more, so that nothing is left behind however the job ends.
std::string start_of_script(const std::string& script) {
  const Interpreter interpreter = interpreter_of(script);
  const std::string program = shell_word(interpreter.program);
  return R"(_berth_script=$(mktemp "${TMPDIR:-/tmp}/slurm_script.XXXXXX") || exit 1
printf %s "$1" > "$_berth_script" || exit 1
exec 9< "$_berth_script" || exit 1
rm -f "$_berth_script"
unset _berth_script
shift
if [ ! -x )" +
         program + R"( ]; then
  printf 'slurmstepd-%s: error: execve(): bad interpreter(%s): No such file or directory\n' "$SLURMD_NODENAME" )" +
         program + R"( >&2
  exit 2
fi
exec )" + program +
         (interpreter.argument.empty() ? "" : " " + shell_word(interpreter.argument)) + " /dev/fd/9 \"$@\"\n";
}

constexpr std::string_view kStep = R"(_berth_tasks=$1
shift
SLURM_STEP_ID=0
SLURM_STEPID=0
SLURM_NTASKS=$_berth_tasks
SLURM_NPROCS=$_berth_tasks
SLURM_STEP_NUM_TASKS=$_berth_tasks
SLURM_STEP_TASKS_PER_NODE=$_berth_tasks
SLURM_STEP_NUM_NODES=1
SLURM_STEP_NODELIST=$SLURM_JOB_NODELIST
SLURM_NODEID=0
export SLURM_STEP_ID SLURM_STEPID SLURM_NTASKS SLURM_NPROCS SLURM_STEP_NUM_TASKS SLURM_STEP_TASKS_PER_NODE
export SLURM_STEP_NUM_NODES SLURM_STEP_NODELIST SLURM_NODEID
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  SLURM_STEP_GPUS=$CUDA_VISIBLE_DEVICES
  export SLURM_STEP_GPUS
fi
_berth_known=1
command -v "$1" >/dev/null 2>&1 || _berth_known=0
_berth_task() {
  SLURM_PROCID=$1
  SLURM_LOCALID=$1
  export SLURM_PROCID SLURM_LOCALID
  shift
  if [ "$_berth_known" = 0 ]; then
    echo "slurmstepd-$SLURMD_NODENAME: error: execve(): $1: No such file or directory" >&2
    exit 2
  fi
  exec "$@"
}
_berth_number=0
_berth_started=
while [ "$_berth_number" -lt "$_berth_tasks" ]; do
  (_berth_task "$_berth_number" "$@") &
  _berth_started="$_berth_started $!"
  _berth_number=$((_berth_number + 1))
done
_berth_number=0
_berth_worst=0
for _berth_pid in $_berth_started; do
  wait "$_berth_pid"
  _berth_code=$?
  _berth_says="srun: error: $SLURMD_NODENAME: task $_berth_number:"
  case $_berth_code in
    0) ;;
    137) echo "$_berth_says Killed" >&2 ;;
    143) echo "$_berth_says Terminated" >&2 ;;
    *) echo "$_berth_says Exited with exit code $_berth_code" >&2 ;;
  esac
  [ "$_berth_code" -le "$_berth_worst" ] || _berth_worst=$_berth_code
  _berth_number=$((_berth_number + 1))
done
exit "$_berth_worst"
)";

// What a variable of an element says, or what stands there for a job that is none. Only a step of a job that runs
// learns that from the variables: a job's own may be left from the job that submitted it.
std::string array_variable(const JobRequest& request, const std::string& name, const std::string& otherwise) {
  if (request.in_job) return "${" + name + ":-" + otherwise + "}";
  return request.array ? "$" + name : otherwise;
}

// As slurmstepd does: a step whose directory is not there runs in /tmp, and says so.
std::string go_to(const std::string& directory) {
  if (directory.empty()) return "";
  const std::string word = shell_word(directory);
  return "cd " + word + R"( 2>/dev/null || {
  printf "slurmstepd-%s: error: couldn't chdir to \`%s': going to /tmp instead\n" "$SLURMD_NODENAME" )" +
         word + " >&2\n  cd /tmp\n}\n";
}

std::string prologue(const JobRequest& request, bool batch) {
  return std::string(kTold) + (request.array ? array_lines(*request.array) : "") + files(request, batch);
}

}  // namespace

std::string shell_word(std::string_view text) {
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? "'\\''" : std::string(1, c);
  return all + "'";
}

bool is_no_file(std::string_view pattern) { return lower_case(pattern) == "none"; }

std::string file_word(const JobRequest& request, const std::string& pattern) {
  if (is_no_file(pattern)) return "/dev/null";
  std::string word;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) word += shell_word(plain);
    plain.clear();
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      plain += pattern[i];
      continue;
    }
    std::size_t end = i + 1;
    while (end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9') ++end;
    const std::string width = pattern.substr(i + 1, std::min<std::size_t>(end - i - 1, 2));
    const char letter = end < pattern.size() ? pattern[end] : '\0';
    std::string value;
    if (letter == 'j' || letter == 'J') value = "$SLURM_JOB_ID";
    if (letter == 'A') value = array_variable(request, "SLURM_ARRAY_JOB_ID", "$SLURM_JOB_ID");
    if (letter == 'a') value = array_variable(request, "SLURM_ARRAY_TASK_ID", "4294967294");
    if (letter == 'N') value = "$SLURMD_NODENAME";
    if (letter == 'u') value = "$SLURM_JOB_USER";
    if (letter == 'x') value = "$SLURM_JOB_NAME";
    if (letter == 'n' || letter == 't') value = "0";
    if (letter == 's') value = "batch";
    if (letter == '%') {
      plain += '%';
    } else if (value.empty()) {
      plain += pattern.substr(i, end - i);  // as Slurm leaves what it does not know
      --end;
    } else {
      flush();
      const bool is_number = letter != 'N' && letter != 'u' && letter != 'x' && letter != 's';
      word += width.empty() || !is_number ? "\"" + value + "\"" : "\"$(printf %0" + width + "d \"" + value + "\")\"";
    }
    i = end;
  }
  flush();
  return word;
}

std::vector<std::string> batch_command(const JobRequest& request, const std::string& script,
                                       const std::vector<std::string>& words) {
  std::vector<std::string> command{"/bin/sh", "-c", prologue(request, true) + start_of_script(script), "slurm_script",
                                   script};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::vector<std::string> step_command(const JobRequest& request, const std::vector<std::string>& command) {
  std::vector<std::string> all{"/bin/sh", "-c", prologue(request, false) + std::string(kStep), "srun",
                               std::to_string(request.tasks())};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

std::vector<std::string> inner_step_command(const JobRequest& request, const std::vector<std::string>& command) {
  std::vector<std::string> all{"/bin/sh", "-c", files(request, false) + go_to(request.directory) + std::string(kStep),
                               "srun", std::to_string(request.tasks())};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

std::vector<std::pair<std::string, std::string>> fixed_variables(const JobRequest& request, const std::string& host) {
  const std::string cpus = std::to_string(request.cpus());
  std::vector<std::pair<std::string, std::string>> all{{"SLURM_CLUSTER_NAME", "berth"},
                                                       {"SLURM_CPUS_ON_NODE", cpus},
                                                       {"SLURM_GTIDS", "0"},
                                                       {"SLURM_JOB_CPUS_PER_NODE", cpus},
                                                       {"SLURM_JOB_NUM_NODES", "1"},
                                                       {"SLURM_JOB_QOS", request.qos.empty() ? "normal" : request.qos},
                                                       {"SLURM_LOCALID", "0"},
                                                       {"SLURM_NNODES", "1"},
                                                       {"SLURM_NODEID", "0"},
                                                       {"SLURM_NODE_ALIASES", "(null)"},
                                                       {"SLURM_PRIO_PROCESS", "0"},
                                                       {"SLURM_PROCID", "0"},
                                                       {"SLURM_SUBMIT_DIR", request.directory},
                                                       {"SLURM_SUBMIT_HOST", host},
                                                       {"SLURM_TASKS_PER_NODE", std::to_string(request.tasks())},
                                                       {"SLURM_TOPOLOGY_ADDR_PATTERN", "node"}};
  const auto add = [&](const char* name, std::int64_t value) { all.emplace_back(name, std::to_string(value)); };
  if (!request.partition.empty()) all.emplace_back("SLURM_JOB_PARTITION", request.partition);
  if (request.ntasks || request.ntasks_per_node) {
    add("SLURM_NTASKS", request.tasks());
    add("SLURM_NPROCS", request.tasks());
  }
  if (request.ntasks_per_node) add("SLURM_NTASKS_PER_NODE", *request.ntasks_per_node);
  if (request.cpus_per_task) add("SLURM_CPUS_PER_TASK", *request.cpus_per_task);
  if (request.memory_mib) add("SLURM_MEM_PER_NODE", *request.memory_mib);
  if (!request.memory_mib && request.memory_per_cpu_mib > 0) add("SLURM_MEM_PER_CPU", request.memory_per_cpu_mib);
  if (request.all_gpus() > 0) add("SLURM_GPUS_ON_NODE", request.all_gpus());
  if (request.array) {
    const auto& ranges = request.array->ranges;
    add("SLURM_ARRAY_TASK_COUNT", request.array->count());
    add("SLURM_ARRAY_TASK_MIN", ranges.front().first);
    add("SLURM_ARRAY_TASK_MAX", ranges.back().last);
    add("SLURM_ARRAY_TASK_STEP", ranges.size() == 1 ? ranges.front().step : 1);
  }
  return all;
}

}  // namespace berth::slurm
