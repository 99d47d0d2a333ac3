// The state at a past moment: what the page reads of it, each with the same event number, so that all of it is of one moment.

import { get, getAll, withQuery } from './api';
import type { BerthEvent, Cluster, EventPage, JobSummary, Node, Page, Queue } from './types';

const kJobsPerPage = 200;

export interface Moment {
  cluster: Cluster;
  queues: Queue[];
  nodes: Node[];
  queueOf: Map<number, string>; // of the jobs that ran then
}

export async function readMoment(seq: number, signal: AbortSignal): Promise<Moment> {
  const at = (path: string): string => withQuery(path, { at: seq });
  // One after the other: the server makes one past state at a time, and the first waits for it.
  const cluster = await get<Cluster>(at('/v1/cluster'), { signal });
  const queues = await get<{ items: Queue[] }>(at('/v1/queues'), { signal });
  const nodes = await getAll<Node>(at('/v1/nodes'), { signal });
  const queueOf = new Map<number, string>();
  for (const phase of ['running', 'stopping']) {
    for (const job of await getAll<JobSummary>(at(`/v1/jobs?phase=${phase}`), { signal }))
      queueOf.set(job.id, job.queue);
  }
  return { cluster, queues: queues.items, nodes, queueOf };
}

// Live jobs of then, the newest first.
export function readJobs(seq: number, cursor: string, signal: AbortSignal): Promise<Page<JobSummary>> {
  return get<Page<JobSummary>>(withQuery('/v1/jobs', { at: seq, sort: '-id', limit: kJobsPerPage, cursor }), {
    signal,
  });
}

type ReadEvent = (seq: number) => Promise<Pick<BerthEvent, 'seq' | 'time'> | undefined>;

export const readEvent: ReadEvent = async (seq) =>
  (await get<EventPage>(withQuery('/v1/events', { from: seq, limit: 1 }))).items[0];

// The last event not after `time`, by halves; 1 if all are after it.
export async function eventAt(time: number, last: number, read: ReadEvent = readEvent): Promise<number> {
  let low = 1;
  let high = Math.max(1, last);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const event = await read(middle);
    if (event && Date.parse(event.time) <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}
