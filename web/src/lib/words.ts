// The codes of the API in plain words (docs/reasons.md, docs/job-states.md).

import type { BerthEvent, JobSummary } from './types';

const kReasons: Record<string, string> = {
  none: 'starts in the next cycle',
  held: 'held by a user',
  'earliest-start': 'its earliest start has not come',
  dependency: 'waits for another job',
  'dependency-never': 'never: the job it waits for ended otherwise',
  parent: 'its replicas or elements run',
  'array-limit': 'as many elements run as allowed',
  'quota-max': 'a ceiling of its queues is reached',
  'quota-lent-out': 'idle GPUs are kept back by a lending limit',
  'user-limit': 'a limit per user is used up',
  budget: 'a budget is used up',
  grant: 'a grant is used up or has ended',
  'behind-queue-head': 'the first job of its queue goes first',
  'would-delay-reservation': 'free GPUs are reserved for a job before it',
  'waits-for-victims': 'others are leaving to make room for it',
  'insufficient-resources': 'not enough is free now',
  fragmented: 'enough is free, but in pieces',
  topology: 'enough is free, but not close together',
  affinity: 'no free place near, or away from, the jobs it names',
  ports: 'another job has a port it needs',
  numa: 'not enough in few enough NUMA domains',
  'trust-domain': 'another trust domain runs there',
  maintenance: 'a maintenance window begins too soon',
  'no-eligible-node': 'never: no node allows it',
  containers: 'never: too few nodes run containers',
  'never-fits': 'never: no set of nodes could hold it',
};

export function reasonWords(code: string): string {
  return kReasons[code] ?? code;
}

export const kNever = new Set(['dependency-never', 'no-eligible-node', 'containers', 'never-fits']);

const kCauses: Record<string, string> = {
  reclaim: 'another queue reclaimed what it is guaranteed',
  preempt: 'a job of higher priority took its place',
  consolidate: 'moved, so that another job fits',
  drain: 'its node was drained',
  maintenance: 'maintenance of its node',
  'spot-notice': 'the provider took its node back',
  'node-lost': 'its node was lost',
  'time-limit': 'its time limit was over',
  user: 'a user cancelled it',
  'task-failed': 'one of its tasks failed',
  shrink: 'it gave back some tasks',
  move: 'an operator moved it',
};

export function causeWords(cause: string): string {
  return kCauses[cause] ?? cause;
}

// What a job is doing, in a few words.
export function stateDetail(job: JobSummary): string {
  if (job.phase === 'pending') {
    if (job.held) return kReasons.held!;
    return job.reason ? reasonWords(job.reason) : '';
  }
  if (job.phase === 'stopping' && job.stop) return causeWords(job.stop.cause);
  if (job.phase === 'running') return job.within === false ? 'borrowed' : '';
  return '';
}

const kPlainEvents: Record<string, string> = {
  'job-submitted': 'submitted',
  'attempt-started': 'started',
  'task-started': 'task began to run',
  'task-exited': 'task ended',
  'attempt-ended': 'attempt ended',
  'job-finished': 'finished',
  'job-requeued': 'waits again',
  'stop-began': 'asked to stop',
  'stop-forced': 'being killed',
  'stop-cancelled': 'may stay after all',
  nominated: 'nominated: places are kept while others leave',
  'reservation-made': 'a start was reserved',
  'reservation-dropped': 'the reserved start was dropped',
  'charge-promoted': 'now within its guarantee',
  'checkpoint-reported': 'saved its work',
  'cycle-ran': 'the scheduler decided',
  'starts-sought': 'starts were sought for blocked jobs',
  'node-registered': 'node joined',
  'cluster-configured': 'a configuration was put into force',
};

export function eventWords(event: BerthEvent): string {
  const words = [kPlainEvents[event.kind] ?? event.kind.replaceAll('-', ' ')];
  if (typeof event.attempt === 'number' && event.attempt > 1) words.push(`attempt ${event.attempt}`);
  if (typeof event.task === 'number') words.push(`task ${event.task}`);
  if (typeof event.cause === 'string') words.push(causeWords(event.cause));
  if (typeof event.outcome === 'string') words.push(event.outcome);
  if (typeof event.preemptor === 'number') words.push(`for job ${event.preemptor}`);
  if (Array.isArray(event.victims)) words.push(`leaving: ${event.victims.join(', ')}`);
  if (typeof event.step === 'number') words.push(`step ${event.step}`);
  if (typeof event.decisions === 'number') words.push(`${event.decisions} decisions`);
  if (typeof event.message === 'string' && event.message !== '') words.push(event.message);
  return words.join(' · ');
}
