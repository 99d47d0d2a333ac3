// What the API answers (docs/api.md, /openapi.json): the members that the page reads.

export type Phase = 'pending' | 'running' | 'stopping' | 'finished';
export type Outcome = 'succeeded' | 'failed' | 'preempted' | 'node-lost' | 'time-limit' | 'cancelled' | 'start-failed';

export interface Stop {
  cause: string;
  preemptor?: number;
  began: string;
  deadline: string;
  acknowledged: boolean;
  forced: boolean;
}

export interface JobSummary {
  id: number;
  name: string;
  queue: string;
  user: string;
  kind: string;
  class: string;
  priority: number;
  priority_class: string;
  phase: Phase;
  outcome?: Outcome;
  held: boolean;
  submitted: string;
  waiting_since: string;
  started?: string;
  finished?: string;
  code?: number;
  gpu_seconds: number;
  gpus: number;
  tasks_total: number;
  size?: { tasks: number; gpus: number; since: string };
  attempt: number;
  attempts: number;
  failures: number;
  reason?: string;
  children?: { total: number; running: number; waiting: number; ended: number; failed: number };
  parent?: number;
  index?: number;
  within?: boolean;
  checkpoint?: { step: number; at?: string };
  stop?: Stop;
  reservation?: { start: string; first_start: string }; // while it waits: at the latest
  nodes: string[];
}

export interface Task {
  task: number;
  group: string;
  node: string;
  gpus: string[];
  slices?: string;
  phase: 'bound' | 'running' | 'exited';
  code?: number;
  reason?: string;
}

export interface Attempt {
  attempt: number;
  waited_from: string;
  started: string;
  ended: string;
  outcome: Outcome;
  cause?: string;
  preemptor?: number;
  code: number;
  message: string;
  reserved_start?: string;
  slip_s?: number;
  checkpoint_step: number;
  gpus_on: { node: string; gpus: number }[];
}

export interface Job extends JobSummary {
  estimate?: { seconds: number; source: string; text: string };
  slip_s?: number;
  nomination?: { cause: string; victims: number[] };
  simulated_gpus?: boolean;
  gpu_level?: string;
  isolation?: string;
  driven?: { pct: number; gpus: number; minutes: number };
  tasks: Task[];
  past: Attempt[];
  spec: Record<string, unknown>;
}

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
  seq: number;
}

export interface Remedy {
  kind: string;
  by: 'owner' | 'operator';
  taken: boolean;
  text: string;
  patch?: Record<string, unknown>; // of the job's document: a JSON merge patch
}

export interface Forecast {
  id: number;
  phase: Phase;
  started: number;
  within?: boolean;
  places: { node: string; tasks: number; gpus: number }[];
  victims: { job: number; user: string; queue: string; cause: string; gpus: number; unsaved_s: number }[];
  victims_not_shown: number;
  start?: string;
  warnings: string[];
  why?: Explanation;
}

export interface Explanation {
  id: number;
  phase: Phase;
  code: string;
  never: boolean;
  headline: string;
  quota: string;
  line?: { number: number; exact: boolean; can_start_before: number; text: string };
  start?: { bound: string; at?: string; text: string };
  preemption: string;
  remedies: Remedy[];
  details: string[];
}

export interface Amounts {
  gpus?: number;
  cpus?: number;
  memory_mib?: number;
  models: Record<string, number>;
}

export interface Queue {
  path: string;
  parent: string;
  depth: number;
  leaf: boolean;
  weight: number;
  policy: string;
  trust_domain: string;
  guaranteed: Amounts;
  effective: Amounts;
  max: Amounts;
  lending_limit: Amounts;
  max_per_user: { jobs?: number; gpus?: number; submitted?: number };
  attained_service?: unknown;
  users?: { user: string; jobs: number; gpus: number; submitted: number }[];
  usage: Amounts;
  within: Amounts;
  borrowed_gpus: number;
  burst_gpus: number;
  nominated_gpus: number;
  pending: number;
  running: number;
  dominant_share: string;
}

export interface Gpu {
  index: number;
  uuid: string;
  model: string;
  memory_mib: number;
  healthy: boolean;
  foreign: boolean;
  fenced?: boolean;
  fault?: string;
  simulated: boolean;
  free: number;
  nominated: number;
  slices?: string;
  driven_pct?: number;
  jobs: number[];
}

export interface Node {
  name: string;
  pool: string;
  cell: string;
  status: 'ready' | 'unknown' | 'lost';
  cordoned: boolean;
  draining: boolean;
  why: string;
  maintenance: { from: string; to: string }[];
  labels: Record<string, string>;
  taints: { key: string; value: string; effect: string }[];
  topology: string[];
  cpus: number;
  cpus_free: number;
  memory_mib: number;
  memory_free_mib: number;
  gpus: Gpu[];
  gpus_total: number;
  gpus_free: number;
  tasks: { job: number; task: number }[];
}

export interface Cluster {
  name: string;
  version: string;
  config_version: number;
  seq: number;
  time: string;
  simulated_gpus: boolean;
  warnings: string[];
  nodes: number;
  gpus: number;
  gpus_free: number;
  gpus_allocated: number;
  gpus_unhealthy: number;
  gpus_foreign: number;
  jobs_pending: number;
  jobs_running: number;
  jobs_stopping: number;
  allocated_pct: number;
  gpus_stranded: number;
  fragmentation_alarm: boolean;
}

export interface BerthEvent {
  seq: number;
  time: string;
  kind: string;
  job?: number;
  node?: number;
  [member: string]: unknown;
}

export interface EventPage {
  items: BerthEvent[];
  next_from: number;
  seq: number;
}

export interface Advice {
  code: string;
  pitfall: string;
  severity: 'warning' | 'note';
  about: 'cluster' | 'queue' | 'pool' | 'job';
  name?: string;
  text: string;
  remedy: string;
}

export interface AdviceReport {
  time: string;
  items: Advice[];
  left_out: { code: string; count: number }[];
  complete: boolean;
  seq: number;
}

export interface CapacityKind {
  pool: string;
  gpu_model: string;
  gpus: number;
  nodes: number;
  releasable: number;
  idle: { node: string; since: string; kept_for: string; job?: number; cordoned: boolean }[];
  wanted?: { nodes: number; jobs: number[]; gpus: number };
}

export interface CapacityReport {
  time: string;
  idle_for_s: number;
  items: CapacityKind[];
  complete: boolean;
  seq: number;
}

export interface UsageReport {
  from: string;
  to: string;
  items: { queue: string; user: string; gpu_model: string; kind: 'within' | 'borrowed'; gpu_seconds: number }[];
  idle_gpu_seconds: number;
  down_gpu_seconds: number;
  capacity_gpu_seconds: number;
}

// Jobs that a change would touch; those that the reader may not see are counted.
export interface PreviewedJobs {
  jobs: number[];
  not_shown: number;
}

export interface QueuePreview {
  revision: string;
  limits: { key: string; value: string; before: string }[];
  become_borrowed: PreviewedJobs;
  become_guaranteed: PreviewedJobs;
  above_max: boolean;
  start: PreviewedJobs;
  wait: PreviewedJobs;
  stop: PreviewedJobs;
}

export interface Config {
  version: number;
  config: {
    [member: string]: unknown;
    cluster?: string;
    gpu_models?: Record<string, unknown>;
    priority_classes?: Record<string, number | { value: number; default?: boolean }>;
    topology?: string[];
  };
  yaml: string;
}
