import { expect, test } from 'vitest';
import { drivenByTeam } from './driven';
import type { Gpu, Node } from './types';

const gpu = (jobs: number[], driven_pct?: number): Gpu =>
  ({ jobs, ...(driven_pct === undefined ? {} : { driven_pct }) }) as Gpu;
const node = (...gpus: Gpu[]): Node => ({ gpus }) as Node;

test('a team is told what it holds and does not drive, and what is not measured apart', () => {
  const queueOf = new Map([
    [1, 'research/nlp'],
    [2, 'research/vision'],
    [3, 'product'],
  ]);
  const found = drivenByTeam([node(gpu([1], 25), gpu([2], 75), gpu([], 0)), node(gpu([3]), gpu([3], 100))], queueOf);
  expect(found).toEqual([
    { team: 'research', held: 2, measured: 2, undriven: 1 },
    { team: 'product', held: 2, measured: 1, undriven: 0 },
  ]);
});

test('a GPU that is shared counts in parts', () => {
  const found = drivenByTeam(
    [node(gpu([1, 2], 50))],
    new Map([
      [1, 'a'],
      [2, 'b/c'],
    ]),
  );
  expect(found.map((one) => [one.team, one.held, one.undriven])).toEqual([
    ['a', 0.5, 0.25],
    ['b', 0.5, 0.25],
  ]);
});
