import { expect, test } from 'vitest';
import { allows, consequences } from './actions';
import { kGpu, lookOf, planFleet } from './fleet';
import { cut, momentOf } from './history';
import { gpusAhead, inLine } from './line';
import { histogramBy, parseMetrics, sumBy } from './metrics';
import { parseRoute } from './route.svelte';
import { found } from './search';
import { stretches, widths } from './timeline';
import type { Job, JobSummary, Node } from './types';

const summary = (more: Partial<JobSummary>): JobSummary =>
  ({
    id: 1,
    name: '',
    queue: 'a',
    user: 'ann',
    phase: 'pending',
    held: false,
    priority: 0,
    gpus: 1,
    waiting_since: '2026-11-25T00:00:00Z',
    class: 'batch',
    ...more,
  }) as JobSummary;

test('the address names a screen, what it is about, and filters', () => {
  expect(parseRoute('').screen).toBe('jobs');
  expect(parseRoute('#/jobs?phase=pending&q=a%3Fb').query.get('q')).toBe('a?b');
  expect(parseRoute('#/queues/research%2Fnlp')).toMatchObject({ screen: 'queue', argument: 'research/nlp' });
  expect(parseRoute('#/fleet/n1')).toMatchObject({ screen: 'node', argument: 'n1' });
  expect(parseRoute('#/jobs/%E0%A4%A').screen).toBe('job'); // not decodable: shown as it is
});

test('every word of a search has to be found', () => {
  const job = summary({ id: 17, name: 'llama-sft', queue: 'research/nlp', reason: 'quota-max' });
  expect(found(job, 'LLAMA nlp')).toBe(true);
  expect(found(job, 'ceiling')).toBe(true); // the reason in plain words
  expect(found(job, 'llama vision')).toBe(false);
});

test('the line is by priority, then by age', () => {
  const line = inLine([
    summary({ id: 3, priority: 5, waiting_since: '2026-11-25T00:00:02Z', gpus: 4 }),
    summary({ id: 2, priority: 5, waiting_since: '2026-11-25T00:00:01Z', gpus: 8 }),
    summary({ id: 1, priority: 9, waiting_since: '2026-11-25T00:00:09Z', gpus: 2 }),
  ]);
  expect(line.map((job) => job.id)).toEqual([1, 2, 3]);
  expect(gpusAhead(line)).toEqual([0, 2, 10]);
  const held = summary({ id: 9, priority: 99, held: true });
  expect(inLine([held, ...line]).at(-1)).toBe(held);
});

test('what an action will do is said before, and to which jobs it does not apply', () => {
  const jobs = [summary({}), summary({ id: 2, phase: 'running', gpus: 8 }), summary({ id: 3, phase: 'finished' })];
  expect(jobs.map((job) => allows('cancel', job))).toEqual([true, true, false]);
  expect(jobs.map((job) => allows('hold', job))).toEqual([true, false, false]);
  const text = consequences('cancel', jobs).join(' ');
  expect(text).toContain('1 job of the 3 chosen');
  expect(text).toContain('8 GPUs');
});

test('metrics are read, with what is escaped in their labels', () => {
  const samples = parseMetrics(
    '# HELP x y\nberth_jobs{queue="a\\"b\\\\c",phase="pending"} 3\nberth_jobs{queue="d",phase="pending"} 4.5\nup 1\n',
  );
  expect(samples[0]!.labels.queue).toBe('a"b\\c');
  expect(sumBy(samples, 'berth_jobs', 'phase').get('pending')).toBe(7.5);
});

test('quantiles of a histogram are no finer than its buckets', () => {
  const text = ['1', '5', '+Inf']
    .map((le, index) => `w_bucket{class="dev",le="${le}"} ${[6, 9, 10][index]}`)
    .join('\n');
  const waits = histogramBy(
    parseMetrics(`${text}\nw_sum{class="dev"} 30\nw_count{class="dev"} 10\n`),
    'w',
    'class',
  ).get('dev');
  expect(waits).toEqual({ count: 10, mean: 3, p50: 1, p95: null });
});

test('the life of a job is waiting and running, one after the other', () => {
  const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
  const job = {
    ...summary({ phase: 'running', started: at(50), waiting_since: at(40), attempt: 2, attempts: 2 }),
    past: [
      {
        attempt: 1,
        waited_from: at(0),
        started: at(10),
        ended: at(40),
        outcome: 'preempted',
        code: 0,
        message: '',
        checkpoint_step: 0,
        gpus_on: [],
      },
    ],
    tasks: [],
    spec: {},
  } as unknown as Job;
  const all = stretches(job, Date.parse(at(60)));
  expect(all.map((one) => `${one.kind} ${(one.to - one.from) / 1000}`)).toEqual([
    'wait 10',
    'run 30',
    'wait 10',
    'run 10',
  ]);
  expect(all.at(-1)!.open).toBe(true);
  const parts = widths(all);
  expect(parts.reduce((sum, part) => sum + part, 0)).toBeCloseTo(100);
});

function node(name: string, gpus: number, topology: string[] = [], more: Partial<Node> = {}): Node {
  return {
    name,
    pool: 'default',
    status: 'ready',
    cordoned: false,
    draining: false,
    maintenance: [],
    topology,
    gpus: Array.from({ length: gpus }, (_, index) => ({ index, healthy: true, free: 1, nominated: 0, jobs: [] })),
    gpus_total: gpus,
    ...more,
  } as unknown as Node;
}

test('every node has a place of its own on the map, inside it', () => {
  const nodes = Array.from({ length: 200 }, (_, index) =>
    node(`n${index}`, index % 3 === 0 ? 16 : 8, [`b${index % 2}`, `r${index % 10}`]),
  );
  const plan = planFleet([...nodes, node('bare', 0)], 1.6);
  expect(plan.spots.length).toBe(201);
  const outside = plan.spots.filter((spot) => spot.x + spot.w > plan.w + kGpu || spot.y + spot.h > plan.h + kGpu);
  expect(outside).toEqual([]);
  const overlapping = plan.spots.filter((a, index) =>
    plan.spots.slice(index + 1).some((b) => a.x + a.w > b.x && b.x + b.w > a.x && a.y + a.h > b.y && b.y + b.h > a.y),
  );
  expect(overlapping).toEqual([]);
});

test('a GPU that is broken, or out of contact, is shown so whatever the colours say', () => {
  const teamOf = (): number => 3;
  const broken = node('n', 1);
  broken.gpus[0]!.healthy = false;
  const silent = node('n', 1, [], { status: 'unknown' });
  for (const by of ['team', 'state', 'driven', 'health'] as const) {
    expect(lookOf(broken, broken.gpus[0]!, by, teamOf)).toBe('broken');
    expect(lookOf(silent, silent.gpus[0]!, by, teamOf)).toBe('silent');
  }
  const used = node('n', 1);
  used.gpus[0]!.jobs = [7];
  used.gpus[0]!.free = 0;
  expect(lookOf(used, used.gpus[0]!, 'team', teamOf)).toBe('team-3');
  expect(lookOf(used, used.gpus[0]!, 'driven', teamOf)).toBe('unmeasured');
  used.gpus[0]!.driven_pct = 100;
  expect(lookOf(used, used.gpus[0]!, 'driven', teamOf)).toBe('driven-0');
});

test('time is cut at whole multiples, and usage adds up to what there was', () => {
  const parts = cut(Date.UTC(2026, 0, 1, 10, 7), 1, 6);
  expect(parts.length).toBe(6);
  expect(new Date(parts[5]!.to).toISOString()).toBe('2026-01-01T10:00:00.000Z');
  const moment = momentOf({
    from: '',
    to: '',
    items: [
      { queue: 'a', user: '', gpu_model: '', kind: 'within', gpu_seconds: 30 },
      { queue: 'a', user: '', gpu_model: '', kind: 'borrowed', gpu_seconds: 20 },
    ],
    idle_gpu_seconds: 40,
    down_gpu_seconds: 10,
    capacity_gpu_seconds: 100,
  })!;
  expect([moment.allocatedPct, moment.idlePct, moment.downPct]).toEqual([50, 40, 10]);
});
