// The life of a job as stretches of time: waiting, running, and what ended each.

import type { Job, Outcome } from './types';

export interface Stretch {
  kind: 'wait' | 'run';
  from: number; // ms
  to: number;
  attempt: number; // of a wait: the attempt that it waited for
  outcome?: Outcome; // of a run that is over
  open: boolean; // it goes on
}

export function stretches(job: Job, now: number): Stretch[] {
  const all: Stretch[] = [];
  const ms = (iso: string): number => Date.parse(iso);
  for (const past of job.past) {
    if (ms(past.started) > ms(past.waited_from))
      all.push({ kind: 'wait', from: ms(past.waited_from), to: ms(past.started), attempt: past.attempt, open: false });
    all.push({
      kind: 'run',
      from: ms(past.started),
      to: ms(past.ended),
      attempt: past.attempt,
      outcome: past.outcome,
      open: false,
    });
  }
  const running = job.phase === 'running' || job.phase === 'stopping';
  if (running && job.started) {
    const started = ms(job.started);
    if (started > ms(job.waiting_since))
      all.push({ kind: 'wait', from: ms(job.waiting_since), to: started, attempt: job.attempt, open: false });
    all.push({ kind: 'run', from: started, to: Math.max(started, now), attempt: job.attempt, open: true });
  } else if (job.phase === 'pending') {
    const since = Math.max(ms(job.waiting_since), all.at(-1)?.to ?? 0);
    all.push({ kind: 'wait', from: since, to: Math.max(since, now), attempt: job.attempts + 1, open: true });
  }
  return all;
}

// Percent of the whole, so that nothing that happened is too thin to be seen.
export function widths(all: Stretch[], least = 0.6): number[] {
  const whole = all.reduce((sum, one) => sum + (one.to - one.from), 0) || 1;
  const raw = all.map((one) => Math.max(least, ((one.to - one.from) / whole) * 100));
  const sum = raw.reduce((total, width) => total + width, 0) || 1;
  return raw.map((width) => (width / sum) * 100);
}
