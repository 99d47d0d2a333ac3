// What one can do to jobs, what it will do, and doing it to many, one after the other.

import { Problem, send, sayError } from './api';
import { plural } from './format';
import { may, neededWords, type Identity, type Verb } from './roles';
import type { JobSummary } from './types';

export type Action = 'hold' | 'release' | 'cancel' | 'priority';

export const kActionWords: Record<Action, string> = {
  hold: 'Hold',
  release: 'Release',
  cancel: 'Cancel',
  priority: 'Change priority',
};

const kVerbs: Record<Action, Verb> = {
  hold: 'hold-job',
  release: 'hold-job',
  cancel: 'stop-job',
  priority: 'prioritize-job',
};

// Returns true if the state of the job allows it, and a role of the subject. Without a subject its roles are not asked.
export function allows(action: Action, job: JobSummary, subject?: Identity | null): boolean {
  if (subject !== undefined && !may(subject, kVerbs[action], { queue: job.queue, owner: job.user })) return false;
  if (job.phase === 'finished') return false;
  if (action === 'hold') return job.phase === 'pending' && !job.held;
  if (action === 'release') return job.held;
  return true;
}

// "Hold, Cancel: the role lead or admin at research or above": the actions that the state of the job allows and no role.
export function withheld(job: JobSummary, subject: Identity | null): string[] {
  const byNeed = new Map<string, string[]>();
  for (const action of ['hold', 'release', 'priority', 'cancel'] as const) {
    if (!allows(action, job) || allows(action, job, subject)) continue;
    const needed = neededWords(kVerbs[action], { queue: job.queue });
    byNeed.set(needed, [...(byNeed.get(needed) ?? []), kActionWords[action]]);
  }
  return [...byNeed].map(([needed, actions]) => `${actions.join(', ')}: that takes ${needed}`);
}

// What the action will do, before it is done: one sentence each.
export function consequences(action: Action, jobs: JobSummary[], subject?: Identity | null): string[] {
  const able = jobs.filter((job) => allows(action, job, subject));
  const said: string[] = [];
  const beyond = jobs.filter((job) => allows(action, job)).length - able.length;
  const left = jobs.length - able.length - beyond;
  if (left > 0)
    said.push(`${plural(left, 'job')} of the ${jobs.length} chosen stay as they are: it does not apply to them.`);
  if (beyond > 0)
    said.push(`${plural(beyond, 'job')} of the ${jobs.length} chosen stay as they are: your role does not allow it.`);
  const pending = able.filter((job) => job.phase === 'pending');
  const active = able.filter((job) => job.phase !== 'pending');
  if (action === 'hold' && able.length > 0)
    said.push(`${plural(able.length, 'pending job')} will not start until released. They keep their age.`);
  if (action === 'release' && able.length > 0)
    said.push(`${plural(able.length, 'job')} may start as soon as it is their turn.`);
  if (action === 'priority') {
    if (pending.length > 0) said.push(`${plural(pending.length, 'pending job')} take another place in their queue.`);
    if (active.length > 0)
      said.push(`${plural(active.length, 'running job')} are less, or more, likely to be evicted.`);
  }
  if (action === 'cancel') {
    if (pending.length > 0) said.push(`${plural(pending.length, 'pending job')} are taken off the queue for good.`);
    if (active.length > 0) {
      const held = active.reduce((sum, job) => sum + (job.size?.gpus ?? job.gpus), 0);
      said.push(
        `${plural(active.length, 'running job')} are asked to stop, and give back ${plural(held, 'GPU')}. Work since the last checkpoint is lost.`,
      );
    }
    const parents = able.filter((job) => job.children);
    if (parents.length > 0)
      said.push(
        `Of ${plural(parents.length, 'service or array', 'services or arrays')}, all replicas and elements end too.`,
      );
  }
  return said;
}

export interface Failure {
  job: JobSummary;
  text: string;
}

async function act(action: Action, id: number, priority: number): Promise<void> {
  if (action === 'cancel') await send('DELETE', `/v1/jobs/${id}`);
  else if (action === 'priority') await send('PUT', `/v1/jobs/${id}/priority`, { body: { priority } });
  else await send('POST', `/v1/jobs/${id}/${action}`);
}

// Returns what did not work. Ends at the first answer that is none: the others would find no server either.
export async function actOnAll(
  action: Action,
  jobs: JobSummary[],
  priority: number,
  onProgress: (done: number) => void,
): Promise<Failure[]> {
  const failures: Failure[] = [];
  let done = 0;
  for (const job of jobs) {
    try {
      await act(action, job.id, priority);
    } catch (error) {
      failures.push({ job, text: sayError(error) });
      if (!(error instanceof Problem)) break;
    }
    onProgress((done += 1));
  }
  return failures;
}
