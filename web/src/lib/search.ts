// Free search in the list of jobs: every word has to be in the job's name, user, queue, number, state or reason.

import type { JobSummary } from './types';
import { stateDetail } from './words';

export function found(job: JobSummary, search: string): boolean {
  const text =
    `${job.id} ${job.name} ${job.user} ${job.queue} ${job.phase} ${job.outcome ?? ''} ${job.reason ?? ''} ${job.class} ${stateDetail(job)}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
