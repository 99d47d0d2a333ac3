// Reports of `berth simulate` (summary.json), read in the page. A file comes from anywhere: what is not as it has to be is
// refused with its place, and texts stay texts.

export const kSchema = 'berth.simulate.summary/1';
export const kMostBytes = 64 * 1024 * 1024;
const kMostRuns = 10_000;

type Unit = 'percent' | 'seconds' | 'count' | 'ratio' | 'hours';

// The measures that decide, in the words and units of src/sim/report/metrics.cc.
export const kMeasures: { key: string; text: string; unit: Unit; better: 'higher' | 'lower' }[] = [
  { key: 'gpu_allocation_pct', text: 'GPUs allocated', unit: 'percent', better: 'higher' },
  { key: 'fragmentation_pct', text: 'Fragmented, of capacity', unit: 'percent', better: 'lower' },
  { key: 'mean_wait_s', text: 'Waiting, mean', unit: 'seconds', better: 'lower' },
  { key: 'p99_wait_s', text: 'Waiting, p99', unit: 'seconds', better: 'lower' },
  { key: 'mean_wait_at_least_s', text: 'Waiting of all, at least', unit: 'seconds', better: 'lower' },
  { key: 'mean_jct_s', text: 'Completion time, mean', unit: 'seconds', better: 'lower' },
  { key: 'p99_slowdown', text: 'Slowdown, p99', unit: 'ratio', better: 'lower' },
  { key: 'mean_share_gap_pct', text: 'Dominant-share gap, mean', unit: 'percent', better: 'lower' },
  { key: 'guarantee_breached_s', text: 'Guarantees breached', unit: 'seconds', better: 'lower' },
  { key: 'preemptions', text: 'Preemptions', unit: 'count', better: 'lower' },
  { key: 'gpu_hours_lost', text: 'GPU-hours lost', unit: 'hours', better: 'lower' },
];

export interface Estimate {
  mean: number;
  low: number | null; // of the interval; null: one seed has none
  high: number | null;
}
export interface Comparison extends Estimate {
  policy: string;
  measure: string;
  differs: boolean;
  sameJobs: boolean;
}
export type Curve = [number, number][];
export interface Report {
  name: string; // of the file
  title: string;
  command: string;
  version: string;
  jobs: number;
  gpus: number;
  notes: string[]; // what was taken for granted or left out
  seeds: number;
  baseline: string;
  policies: { policy: string; measures: Map<string, Estimate> }[];
  comparisons: Comparison[];
  waiting: Map<string, Curve>; // jobs that wait, by seconds, of the first seed; empty in an order of arrival
  allocated: Map<string, Curve>; // percent
}

type Json = Record<string, unknown>;

class Refused extends Error {}

function object(value: unknown, path: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Refused(`${path} is no object`);
  return value as Json;
}
function list(value: unknown, path: string, most = 100_000): unknown[] {
  if (!Array.isArray(value)) throw new Refused(`${path} is no list`);
  if (value.length > most) throw new Refused(`${path} has more than ${most} items`);
  return value;
}
function text(value: unknown, path: string): string {
  if (typeof value !== 'string') throw new Refused(`${path} is no text`);
  return value;
}
function number(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Refused(`${path} is no number`);
  return value;
}
const numberOrNull = (value: unknown, path: string): number | null =>
  value === null || value === undefined ? null : number(value, path);

function estimate(value: unknown, path: string): Estimate {
  const from = object(value, path);
  return {
    mean: number(from['mean'], `${path}.mean`),
    low: numberOrNull(from['ci95_low'], `${path}.ci95_low`),
    high: numberOrNull(from['ci95_high'], `${path}.ci95_high`),
  };
}

function curve(value: unknown, path: string): Curve {
  return list(value, path).map((point, index) => {
    const pair = list(point, `${path}[${index}]`, 2);
    return [number(pair[0], `${path}[${index}][0]`), number(pair[1], `${path}[${index}][1]`)];
  });
}

function measuresOf(value: unknown, path: string): Map<string, Estimate> {
  const from = object(value, path);
  const found = new Map<string, Estimate>();
  for (const { key } of kMeasures) {
    if (Object.hasOwn(from, key)) found.set(key, estimate(from[key], `${path}.${key}`));
  }
  return found;
}

function comparisonOf(value: unknown, path: string): Comparison {
  const from = object(value, path);
  return {
    ...estimate(value, path),
    policy: text(from['policy'], `${path}.policy`),
    measure: text(from['measure'], `${path}.measure`),
    differs: from['differs'] === true,
    sameJobs: from['same_jobs'] === true,
  };
}

function notesOf(input: Json): string[] {
  const counted = (key: string, of: string): string[] =>
    list(input[key] ?? [], `input.${key}`).map((one, index) => {
      const from = object(one, `input.${key}[${index}]`);
      return `${text(from[of], `input.${key}[${index}].${of}`)} (${number(from['count'], `input.${key}[${index}].count`)})`;
    });
  const said = (key: string): string[] =>
    list(input[key] ?? [], `input.${key}`).map((one, index) => text(one, `input.${key}[${index}]`));
  return [
    ...said('sources'),
    ...said('notes'),
    ...counted('defaults_taken', 'text'),
    ...counted('rows_left_out', 'rule'),
  ];
}

function readReport(body: unknown, name: string): Report {
  const from = object(body, 'the file');
  if (from['schema'] !== kSchema)
    throw new Refused(`its schema is not ${kSchema}; open the summary.json that berth simulate --report wrote`);
  const input = object(from['input'], 'input');
  const runs = list(from['runs'], 'runs', kMostRuns).map((one, index) => object(one, `runs[${index}]`));
  const policies = list(from['policies'], 'policies', 1000).map((one, index) => {
    const policy = object(one, `policies[${index}]`);
    return {
      policy: text(policy['policy'], `policies[${index}].policy`),
      measures: measuresOf(policy['measures'], `policies[${index}].measures`),
    };
  });
  if (policies.length === 0) throw new Refused('it has no policies');
  const report: Report = {
    name,
    title: text(from['title'], 'title'),
    command: text(from['command'], 'command'),
    version: text(from['version'], 'version'),
    jobs: number(input['jobs'], 'input.jobs'),
    gpus: number(input['gpus'], 'input.gpus'),
    notes: notesOf(input),
    seeds: runs.filter((run) => run['policy'] === policies[0]!.policy).length,
    baseline: policies[0]!.policy,
    policies,
    comparisons: list(from['comparisons'], 'comparisons').map((one, index) =>
      comparisonOf(one, `comparisons[${index}]`),
    ),
    waiting: new Map(),
    allocated: new Map(),
  };
  runs.forEach((run, index) => {
    const policy = text(run['policy'], `runs[${index}].policy`);
    if (report.waiting.has(policy) || run['over_time'] === null || run['over_time'] === undefined) return;
    const path = `runs[${index}].over_time`;
    const curves = object(run['over_time'], path);
    report.waiting.set(policy, curve(curves['waiting_jobs'], `${path}.waiting_jobs`));
    report.allocated.set(policy, curve(curves['utilization_pct'], `${path}.utilization_pct`));
  });
  return report;
}

// The report in a file, or in words why it is none.
export function openReport(content: string, name: string): { report: Report } | { refused: string } {
  if (content.length > kMostBytes) return { refused: `${name} is larger than 64 MiB` };
  let body: unknown;
  try {
    body = JSON.parse(content);
  } catch {
    return { refused: `${name} is no JSON; open the summary.json that berth simulate --report wrote` };
  }
  try {
    return { report: readReport(body, name) };
  } catch (error) {
    if (error instanceof Refused) return { refused: `${name}: ${error.message}` };
    throw error;
  }
}

// What a comparison with the first policy says; an interval that holds 0, or none, says nothing.
export function judge(comparison: Comparison): 'better' | 'worse' | 'same' {
  const measure = kMeasures.find((one) => one.key === comparison.measure);
  if (!measure || !comparison.differs || comparison.mean === 0) return 'same';
  return comparison.mean > 0 === (measure.better === 'higher') ? 'better' : 'worse';
}

// Curves of several policies on the points of time that any of them has; between its own points a curve has no value.
export function aligned(curves: Map<string, Curve>): { times: number[]; values: (number | null)[][] } {
  const times = [...new Set([...curves.values()].flatMap((one) => one.map(([time]) => time)))].toSorted(
    (a, b) => a - b,
  );
  const values = [...curves.values()].map((one) => {
    const at = new Map(one);
    const [first, last] = [one[0]?.[0] ?? 0, one.at(-1)?.[0] ?? 0];
    let latest: number | null = null;
    return times.map((time) => {
      latest = at.get(time) ?? latest;
      return time < first || time > last ? null : latest;
    });
  });
  return { times, values };
}
