// All nodes, and whose jobs are on them, kept current: an event about a job makes the nodes asked for again that had it or
// have it now.

import { get, getAll } from './api';
import type { BerthEvent, Job, JobSummary, Node } from './types';

const kMostOneByOne = 64;

export class FleetState {
  nodes = $state.raw<Node[]>([]);
  loaded = $state(false);
  loadedSoFar = $state(0);
  queueOf = new Map<number, string>();
  version = $state(0); // grows with every change

  async load(): Promise<void> {
    let soFar = 0;
    const [nodes] = await Promise.all([
      getAll<Node>('/v1/nodes', {}, (items) => {
        soFar += items.length;
        this.loadedSoFar = soFar;
        if (!this.loaded) this.nodes = [...this.nodes, ...items];
      }),
      this.#jobs('running'),
      this.#jobs('stopping'),
    ]);
    this.nodes = nodes;
    this.loaded = true;
    this.version += 1;
  }

  async #jobs(phase: string): Promise<void> {
    await getAll<JobSummary>(`/v1/jobs?phase=${phase}`, {}, (items) => {
      for (const job of items) this.queueOf.set(job.id, job.queue);
    });
  }

  // Returns whether everything has to be loaded again.
  static isAboutNodes(event: BerthEvent): boolean {
    return (
      event.kind.startsWith('node-') ||
      event.kind.startsWith('maintenance') ||
      event.kind === 'gpu-health-changed' ||
      event.kind === 'foreign-use-changed' ||
      event.kind === 'cluster-configured'
    );
  }
  static isAboutJobs(event: BerthEvent): boolean {
    return (
      typeof event.job === 'number' &&
      [
        'attempt-started',
        'attempt-ended',
        'attempt-grew',
        'attempt-shrunk',
        'nominated',
        'nomination-withdrawn',
        'stop-cancelled',
      ].includes(event.kind)
    );
  }

  async refresh(jobs: Set<number>): Promise<void> {
    const names = new Set<string>();
    for (const node of this.nodes) {
      if (node.gpus.some((gpu) => gpu.nominated > 0 || gpu.jobs.some((job) => jobs.has(job)))) names.add(node.name);
    }
    for (const id of jobs) {
      const job = await get<Job>(`/v1/jobs/${id}`).catch(() => null);
      if (!job) continue;
      this.queueOf.set(id, job.queue);
      for (const node of job.nodes) names.add(node);
      if (names.size > kMostOneByOne) break;
    }
    if (names.size > kMostOneByOne) return this.load();
    const fresh = new Map<string, Node>();
    for (const name of names) fresh.set(name, await get<Node>(`/v1/nodes/${encodeURIComponent(name)}`));
    this.nodes = this.nodes.map((node) => fresh.get(node.name) ?? node);
    this.version += 1;
  }
}
