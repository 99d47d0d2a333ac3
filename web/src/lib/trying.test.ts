import { expect, test } from 'vitest';
import { aligned, judge, kSchema, openReport, type Comparison, type Report } from './trying';

function summary(changes: Record<string, unknown> = {}): string {
  const estimate = { count: 3, mean: 12, standard_deviation: 1, ci95_low: 10, ci95_high: 14 };
  return JSON.stringify({
    schema: kSchema,
    title: '<img src=x onerror=alert(1)>',
    command: 'berth simulate',
    version: '0.1.0',
    input: {
      jobs: 10,
      gpus: 8,
      sources: ['a.csv'],
      notes: [],
      defaults_taken: [{ text: 'CPU', count: 3 }],
      rows_left_out: [],
    },
    runs: [
      {
        policy: 'fifo',
        seed: 1,
        over_time: {
          waiting_jobs: [
            [0, 1],
            [60, 2],
          ],
          utilization_pct: [[0, 50]],
        },
      },
      { policy: 'fifo', seed: 2, over_time: null },
      { policy: 'berth', seed: 1, over_time: null },
    ],
    policies: [
      { policy: 'fifo', measures: { mean_wait_s: estimate } },
      { policy: 'berth', measures: { mean_wait_s: estimate, unknown_s: estimate } },
    ],
    comparisons: [{ ...estimate, mean: -3, policy: 'berth', measure: 'mean_wait_s', differs: true, same_jobs: true }],
    ...changes,
  });
}
function opened(changes: Record<string, unknown> = {}): Report {
  const found = openReport(summary(changes), 'summary.json');
  if ('refused' in found) throw new Error(found.refused);
  return found.report;
}
function refusalOf(content: string): string {
  const found = openReport(content, 'f.json');
  return 'refused' in found ? found.refused : '';
}

test('a report is read as berth simulate writes it', () => {
  const report = opened();
  expect(report.title).toBe('<img src=x onerror=alert(1)>');
  expect(report.seeds).toBe(2);
  expect(report.baseline).toBe('fifo');
  expect(report.policies[1]!.measures.get('mean_wait_s')).toEqual({ mean: 12, low: 10, high: 14 });
  expect(report.notes).toEqual(['a.csv', 'CPU (3)']);
  expect(report.waiting.get('fifo')).toEqual([
    [0, 1],
    [60, 2],
  ]);
  expect(report.waiting.has('berth')).toBe(false);
});

test('what is no report is refused with its place', () => {
  expect(refusalOf('<html>')).toContain('no JSON');
  expect(refusalOf('[]')).toContain('no object');
  expect(refusalOf('{}')).toContain('schema');
  expect(refusalOf(summary({ policies: [] }))).toContain('no policies');
  expect(refusalOf(summary({ policies: [{ policy: 7, measures: {} }] }))).toContain('policies[0].policy is no text');
  expect(refusalOf(summary({ runs: {} }))).toContain('runs is no list');
  expect(refusalOf(summary({ comparisons: [{ mean: '1' }] }))).toContain('comparisons[0].mean is no number');
  expect(refusalOf(summary({ policies: [{ policy: 'x', measures: { mean_wait_s: { mean: 1e999 } } }] }))).toContain(
    'no number',
  );
});

test('keys of objects that every object has are no measures', () => {
  const report = opened({ policies: [JSON.parse('{"policy": "x", "measures": {"__proto__": {"mean_wait_s": 1}}}')] });
  expect(report.policies[0]!.measures.size).toBe(0);
});

test('a difference is better or worse only where its interval does not hold 0', () => {
  const one = opened().comparisons[0]!;
  const judged = (changes: Partial<Comparison>): string => judge({ ...one, ...changes });
  expect(judged({})).toBe('better');
  expect(judged({ mean: 3 })).toBe('worse');
  expect(judged({ measure: 'gpu_allocation_pct' })).toBe('worse');
  expect(judged({ differs: false })).toBe('same');
  expect(judged({ measure: 'toString' })).toBe('same');
});

test('curves of several policies lie on common points of time', () => {
  const curves = new Map<string, [number, number][]>([
    [
      'a',
      [
        [0, 1],
        [10, 3],
      ],
    ],
    ['b', [[5, 7]]],
  ]);
  expect(aligned(curves)).toEqual({
    times: [0, 5, 10],
    values: [
      [1, 1, 3],
      [null, 7, null],
    ],
  });
});
