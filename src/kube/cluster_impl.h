#pragma once
// The parts of Cluster: nodes, groups of pods, tasks, and requests, each in a source of its own.

#include <boost/json/object.hpp>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/cluster.h"
#include "kube/device.h"
#include "kube/node_object.h"
#include "kube/node_rule.h"
#include "kube/owner_object.h"
#include "kube/pod_object.h"
#include "kube/suspension.h"
#include "kube/volume_object.h"
#include "kube/workload.h"

namespace berth::kube {

// What the key of a group begins with: that of a pod alone, and a uid follows; that of a Job's pods, and its namespace
// and uid follow; that of a PodGroup's pods, and its namespace and name follow. The last two are ids of the owners,
// too. With the namespace nobody joins the gang of another namespace by naming its owner.
inline constexpr std::string_view kAlone = "pod/";
inline constexpr std::string_view kOfJob = "job/";
inline constexpr std::string_view kOfPodGroup = "podgroup/";

// The core names its tasks within this time after a start. A pod that is bound as any other task is a stray from then
// on.
inline constexpr std::int64_t kUnclaimedMs = 30'000;

// A node whose kubelet did not admit a pod, or that attaches no more volumes, is avoided for this time.
inline constexpr std::int64_t kAvoidMs = 60'000;

class Cluster::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {}

  void observe(Kind kind, const boost::json::object& object, bool deleted);
  void begin_list(Kind kind) { seen_[kind].clear(); }
  void end_list(Kind kind);
  void denied(Kind kind) { denied_.insert(kind); }
  void perform(const Effect& effect);
  void submitted(const std::string& key, JobId job);
  void refused(const std::string& key, const std::string& why);
  void finished(JobId job, bool cancelled);
  void waits(JobId job, const std::string& why);
  void answered(std::uint64_t id, int status, std::string_view body);
  void believe(std::optional<StampRules> rules);
  void tick();
  Output take();
  void at(Timestamp now);
  std::optional<PodPlace> place_of(JobId job, std::uint32_t attempt, std::uint32_t task) const;
  std::vector<std::string> warnings() const { return {warnings_.begin(), warnings_.end()}; }

 private:
  struct Usage {
    std::int64_t cpu_milli = 0;
    std::int64_t memory_mib = 0;
    Devices devices;
    Devices countables;
    bool operator==(const Usage&) const = default;
  };
  struct Pod {
    PodObject object;
    std::string group;
    std::string owner_group;                      // id of the object that owns it (cluster.cc); empty: none
    std::int32_t role = 0;                        // place of its role in the gang
    std::int32_t rank = -1;                       // in the gang; -1: not known
    std::optional<TaskKey> assigned;              // the task that it is, or that it is being bound as
    std::string attached_on;                      // the node where its volumes are counted; empty: none
    std::string foreign_on;                       // the node where its use is counted as foreign; empty: it is not
    Usage foreign;                                // what is counted there
    std::string told;                             // the last text of its condition
    Timestamp seen;                               // first
    Timestamp delete_asked = Timestamp::never();  // strays
    bool own = false;                             // it was made for a task of a job of berth's own
    Timestamp over_since = Timestamp::never();    // own pods, once their end is durable
    Timestamp stuck_since = Timestamp::never();   // since when its container does not start, as it is known here
  };
  struct Node {
    NodeObject object;
    std::optional<NodeSpec> registered;  // since this start
    bool is_known = false;               // the core has it, and it is not lost
    NodeStatus status = NodeStatus::kReady;
    ForeignReport foreign;  // as it was told; its GPUs stand for those that foreign pods use
    Timestamp fewer_since = Timestamp::never();
    Timestamp attached_full_at = Timestamp::never();  // a start has failed for one volume too many
    Timestamp refused_at = Timestamp::never();        // its kubelet did not admit a pod
  };
  struct Group {
    std::string name;
    std::int32_t size = 0;  // pods that it needs; 0: not known yet
    std::set<std::string> pods;
    JobId job = JobId::none();
    std::set<JobId> former;    // jobs that were replaced and are not over: their nodes are out of contact
    std::string key;           // of its last submission
    std::size_t tasks = 0;     // pods of that; 0: not known since the start
    bool from_before = false;  // its job is older than this start: the core tells later whether its tasks run
    bool submitting = false;
    bool cancelled = false;
    Timestamp waits_since = Timestamp::never();  // its pods wait for something that the core knows nothing of
    bool ownerless = false;                      // its owner is gone: nobody makes new pods
    Timestamp refused_at = Timestamp::never();
    Timestamp deserted_since = Timestamp::never();  // it has a job, but no pod that waits or runs
    std::size_t claiming = 0;                       // of its pods have claims
    Timestamp renewed_at = Timestamp::never();  // its job is given up; its pods are submitted anew when they are whole
    std::string start_failure;                  // why the last start failed; empty: it did not
  };
  // kWaitsForGang: it has a pod, which is bound when all tasks of its gang have one and their claims have volumes.
  enum class TaskPhase { kWaitsForPod, kWaitsForGang, kBinding, kBound, kExited };
  struct Task {
    StartTask start;
    TaskPhase phase = TaskPhase::kWaitsForPod;
    std::string pod;
    Timestamp since;
    bool own = false;        // its pod is made for it
    bool missing = false;    // own: its pod is not there, and is to be made again
    std::uint64_t look = 0;  // own: the request whose answer says whether its pod is there; answers to others are old
    Timestamp denied_since = Timestamp::never();  // the API server does not let berth start it
    bool started_told = false;
    bool stopping = false;
    bool marked = false;  // its pod says that it is disrupted
    std::int64_t grace_s = 0;
    Timestamp delete_asked = Timestamp::never();
    std::optional<PodEnd> given_up;  // it is deleted, and this is its end
    std::optional<TaskExited> exit;
    Timestamp exit_told;
    std::map<std::string, Timestamp> selected_at;  // ids of claims: when the node was last written into them
    std::set<std::string> selected;                // ids of claims that were seen with the node of this task
    std::string volumes_wait;                      // what its volumes wait for
    // Its end, where disruption budgets are heard (cluster_evictions.cc).
    bool hears_budgets = false;
    bool granted = false;  // its pod is leaving
    int refusals = 0;      // in a row
    Timestamp ask_at;      // not before
    Timestamp refused_since = Timestamp::never();
    std::string refusal;  // as it was told
  };
  enum class Asked { kBind, kLook, kMark, kDelete, kTell, kCreate, kServe, kSuspend, kSelect, kEvict };
  struct Call {
    Asked asked = Asked::kTell;
    TaskKey task;
    std::string claim = {};  // kSelect: its id
  };

  // Requests of one kind in one namespace that the API server denies for want of a right.
  struct Denial {
    Timestamp since;
    Timestamp last;
  };

  struct Suspended {
    Suspension object;
    bool asked = false;  // the last `suspend` that was asked for
    Timestamp asked_at = Timestamp::never();
    Timestamp refused_at = Timestamp::never();
    std::string told;  // the last text of its Events
  };
  // Why pods are not submitted.
  struct Refusal {
    std::string reason;
    std::string text;
  };
  // What an Event is about.
  struct Subject {
    std::string api_version, kind, name_space, name, uid;
  };

  // nodes
  void observe_node(const boost::json::object& object, bool deleted);
  void node_gone(const std::string& name);
  void tell_of_known_node(const KnownNode& known);
  void update_node(const std::string& name, Node& node);
  std::set<std::string> choose_foreign_gpus(const std::string& name, const Node& node) const;
  ForeignReport foreign_of(const std::string& name, const Node& node) const;
  NodeSpec spec_of(const Node& node) const;
  std::set<std::string> gpus_in_use(const std::string& node) const;
  void tell_status(const std::string& name, Node& node, NodeStatus status, const std::string& why);
  bool runs_tasks(const std::string& node) const;
  Devices foreign_devices(const std::string& name, const Node& node) const;
  bool is_unsettled(const std::string& name, const Node& node) const;

  // groups of pods
  bool carries_its_task(const std::string& uid, const Pod& pod) const;
  void observe_pod(const boost::json::object& object, bool deleted);
  static void forget_wish(Pod& pod);
  void pod_gone(const std::string& uid);
  void regroup(const std::string& uid, Pod& pod);
  std::string group_of(const Pod& pod, std::int32_t& size, std::string& name) const;
  void leave_group(const std::string& uid, Pod& pod);
  void erase_if_over(const std::string& group_key);
  static std::string id_of_these(const std::vector<Pod*>& pods);
  void consider(const std::string& group_key);
  void watch_desertion(Group& group);
  std::string group_of_submission(const std::string& key) const;
  void learn_from_start(const StartTask& start);
  bool runs_pods(JobId job) const;
  void explain_wait(const std::string& key, Group& group);
  std::string why_it_waits(const std::string& key, const Group& group, const std::vector<Pod*>& pods) const;
  bool is_peopled(const Group& group) const;
  static std::string id_of_job(const Pod& pod);
  static bool waits_to_be_bound(const Pod& pod);
  static bool comes_before(const Pod& a, const Pod& b);
  std::vector<Pod*> waiting_pods(const Group& group);
  std::optional<JobSpec> job_of(const Group& group, const std::vector<Pod*>& pods);
  std::optional<JobSpec> spec_of(const std::string& name, const std::vector<Pod*>& pods, Refusal& why) const;
  std::string queue_of(const Pod& pod, std::string& why) const;
  static std::string user_of_namespace(const Pod& pod);
  std::string user_of(const Pod& pod) const;
  std::string why_not_one_user(const std::vector<Pod*>& pods) const;
  void observe_priority_class(const std::string& name, const boost::json::object& object, bool deleted);
  std::string class_of(const Pod& pod) const;
  std::string why_not_its_class(const Pod& pod) const;
  TaskGroup task_group_of(const Pod& pod) const;
  static std::vector<std::string> more_images_of(const std::vector<Pod*>& pods, const JobSpec& job);
  static SubmitJob submission_of(JobSpec job, const std::string& key, const std::vector<Pod*>& pods);
  std::string put_terms(const std::vector<Pod*>& pods, JobSpec& job) const;
  std::string level_of(const std::string& key) const;
  Usage foreign_use(const Pod& pod) const;
  void count_foreign(Pod& pod);
  void observe_owner(const std::string& id, Workload workload, bool deleted);
  void owner_gone(const std::string& id);
  std::string group_of_member(const Membership& member, std::int32_t& size, std::string& name) const;
  void rank(Pod& pod) const;
  static const std::string& role_in_owner(const Pod& pod);
  bool is_there_for_its_owner(const Pod& pod) const;
  const Workload* growing_owner(const Pod& pod) const;
  std::map<std::string, std::int64_t> lacks_of(const Workload& workload, const std::string& owner) const;
  std::int64_t needed_by(const Group& group, const Pod& pod) const;
  std::vector<Pod*> gang_of(const std::string& group_key);
  void split_off(const std::vector<Pod*>& pods);
  bool runs_whole(const Group& group) const;
  bool needs_no_pod(const TaskKey& key) const;
  static std::string text_of_owner(const Pod& pod);

  // suspended objects
  static bool is_admitted_by_suspension(const Group& group);
  void observe_suspension(Kind kind, const std::string& id, const boost::json::object& object, bool deleted);
  void settle_suspension(const std::string& id);
  void submit_suspended(const std::string& id, Suspended& known);
  static std::vector<Pod> pods_of_templates(const std::string& id, const Suspended& known,
                                            std::vector<std::int32_t>& counts);
  void send_suspend(Suspended& known, bool suspend, const std::string& cancelled);
  void cancel_suspended(const std::string& id, JobId job);
  bool leaves_by_suspension(const TaskKey& key);
  void tell_owner(Suspended& known, const std::string& reason, const std::string& text);

  // volumes
  static std::string id_of_claim(const Pod& pod, const PodClaim& claim);
  void observe_volumes(Kind kind, const std::string& id, const boost::json::object& object);
  void volumes_gone(Kind kind, const std::string& id);
  void touch_claim(const std::string& id);
  void touch_claims_of(const PodObject& pod);
  void index_claims(const std::string& uid, const PodObject& pod);
  void forget_claims(const std::string& uid, const PodObject& pod);
  ClaimVerdict verdict_of(const Pod& pod, const PodClaim& claim) const;
  std::string used_by_another(const Pod& pod, const PodClaim& claim) const;
  std::string why_volumes_wait(const Pod& pod) const;
  std::string why_volumes_wait(const std::vector<Pod*>& pods) const;
  std::string mark_of(const std::vector<Pod*>& pods) const;
  void renew_if_outdated(const std::string& key, Group& group);
  bool is_outdated(const std::string& key, const Group& group);
  bool is_short(const Group& group);
  std::string silent_node_of(const Group& group) const;
  void replace_if_lost(const std::string& key, Group& group);
  void settle_gangs();
  void settle_gang_of(JobId job);
  bool prepare_volumes(const TaskKey& key, Task& task, std::map<std::string, TaskKey>& choosers);
  bool select_node(const TaskKey& key, Task& task, const std::string& id);
  void select_answered(const TaskKey& key, Task& task, const std::string& claim, int status, std::string_view body);
  void fail_volumes(const TaskKey& key, Task& task, const std::string& why);
  void tick_gang(const TaskKey& key, Task& task);

  // attach limits
  void limit_attaching(const std::string& node, AttachLimits limits);
  std::map<std::string, std::int64_t> attaching_of(const Pod& pod) const;
  std::set<std::string> attached_to(const std::string& node, const std::string& driver) const;
  bool can_attach(const Node& node, const std::string& driver, std::int64_t count) const;
  Labels attaching_labels(const Pod& pod) const;
  void note_attaching(const Pod& pod);
  void count_attached(Pod& pod);
  void count_attached(const Pod& pod, const std::string& node, bool there);
  bool attaches_too_many(const TaskKey& key, Task& task, const Pod& pod);

  // node rules
  std::vector<NodeRule> rules_of(const Pod& pod) const;
  Labels labels_of_node(const Node& node) const;
  bool allows_node(const Pod& pod, const Node& node) const;

  // tasks
  void start(const StartTask& effect);
  void stop(const TaskKey& key, std::int64_t grace_s, bool hears);
  void forget(const TaskKey& key);
  bool adopt(const TaskKey& key, Task& task);
  void try_bind(const TaskKey& key, Task& task);
  bool may_be(const Pod& pod, const Task& task) const;
  std::string what_is_beyond(const TaskKey& key, const Task& task) const;
  void tell_what_is_beyond(Pod& pod, const Task& task);
  Pod* pod_for(const TaskKey& key, const Task& task);
  void follow(const std::string& uid, Pod& pod);
  void exit_task(const TaskKey& key, Task& task, const PodEnd& seen);
  void bind_answered(const TaskKey& key, Task& task, int status, std::string_view body);
  void look_answered(const TaskKey& key, Task& task, int status, std::string_view body);
  void mark_answered(const TaskKey& key, Task& task, int status, std::string_view body);
  bool is_denied_for_good(Asked asked, const Task& task, int status, std::string_view body);
  void delete_answered(const TaskKey& key, Task& task, int status);
  bool waits_out_denial(Task& task, int status, std::string_view body) const;
  void fail_start(const TaskKey& key, Task& task, const std::string& why);
  void fail_admission(const TaskKey& key, Task& task, const Pod& pod);
  void note_start_failure(const TaskKey& key, const std::string& why);
  bool has_lost_its_pod(const TaskKey& key) const;
  void tell_unwound(const TaskKey& key);
  void release_pod(Task& task);
  void bind(const TaskKey& key, Task& task, Pod& pod);
  void tick_task(const TaskKey& key, Task& task);

  // evictions
  static bool hears_budgets(const std::optional<StopCause>& cause, bool forced);
  void leave(const TaskKey& key, Task& task, const Pod& pod);
  void ask_evictions(JobId job);
  void evict_answered(const TaskKey& key, Task& task, int status, std::string_view body);
  void tell_refusal(const TaskKey& key, Task& task, const Pod& pod, const std::string& why);
  void withdraw_refusal(Task& task);
  void cancel_eviction(const TaskKey& key, Task& task);
  void withdraw_evictions(const TaskKey& key);
  void send_eviction(const TaskKey& key, Task& task, const Pod& pod);

  // own tasks
  bool is_own(const PodObject& pod) const;
  std::string own_path(const Task& task) const;
  void create(const TaskKey& key, Task& task);
  void create_answered(const TaskKey& key, Task& task, int status, std::string_view body);
  void made(const TaskKey& key, Task& task, const std::string& uid);
  void send_parts(const TaskKey& key, const Task& task);
  void send_save_token(const TaskKey& key, const Task& task);
  void send_service(const TaskKey& key, const Task& task);
  void serve_answered(const TaskKey& key, int status, std::string_view body);
  void serve_again();
  void look_for_own(const TaskKey& key, Task& task);
  void own_look_answered(const TaskKey& key, Task& task, int status, std::string_view body);
  void tick_own(const TaskKey& key, Task& task);
  void watch_stuck(Pod& pod);
  void sweep_own();

  // requests
  std::uint64_t send(Request request, Asked asked, const TaskKey& task);
  void send_binding(const TaskKey& key, const Task& task, const Pod& pod);
  void send_look(const TaskKey& key, const Pod& pod);
  void send_delete(const TaskKey& key, Task& task, const Pod& pod);
  void send_stray_delete(Pod& pod);
  void send_mark(const TaskKey& key, const Pod& pod);
  void send_event(const Subject& subject, const std::string& reason, const std::string& message);
  void tell(Pod& pod, const std::string& reason, const std::string& text, bool with_event);

  void open_if_ready();
  void open();
  void warn(const std::string& text);
  void command(Command command) { output_.commands.push_back(std::move(command)); }
  void gone(Kind kind, const std::string& id);

  Options options_;
  Timestamp now_;               // without the pauses in which it was not called
  std::int64_t paused_ms_ = 0;  // all of these
  bool open_ = false;           // each kind was listed once
  Timestamp opened_;
  std::set<Kind> listed_;
  std::map<Kind, std::set<std::string>> seen_;  // since begin_list
  std::map<std::string, Node> nodes_;           // by name
  std::set<std::string> unread_nodes_;          // names of nodes that could not be read
  std::map<std::string, Usage> foreign_;        // by node
  std::map<std::string, NamespaceTerms> namespaces_;
  std::optional<StampRules> stamps_;  // by which stamps are believed; nothing: none is
  bool stamps_known_ = false;
  std::set<std::string> default_classes_;   // priority classes that the API server writes into pods that name none
  std::map<std::string, Workload> owners_;  // by the id of the object (cluster.cc)
  std::map<std::string, Suspended> suspensions_;           // by the id of the object
  std::map<std::string, std::set<std::string>> by_owner_;  // uids of pods
  std::map<std::string, Pod> pods_;                        // by uid
  std::map<std::string, Group> groups_;
  std::map<JobId, std::string> group_of_job_;
  std::map<TaskKey, Task> tasks_;
  std::set<std::pair<TaskKey, std::string>> bound_;  // uids of pods that carry this key
  std::set<TaskKey> waiting_tasks_;
  std::map<std::string, ClaimObject> claims_;                               // by NAMESPACE/NAME
  std::map<std::string, VolumeObject> volumes_;                             // by name
  std::map<std::string, StorageClassObject> classes_;                       // by name
  std::map<std::string, std::set<std::string>> claim_users_;                // uids of pods that name the claim
  std::map<std::string, AttachLimits> attach_limits_;                       // by node
  std::map<std::string, std::int64_t> limited_drivers_;                     // on how many nodes
  std::map<std::string, std::pair<std::string, std::int64_t>> attachings_;  // driver and count by the label for them
  std::map<std::string, std::set<std::string>> claim_pods_on_;              // uids of pods with claims, by node
  std::set<Kind> denied_;                                                   // kinds that may not be read
  std::set<JobId> unsettled_;                                               // jobs whose gang may have become whole
  std::map<TaskKey, Timestamp> serve_at_;  // tasks whose pod lacks its Service or Secret: when they are sent again
  std::set<JobId> evicting_;               // jobs whose pods are to be asked to leave again
  std::vector<Effect> held_;               // effects from before `open`
  std::map<std::uint64_t, Call> calls_;
  std::map<std::pair<Asked, std::string>, Denial> denials_;  // by namespace
  std::uint64_t next_id_ = 1;
  Output output_;
  std::deque<std::string> warnings_;
};

}  // namespace berth::kube
