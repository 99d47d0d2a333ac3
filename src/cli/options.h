#pragma once
// What a command line says, as plain structs: command_line.cc fills them, and run() of each (command/commands.h) does
// what they ask. Amounts, times and ids that need a reading of their own stay text here and are read by the command.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace berth::cli {

enum class Format { kTable, kWide, kJson, kYaml, kCsv, kHtml };
// Whether a list has all its columns.
inline bool has_all_columns(Format format) { return format == Format::kWide || format == Format::kCsv; }

// How to find the server; empty: as the environment says (connection.h).
struct ConnectionOptions {
  std::string server = {};
  std::string token_file = {};
  std::string context = {};  // empty: the current one
  std::string ca = {};       // authorities that the server's certificate may be of; empty: those of the system
  std::string cert = {};     // of the client
  std::string cert_key = {};
};

// A column of -o custom= or csv=: its heading, and which member of an item it shows (columns.h).
struct ShownColumn {
  std::string title;
  std::string path;
};

struct ShowOptions {
  Format format = Format::kTable;
  bool watch = false;  // again every so many seconds
  std::int64_t every_s = 2;
  std::vector<ShownColumn> columns = {};  // of a table or CSV; empty: the command's own
};

// A job as a file, flags, or both; the flags win. `values` goes along with job_flags(): what each flag was given.
struct JobOptions {
  std::string file;
  std::vector<std::vector<std::string>> values;
  std::vector<std::string> command;
  std::string key;
  std::string exported = {};  // --export: ALL, NONE, or names and NAME=VALUE joined by commas
};

struct SubmitOptions {
  JobOptions job;
  bool dry_run = false;   // say what would become of it, and submit nothing
  bool estimate = false;  // say also what it would cost, and submit nothing
  Format format = Format::kTable;
};
struct RunOptions {
  JobOptions job;
  bool quiet = false;
  bool terminal = false;  // -it: an interactive job, whose terminal is attached
};
// A command in a task of a job.
struct ExecOptions {
  std::string id;
  std::int64_t task = 0;
  bool input = false;
  bool terminal = false;
  std::vector<std::string> command = {};
};
// The terminal of an interactive job.
struct AttachOptions {
  std::string id;
};
struct JobsOptions {
  ShowOptions show;
  std::string queue, user, phase, kind, name, node, parent, sort;
  std::string label;         // "team=vision,run=7"
  std::string since, until;  // as parse_when takes them
  bool me = false;           // of the token's subject
  bool all = false;          // finished ones too
  std::int64_t limit = 1000;
  std::string at = {};  // as moment_when takes it, here and below; empty: now
};
struct JobViewOptions {
  ShowOptions show;
  std::string id;
};
struct WhyOptions {
  ShowOptions show;
  std::string id;
  bool verbose = false;
  std::string at = {};
};

// Which jobs an action is for, where none is named.
struct JobSelector {
  std::string queue, user, phase, label, name;
  bool me = false;         // of the token's subject
  bool confirmed = false;  // --yes
  bool any() const { return me || !(queue + user + phase + label + name).empty(); }
};
enum class JobAction { kCancel, kHold, kRelease };
struct JobActionOptions {
  JobAction action = JobAction::kCancel;
  std::vector<std::string> ids;
  JobSelector selector = {};
};
struct PrioritizeOptions {
  std::string id;
  std::string priority;  // a number, or the name of a priority class
  bool dry_run = false;  // say what it would do, and do nothing
  JobSelector selector = {};
};
// Waits until jobs have finished, or run.
struct WaitOptions {
  std::vector<std::string> ids;
  JobSelector selector = {};
  std::string until = "finished";  // or running
  std::string timeout = {};        // "90s"; empty: none
  Format format = Format::kTable;
};
struct MoveOptions {
  Format format = Format::kTable;
  std::string id;
  std::vector<std::string> off;  // nodes; none: all that it is on
  bool lose_work = false;
};
struct LogsOptions {
  std::string id;
  std::int64_t task = 0;
  std::int64_t attempt = 0;   // 0: the current or last one
  std::int64_t tail = -1;     // lines; -1: all
  bool error_stream = false;  // --stderr: as --stream stderr
  std::string stream;         // stdout, stderr; empty: both
  std::string break_glass;    // the reason; empty: none
  bool follow = false;
};
struct QueuesOptions {
  ShowOptions show;
  std::string path;
  bool explain = false;
  std::string at = {};
};
// Users and queues by the GPUs that they have now, and what waits there.
struct TopOptions {
  ShowOptions show;
  std::string queue = {};  // only it and those below it
  std::string by = {};     // user or queue; empty: both
};
struct NodesOptions {
  ShowOptions show;
  std::string name;
  std::string at = {};
};

enum class NodeAction { kCordon, kUncordon, kDrain, kFence };
struct NodeActionOptions {
  NodeAction action = NodeAction::kCordon;
  std::vector<std::string> names;
  bool confirmed = false;     // --yes
  std::string gone_in = {};   // of a drain: "2m"
  bool lose_work = false;     // of a drain: also stop jobs that cannot save
  bool when_idle = false;     // of a drain: let all jobs finish
  std::string deadline = {};  // of a drain: "2h"
  std::string gpu = {};       // of an uncordon: the GPU whose fence is lifted
};
// Windows in which nothing runs on some nodes.
struct MaintenanceOptions {
  ShowOptions show;
  std::string action = "list";  // or add, cancel
  std::string name;
  std::vector<std::string> nodes;  // names, or "pool=P" and "KEY=VALUE"
  std::string from;                // as parse_when takes it; empty: now
  std::string duration;            // "2h"
  std::string reason;
};
// The server's clock, and the word that the wall clock is right.
struct ClockOptions {
  ShowOptions show;
  std::string action = "show";  // or confirm
  bool confirmed = false;       // --yes
};
// Tokens, each with a role at a queue.
struct TokenOptions {
  ShowOptions show;
  std::string action = "list";  // or create, revoke
  std::string name;
  std::string role = "member";
  std::string queue;  // "/": the root
  std::string user;   // empty: the token's name
  std::string expires = "90d";
};
// What a subject may do, asked without trying.
struct AuthOptions {
  ShowOptions show;
  std::string action = "explain";  // or can-i
  std::string verb;
  std::string object;               // a queue, / or a job's number; empty: the root
  std::string subject;              // --as; empty: the user
  std::vector<std::string> groups;  // of --as
  std::string owner;                // of jobs in the queue; empty: the subject's own
};
// Signing in at an identity provider; empty: as the context has it.
struct LoginOptions {
  std::string issuer, client_id, context, scope, resource, audience;
  std::string secret_file, issuer_ca;
  bool client_credentials = false;
  bool server_given = false;  // by --server or $BERTH_SERVER
};
struct LogoutOptions {
  std::string context;
};
// The servers that the user works with.
struct ContextOptions {
  ShowOptions show;
  std::string action = "list";  // or use, set, delete
  std::string name;
  bool server_given = false;  // by --server or $BERTH_SERVER
};
struct WhoamiOptions {
  ShowOptions show;
};
// Which idle nodes could go, and which further nodes would help.
struct CapacityOptions {
  ShowOptions show;
  std::string idle_for;  // "10m"; empty: as the server has it
};
// Which of the usual pitfalls the cluster is in.
struct AdviseOptions {
  ShowOptions show;
};
// The production checklist.
struct DoctorOptions {
  ShowOptions show;
  bool all = false;  // also what is ok
};
struct EventsOptions {
  Format format = Format::kTable;
  bool follow = false;
  std::int64_t from = -1;  // sequence number; -1: the last `tail` events, or from now on
  std::int64_t limit = 0;  // 0: no limit
  std::string kind, job;
};
struct AuditOptions {
  Format format = Format::kTable;
  bool follow = false;
  bool denied = false;
  std::int64_t limit = 0;  // the newest; 0: all
  std::string since = "7 days ago";
  std::string subject, queue, verb;
};
struct UsageOptions {
  ShowOptions show;
  std::string from, to;
  std::string by = {};  // queue, user or job; empty: by queue, user and GPU model
  std::string at = {};
};
struct PricesOptions {
  std::string action = "show";  // or apply, diff
  std::string file;
  Format format = Format::kTable;
};
struct PolicyOptions {
  ShowOptions show;
  std::string action = "show";  // or apply, test
  std::string file;
  std::string queue;         // empty: the root
  std::string last = "30d";  // test: jobs that live or have finished so long ago at most
};
struct BillOptions {
  std::string queue;         // empty: the root
  std::string month;         // empty: the present one
  std::string by;            // empty: queue
  std::string label;         // with by label: its key
  std::string prices;        // file with other prices; empty: those in force
  bool close = false;        // close the month first
  std::string line = {};     // opens this line; empty: none
  std::string after = {};    // with line: where the answer before ended
  std::string correct = {};  // an amount for the month; empty: none
  std::string reason = {};   // with correct
  std::int64_t job = 0;      // with correct; 0: no single one
  std::string key = {};      // with correct: its idempotency key; empty: a random one
  Format format = Format::kTable;
  std::string at = {};
};
// What berth does not measure: storage, egress, energy.
struct QuantitiesOptions {
  std::string action = "list";  // or report
  std::string file;             // report: a document; empty: the one report of the options below
  std::string id = {};
  std::string queue = {};  // list: empty for all
  std::string kind = {};   // likewise
  std::string unit = {};   // empty: that of the prices
  std::int64_t quantity = 0;
  std::string from = {};
  std::string to = {};
  std::string month = {};  // list: empty for all
  Format format = Format::kTable;
};
// A bill as a document.
struct InvoiceOptions {
  std::string queue;  // empty: the root
  std::string month;  // empty: the present one
  std::string form;   // table, json or a document of the server
  std::string at = {};
};
struct ApplyOptions {
  std::string file;
  std::int64_t if_version = -1;  // -1: whatever version is in force
  bool diff = false;             // show what changes, and apply over the version that it was compared with
  Format format = Format::kTable;
};
struct DiffOptions {
  std::string file;
  Format format = Format::kTable;
};
// Documents to check without a server.
struct CheckOptions {
  std::vector<std::string> files;
  std::string kind;  // config, job, prices or issuers; empty: as the keys of each file say
  Format format = Format::kTable;
};
// Limits of a queue, beside the configuration file.
struct QueueChangeOptions {
  std::string action;  // set, undo or changes
  std::string queue;
  std::vector<std::string> settings;  // KEY=VALUE
  std::string until;                  // as parse_when takes it; empty: no lease
  std::string if_revision;            // empty: any
  bool dry_run = false;
  Format format = Format::kTable;
};
// A role that is granted or revoked; or, with `blocked`, all access of a subject.
struct BindOptions {
  bool grant = true;
  std::string subject, role, queue;
  std::string blocked;
  bool lift = false;
  Format format = Format::kTable;
};
struct RolesOptions {
  ShowOptions show;
};
struct ConfigOptions {
  Format format = Format::kYaml;
};
struct CheckpointDoneOptions {
  std::int64_t step = 0;
  std::string job;  // empty: the job that this runs in
  std::int64_t attempt = 0;
};
struct SnapshotOptions {
  Format format = Format::kJson;
};
// The identity of the job that the command runs in, for a service that verifies it.
struct JobTokenOptions {
  ShowOptions show;
  std::string audience;
};
// The keys that identities of jobs are signed with.
struct KeysOptions {
  ShowOptions show;
  std::string action = "list";  // or rotate
  bool withdraw = false;
};
struct StatusOptions {
  ShowOptions show;
};
struct VersionOptions {
  Format format = Format::kTable;
};
struct CompletionOptions {
  std::string shell;
};

using Command =
    std::variant<SubmitOptions, RunOptions, ExecOptions, AttachOptions, JobsOptions, JobViewOptions, WhyOptions,
                 JobActionOptions, PrioritizeOptions, WaitOptions, MoveOptions, LogsOptions, QueuesOptions, TopOptions,
                 NodesOptions, NodeActionOptions, MaintenanceOptions, ClockOptions, TokenOptions, AuthOptions,
                 LoginOptions, LogoutOptions, ContextOptions, WhoamiOptions, CapacityOptions, AdviseOptions,
                 DoctorOptions, EventsOptions, AuditOptions, UsageOptions, PricesOptions, PolicyOptions, BillOptions,
                 QuantitiesOptions, InvoiceOptions, ApplyOptions, DiffOptions, CheckOptions, ConfigOptions,
                 CheckpointDoneOptions, SnapshotOptions, StatusOptions, VersionOptions, CompletionOptions,
                 QueueChangeOptions, BindOptions, RolesOptions, JobTokenOptions, KeysOptions>;

}  // namespace berth::cli
