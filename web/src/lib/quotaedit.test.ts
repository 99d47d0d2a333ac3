import { expect, test } from 'vitest';
import { meanGpus, momentOf } from './history';
import { quotaOf, withQuota } from './quotaedit';

const config = {
  cluster: 'c',
  queues: {
    a: { guaranteed: { gpus: 8, memory: '1TiB' }, queues: { b: { max: { gpus: 12 }, weight: 2 }, bare: null } },
  },
};

test('the quota of a queue is changed, and nothing else', () => {
  expect(quotaOf(config, 'a')).toEqual({ guaranteed: '8', max: '', lending_limit: '', weight: '' });
  expect(quotaOf(config, 'a/b')).toEqual({ guaranteed: '', max: '12', lending_limit: '', weight: '2' });
  expect(quotaOf(config, 'a/nobody')).toBeNull();
  const changed = withQuota(config, 'a', { guaranteed: '6.5', max: '10', lending_limit: '', weight: '' });
  expect(changed).toEqual({
    cluster: 'c',
    queues: { a: { ...config.queues.a, guaranteed: { gpus: 6.5, memory: '1TiB' }, max: { gpus: 10 } } },
  });
  expect(config.queues.a.guaranteed.gpus).toBe(8);
  const cleared = withQuota(config, 'a/b', { guaranteed: '', max: '', lending_limit: '', weight: '' });
  expect((cleared.queues as typeof config.queues).a.queues.b).toEqual({});
  const bare = withQuota(config, 'a/bare', { guaranteed: 'many', max: '', lending_limit: '', weight: '' });
  expect((bare.queues as typeof config.queues).a.queues.bare).toEqual({ guaranteed: { gpus: 'many' } }); // refused by the server
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
