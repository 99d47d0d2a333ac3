// How much was allocated over time, from the meter: GET /v1/usage for each of a few stretches of time. Of the whole
// cluster, or of one queue with those below it.

import { get, withQuery } from './api';
import type { UsageReport } from './types';

export interface Moment {
  from: string;
  to: string;
  allocatedPct: number; // of all GPU time there was
  idlePct: number;
  downPct: number;
  withinSeconds: number;
  borrowedSeconds: number;
}

// Of the queue at `path`; the empty path is the whole cluster. Null: there were no GPUs yet.
export function momentOf(report: UsageReport, path = ''): Moment | null {
  if (path === '' && report.capacity_gpu_seconds <= 0) return null;
  const rows = report.items.filter((row) => path === '' || row.queue === path || row.queue.startsWith(`${path}/`));
  const sum = (kind: string): number =>
    rows.filter((row) => row.kind === kind).reduce((all, row) => all + row.gpu_seconds, 0);
  const used = sum('within') + sum('borrowed');
  const capacity = report.capacity_gpu_seconds;
  const share = (seconds: number): number => (capacity > 0 ? (seconds / capacity) * 100 : 0);
  return {
    from: report.from,
    to: report.to,
    allocatedPct: share(used),
    idlePct: share(report.idle_gpu_seconds),
    downPct: share(report.down_gpu_seconds),
    withinSeconds: sum('within'),
    borrowedSeconds: sum('borrowed'),
  };
}

// The GPUs that were used on average.
export function meanGpus(moment: Moment, seconds: number): number {
  const length = (Date.parse(moment.to) - Date.parse(moment.from)) / 1000;
  return length > 0 ? Math.round((seconds / length) * 100) / 100 : 0;
}

// The stretches that `hours` before `now` are cut into: at whole multiples of their length, so that they stay the same.
export function cut(now: number, hours: number, parts: number): { from: number; to: number }[] {
  const length = (hours * 3_600_000) / parts;
  const end = Math.floor(now / length) * length;
  return Array.from({ length: parts }, (_, index) => ({
    from: end - (parts - index) * length,
    to: end - (parts - index - 1) * length,
  }));
}

export async function loadHistory(
  now: number,
  hours: number,
  parts: number,
  known: Map<number, Moment>,
  path = '',
): Promise<Moment[]> {
  const moments: Moment[] = [];
  for (const { from, to } of cut(now, hours, parts)) {
    let moment = known.get(from);
    if (!moment || Date.parse(moment.to) !== to) {
      const report = await get<UsageReport>(
        withQuery('/v1/usage', { from: new Date(from).toISOString(), to: new Date(to).toISOString() }),
      );
      moment = momentOf(report, path) ?? undefined;
      if (moment) known.set(from, { ...moment, to: new Date(to).toISOString() });
    }
    if (moment) moments.push(moment);
  }
  return moments;
}
