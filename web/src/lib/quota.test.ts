import { expect, test } from 'vitest';
import { barOf, inTreeOrder, isStarved, scaleOf } from './quota';
import type { Queue } from './types';

function queue(path: string, more: Partial<Queue> = {}): Queue {
  const amounts = { models: {} };
  return {
    path,
    parent: path.split('/').slice(0, -1).join('/'),
    depth: path.split('/').length,
    leaf: true,
    weight: 1,
    policy: 'best-effort',
    trust_domain: '',
    guaranteed: amounts,
    effective: amounts,
    max: amounts,
    lending_limit: amounts,
    max_per_user: {},
    usage: amounts,
    within: amounts,
    borrowed_gpus: 0,
    burst_gpus: 0,
    nominated_gpus: 0,
    pending: 0,
    running: 0,
    dominant_share: '0.0000',
    ...more,
  };
}

test('what is used is parted into within and borrowed, and what of the floor is idle', () => {
  const bar = barOf(
    queue('a', {
      guaranteed: { gpus: 8, models: {} },
      effective: { gpus: 8, models: {} },
      usage: { gpus: 7, models: {} },
      within: { gpus: 5, models: {} },
    }),
  );
  expect(bar).toMatchObject({ within: 5, borrowed: 2, floor: 8, idle: 3, ceiling: null });
});

test('every bar fits the scale', () => {
  const wide = queue('a', { usage: { gpus: 30, models: {} }, nominated_gpus: 5 });
  expect(scaleOf([queue('b'), wide], 16)).toBe(35);
  expect(scaleOf([queue('b', { max: { gpus: 12, models: {} } })], 16)).toBe(12);
  expect(scaleOf([queue('b', { max: { gpus: 99, models: {} } })], 16)).toBe(16);
  expect(scaleOf([], 0)).toBe(1);
});

test('a queue is starved only while jobs wait and its floor is not met', () => {
  const floor = {
    guaranteed: { gpus: 8, models: {} },
    effective: { gpus: 8, models: {} },
    within: { gpus: 4, models: {} },
  };
  expect(isStarved(queue('a', { ...floor, pending: 1 }))).toBe(true);
  expect(isStarved(queue('a', { ...floor, pending: 0 }))).toBe(false);
  expect(isStarved(queue('a', { ...floor, pending: 1, nominated_gpus: 4 }))).toBe(false);
});

test('children stand right behind their parent', () => {
  const paths = inTreeOrder(['b', 'a-x', 'a/y', 'a', 'a/b/c'].map((path) => queue(path))).map((one) => one.path);
  expect(paths).toEqual(['a', 'a/b/c', 'a/y', 'a-x', 'b']);
});
