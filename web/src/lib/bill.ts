// Bills: what a queue used in a month of UTC, and what it costs (GET /v1/bill, docs/billing.md).

import { get, Problem, withQuery } from './api';
import { count } from './format';

export interface BillRow {
  name: string; // of the queue, user, job, model, label or kind; empty: what belongs to none, as an idle floor to no job
  job_name?: string;
  floor_used_gpu_milli_ms: number;
  floor_idle_gpu_milli_ms: number;
  floor_lent_gpu_milli_ms: number;
  burst_gpu_milli_ms: number;
  amount: string;
  amount_micro: number;
}

// Thousandths of a GPU times milliseconds.
export interface FleetAccounts {
  gpu_model: string;
  floor_used: number;
  floor_idle: number;
  floor_lent: number;
  burst: number;
  unowned: number;
  drained: number;
  failed: number;
  foreign: number;
  capacity: number;
}

export interface BillLine {
  queue: string;
  kind: string;
  cause: string;
  gpu_model: string;
  slice: string;
  borrower: string;
  user: string;
  job: number;
  job_name: string;
  from: string;
  to: string;
  unit: string;
  quantity: string;
  unit_price: string;
  amount: string;
  amount_micro: number;
  note: string;
}

export interface Bill {
  month: string;
  queue: string;
  from: string;
  to: string;
  currency: string; // empty: no price book is in force
  price_version: number;
  simulated: boolean;
  partial?: boolean; // only the lines that the reader may see
  number: string; // empty: the month is not closed
  hash: string;
  closed?: string;
  items: BillRow[];
  total: string;
  total_micro: number;
  expected_micro: number;
  fleet: FleetAccounts[]; // empty where the reader may not see the whole cluster
  lines?: BillLine[];
  document?: string;
}

export const kGroupings = ['queue', 'user', 'job', 'model', 'kind', 'label'] as const;
export type Grouping = (typeof kGroupings)[number];

export interface BillQuery {
  month: string;
  queue: string;
  by: Grouping;
  label?: string;
  invoice?: 'lines' | 'csv' | 'html' | 'hledger';
}

export const getBill = (query: BillQuery, signal?: AbortSignal): Promise<Bill> =>
  get<Bill>(withQuery('/v1/bill', { ...query }), { signal, timeoutMs: 300_000 });

// Returns true if a bill was refused because no price book is in force yet.
export const isUnpriced = (problem: unknown): boolean => problem instanceof Problem && problem.status === 409;

// The month of UTC that `now` lies in, and the `number` months before it, as 2026-11, newest first.
export function monthsBack(now: number, number: number): string[] {
  const date = new Date(now);
  return Array.from({ length: number + 1 }, (_, back) =>
    new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  );
}

export function monthWords(month: string): string {
  return new Date(`${month}-01T00:00:00Z`).toLocaleDateString('en-GB', {
    month: 'long',
    year: 'numeric',
    timeZone: 'UTC',
  });
}

// Two decimals, or as many as it takes to show anything; exact amounts are under the pointer.
export function money(micro: number, currency: string): string {
  const value = micro / 1e6;
  const digits = value !== 0 && Math.abs(value) < 0.01 ? 6 : 2;
  const text = value.toLocaleString('en-GB', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return currency === '' ? text : `${text} ${currency}`;
}

// GPU-hours of thousandths of GPUs times milliseconds.
export function hoursOf(gpuMilliMs: number): number {
  return gpuMilliMs / 3.6e9;
}

export function hoursText(gpuMilliMs: number): string {
  const hours = hoursOf(gpuMilliMs);
  if (hours === 0) return '–';
  return hours < 10 ? hours.toFixed(2) : count(Math.round(hours * 10) / 10);
}

// The accounts of all GPU time, in the order in which they are shown; what each one is, for a reader who asks.
export const kAccounts: { key: keyof Omit<FleetAccounts, 'gpu_model' | 'capacity'>; text: string; says: string }[] = [
  { key: 'floor_used', text: 'floor used', says: 'used by jobs within guarantees' },
  { key: 'floor_lent', text: 'floor lent', says: 'used by jobs that borrow; it backs a guarantee' },
  { key: 'burst', text: 'burst', says: 'used by jobs that borrow; it backs no guarantee' },
  { key: 'floor_idle', text: 'floor idle', says: 'not used; it backs a guarantee' },
  { key: 'unowned', text: 'unowned', says: 'not used, and backs no guarantee' },
  { key: 'drained', text: 'drained', says: 'not used, on a cordoned node' },
  { key: 'failed', text: 'failed', says: 'not used: unhealthy, or out of contact' },
  { key: 'foreign', text: 'foreign', says: 'used by others than berth' },
];

// What the floor of a queue was used for: the parts add up to what was held.
export interface FloorUse {
  queue: string;
  used: number;
  lent: number;
  idle: number;
  held: number;
}

// Of the queues that hold a floor; the one with the most idle time first.
export function floorUses(rows: BillRow[]): FloorUse[] {
  return rows
    .map((row) => ({
      queue: row.name,
      used: row.floor_used_gpu_milli_ms,
      lent: row.floor_lent_gpu_milli_ms,
      idle: row.floor_idle_gpu_milli_ms,
      held: row.floor_used_gpu_milli_ms + row.floor_lent_gpu_milli_ms + row.floor_idle_gpu_milli_ms,
    }))
    .filter((one) => one.held > 0)
    .toSorted((a, b) => b.idle - a.idle || (a.queue < b.queue ? -1 : 1));
}

// The lines that a row of a bill is the sum of.
export function linesOf(lines: BillLine[], by: Exclude<Grouping, 'label'>, name: string): BillLine[] {
  const key: Record<typeof by, (line: BillLine) => string> = {
    queue: (line) => line.queue,
    user: (line) => line.user,
    job: (line) => (line.job > 0 ? String(line.job) : ''),
    model: (line) => line.gpu_model,
    kind: (line) => line.kind,
  };
  return lines.filter((line) => key[by](line) === name);
}
