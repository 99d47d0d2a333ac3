// The line of a queue: by priority, then by age. The list of the API is sorted by priority only. Behind it stand the jobs
// that may not be asked yet: held ones, and those that wait for a time or for another job.

import type { JobSummary } from './types';

const kAside = new Set(['held', 'earliest-start', 'dependency', 'dependency-never', 'parent']);

export function standsAside(job: JobSummary): boolean {
  return job.held || kAside.has(job.reason ?? '');
}

export function inLine(waiting: JobSummary[]): JobSummary[] {
  return waiting.toSorted(
    (a, b) =>
      Number(standsAside(a)) - Number(standsAside(b)) ||
      b.priority - a.priority ||
      (a.waiting_since < b.waiting_since ? -1 : a.waiting_since > b.waiting_since ? 1 : a.id - b.id),
  );
}

// For each place in the line, how many GPUs those before it ask for.
export function gpusAhead(line: JobSummary[]): number[] {
  let sum = 0;
  return line.map((job) => {
    const ahead = sum;
    sum += job.gpus;
    return ahead;
  });
}
