// How much was allocated over time, from the meter: GET /v1/usage for each of a few stretches of time.

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

export function momentOf(report: UsageReport): Moment | null {
  if (report.capacity_gpu_seconds <= 0) return null;
  const sum = (kind: string): number =>
    report.items.filter((row) => row.kind === kind).reduce((all, row) => all + row.gpu_seconds, 0);
  const used = sum('within') + sum('borrowed');
  const share = (seconds: number): number => (seconds / report.capacity_gpu_seconds) * 100;
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
): Promise<Moment[]> {
  const moments: Moment[] = [];
  for (const { from, to } of cut(now, hours, parts)) {
    let moment = known.get(from);
    if (!moment || Date.parse(moment.to) !== to) {
      const report = await get<UsageReport>(
        withQuery('/v1/usage', { from: new Date(from).toISOString(), to: new Date(to).toISOString() }),
      );
      moment = momentOf(report) ?? undefined;
      if (moment) known.set(from, { ...moment, to: new Date(to).toISOString() });
    }
    if (moment) moments.push(moment);
  }
  return moments;
}
