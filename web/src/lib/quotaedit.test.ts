import { expect, test } from 'vitest';
import { meanGpus, momentOf } from './history';
import { quotaOf, rebased, settingsOf } from './quotaedit';
import type { Queue } from './types';

test('a change asks for the limits that were typed anew, and for no others', () => {
  const queue = { guaranteed: { gpus: 8, memory_mib: 1024 }, max: {}, lending_limit: { gpus: 2 }, weight: 1 };
  const before = quotaOf(queue as unknown as Queue);
  expect(before).toEqual({ guaranteed: '8', max: '', lending_limit: '2', weight: '1' });
  expect(settingsOf(before, before)).toEqual([]);
  expect(settingsOf(before, { ...before, guaranteed: ' 8 ' })).toEqual([]);
  const typed = { guaranteed: '6.5', max: ' 10', lending_limit: '', weight: '' };
  expect(settingsOf(before, typed)).toEqual([
    'guaranteed.gpus=6.5',
    'max.gpus=10',
    'lending_limit.gpus=none',
    'weight=1',
  ]);
  expect(settingsOf(before, { ...before, max: 'many' })).toEqual(['max.gpus=many']); // refused by the server
});

test('what others changed meanwhile is not changed back', () => {
  const before = { guaranteed: '8', max: '', lending_limit: '', weight: '1' };
  const now = { guaranteed: '8', max: '12', lending_limit: '', weight: '3' };
  const fields = rebased({ ...before, max: '10' }, before, now);
  expect(fields).toEqual({ guaranteed: '8', max: '10', lending_limit: '', weight: '3' });
  expect(settingsOf(now, fields)).toEqual(['max.gpus=10']);
});

test('what a queue used is that of it and of those below', () => {
  const row = (queue: string, kind: 'within' | 'borrowed', gpu_seconds: number) => ({
    queue,
    user: '',
    gpu_model: '',
    kind,
    gpu_seconds,
  });
  const report = {
    from: '2026-11-25T00:00:00Z',
    to: '2026-11-25T00:01:00Z',
    items: [row('a', 'within', 60), row('a/b', 'borrowed', 120), row('ab', 'within', 600)],
    idle_gpu_seconds: 0,
    down_gpu_seconds: 0,
    capacity_gpu_seconds: 780,
  };
  const moment = momentOf(report, 'a')!;
  expect([moment.withinSeconds, moment.borrowedSeconds]).toEqual([60, 120]);
  expect(meanGpus(moment, moment.borrowedSeconds)).toBe(2);
  expect(momentOf({ ...report, items: [], capacity_gpu_seconds: 0 }, 'a')?.withinSeconds).toBe(0);
  expect(momentOf({ ...report, items: [], capacity_gpu_seconds: 0 })).toBeNull();
});
