// The list of jobs: pages of GET /v1/jobs, loaded as they are wanted, and kept current job by job as events tell of
// changes. Live jobs come first, in the order asked for; finished ones follow, newest first.

import { get, Problem, sayError, withQuery } from './api';
import type { BerthEvent, JobSummary, Page, Phase } from './types';

export type SortKey = 'id' | 'submitted' | 'priority' | 'queue' | 'user' | 'gpus';
export const kSortKeys: SortKey[] = ['id', 'submitted', 'priority', 'queue', 'user', 'gpus'];

export interface JobFilter {
  queue: string;
  user: string;
  parent?: string; // the service or array that they are of
  phase: Phase | '';
  finished: boolean; // also those that have finished
  sort: string; // a SortKey, with - before it turned round
}

const kPage = 200;
const kMostOneByOne = 30; // more changed jobs than that: the list is loaded again
const kAtOnce = 6;

export function matches(job: JobSummary, filter: JobFilter): boolean {
  if (filter.queue !== '' && job.queue !== filter.queue && !job.queue.startsWith(`${filter.queue}/`)) return false;
  if (filter.user !== '' && job.user !== filter.user) return false;
  if (filter.parent && String(job.parent) !== filter.parent) return false;
  if (filter.phase !== '') return job.phase === filter.phase;
  return filter.finished || job.phase !== 'finished';
}

export function comparator(sort: string): (a: JobSummary, b: JobSummary) => number {
  const down = sort.startsWith('-');
  const key = (down ? sort.slice(1) : sort) as SortKey;
  const way = down ? -1 : 1;
  return (a, b) => {
    const x = a[key];
    const y = b[key];
    const order = x < y ? -1 : x > y ? 1 : a.id - b.id;
    return way * order;
  };
}

// Puts a changed job where it belongs. `reach` is whether everything of the list was loaded: if not, a job behind the last
// one loaded is left for its page.
export function place(jobs: JobSummary[], job: JobSummary, filter: JobFilter, complete: boolean): JobSummary[] {
  const others = jobs.filter((one) => one.id !== job.id);
  if (!matches(job, filter)) return others;
  const compare = comparator(filter.sort);
  const firstFinished = others.findIndex((one) => one.phase === 'finished');
  const liveEnd = firstFinished < 0 ? others.length : firstFinished;
  let at = liveEnd;
  if (job.phase !== 'finished') {
    let low = 0;
    while (low < at) {
      const middle = (low + at) >> 1;
      if (compare(others[middle]!, job) < 0) low = middle + 1;
      else at = middle;
    }
  } else if (jobs.length === others.length + 1 && jobs.find((one) => one.id === job.id)?.phase === 'finished') {
    at = jobs.findIndex((one) => one.id === job.id); // it stays where it is
  }
  if (at === others.length && !complete) return others;
  return [...others.slice(0, at), job, ...others.slice(at)];
}

export class JobList {
  jobs = $state.raw<JobSummary[]>([]);
  complete = $state(false);
  loading = $state(true);
  error = $state('');
  seq = $state(0);

  #filter: JobFilter = { queue: '', user: '', phase: '', finished: false, sort: '-id' };
  #cursor = '';
  #generation = 0;
  #busy = false;
  #changed = new Set<number>();
  #patching = false;

  // Begins anew with another filter.
  start(filter: JobFilter): void {
    this.#filter = filter;
    this.#generation += 1;
    this.#busy = false;
    this.#cursor = '';
    this.complete = false;
    this.loading = true;
    void this.more();
  }

  // The next page, unless it is under way or there is none.
  async more(): Promise<void> {
    if (this.#busy || this.complete) return;
    const generation = this.#generation;
    this.#busy = true;
    const first = this.#cursor === '';
    try {
      const page = await this.#page(this.#cursor, first ? kPage : 1000);
      if (generation !== this.#generation) return;
      const known = new Set(first ? [] : this.jobs.map((job) => job.id));
      this.jobs = [...(first ? [] : this.jobs), ...page.items.filter((job) => !known.has(job.id))];
      this.#cursor = page.next_cursor ?? '';
      this.complete = page.next_cursor === null;
      this.seq = page.seq;
      this.error = '';
    } catch (error) {
      if (generation !== this.#generation) return;
      this.error = sayError(error);
      if (first) this.jobs = [];
      this.complete = error instanceof Problem;
    } finally {
      if (generation === this.#generation) {
        this.#busy = false;
        this.loading = false;
      }
    }
  }

  // Loads all that was loaded again.
  async reload(): Promise<void> {
    const generation = this.#generation;
    const wanted = Math.max(kPage, this.jobs.length);
    const jobs: JobSummary[] = [];
    let cursor: string | null = '';
    while (cursor !== null && jobs.length < wanted) {
      const page: Page<JobSummary> = await this.#page(cursor, Math.min(1000, wanted - jobs.length));
      jobs.push(...page.items);
      cursor = page.next_cursor;
      this.seq = page.seq;
    }
    if (generation !== this.#generation || this.#busy) return;
    this.jobs = jobs;
    this.#cursor = cursor ?? '';
    this.complete = cursor === null;
    this.error = '';
  }

  // Takes the news of events: the jobs that they are about are asked for again.
  events(events: BerthEvent[]): void {
    for (const event of events) {
      if (typeof event.job === 'number') this.#changed.add(event.job);
      if (typeof event.preemptor === 'number') this.#changed.add(event.preemptor);
    }
    void this.#patch();
  }

  #page(cursor: string, limit: number): Promise<Page<JobSummary>> {
    const { phase, finished, ...asked } = this.#filter;
    return get(withQuery('/v1/jobs', { ...asked, phase, finished: phase === '' && finished, limit, cursor }));
  }

  async #patch(): Promise<void> {
    if (this.#patching || this.#changed.size === 0) return;
    this.#patching = true;
    const generation = this.#generation;
    const ids = [...this.#changed];
    this.#changed.clear();
    try {
      if (ids.length > kMostOneByOne) await this.reload();
      else {
        while (ids.length > 0) {
          const answers = await Promise.all(
            ids.splice(0, kAtOnce).map((id) => get<JobSummary>(`/v1/jobs/${id}`).catch(() => null)),
          );
          if (generation !== this.#generation) return;
          for (const job of answers) if (job) this.jobs = place(this.jobs, job, this.#filter, this.complete);
        }
      }
    } catch {
      // The stream of events says it when the server is gone, and then everything is loaded again.
    } finally {
      setTimeout(() => {
        this.#patching = false;
        void this.#patch();
      }, 1000);
    }
  }
}
