import { expect, test } from 'vitest';
import { comparator, matches, place, type JobFilter } from './joblist.svelte';
import type { JobSummary } from './types';

const all: JobFilter = { queue: '', user: '', phase: '', finished: false, sort: '-id' };

function job(id: number, more: Partial<JobSummary> = {}): JobSummary {
  return {
    id,
    name: `job-${id}`,
    queue: 'research/nlp',
    user: 'ann',
    kind: 'gang',
    class: 'training',
    priority: 500,
    priority_class: '',
    phase: 'pending',
    held: false,
    submitted: '2026-11-25T00:00:00Z',
    waiting_since: '2026-11-25T00:00:00Z',
    gpus: 1,
    tasks_total: 1,
    attempt: 0,
    attempts: 0,
    failures: 0,
    gpu_seconds: 0,
    nodes: [],
    ...more,
  };
}
const ids = (jobs: JobSummary[]): number[] => jobs.map((one) => one.id);

test('a queue stands for those below it, and not for those that begin alike', () => {
  expect(matches(job(1), { ...all, queue: 'research' })).toBe(true);
  expect(matches(job(1, { queue: 'research2' }), { ...all, queue: 'research' })).toBe(false);
});

test('finished jobs are shown where they are asked for', () => {
  const over = job(1, { phase: 'finished' });
  expect(matches(over, all)).toBe(false);
  expect(matches(over, { ...all, finished: true })).toBe(true);
  expect(matches(over, { ...all, phase: 'finished' })).toBe(true);
});

test('a changed job goes to its place in the order', () => {
  const jobs = [job(5), job(3), job(1)];
  expect(ids(place(jobs, job(4), all, true))).toEqual([5, 4, 3, 1]);
  expect(ids(place(jobs, job(6), all, true))).toEqual([6, 5, 3, 1]);
  expect(place(jobs, job(3, { phase: 'running' }), all, true)[1]!.phase).toBe('running');
  const byPriority = { ...all, sort: '-priority' };
  expect(
    ids(place([job(5, { priority: 9 }), job(3, { priority: 4 })], job(3, { priority: 10 }), byPriority, true)),
  ).toEqual([3, 5]);
});

test('a job that does not match any more leaves the list', () => {
  expect(ids(place([job(2), job(1)], job(2, { phase: 'finished' }), all, true))).toEqual([1]);
  expect(ids(place([job(2), job(1)], job(2, { phase: 'finished' }), { ...all, finished: true }, true))).toEqual([1, 2]);
});

test('a job behind the last one that was loaded is left for its page', () => {
  expect(ids(place([job(9), job(8)], job(2), all, false))).toEqual([9, 8]);
  expect(ids(place([job(9), job(8)], job(2), all, true))).toEqual([9, 8, 2]);
});

test('ties go by number', () => {
  const sorted = [job(2, { gpus: 4 }), job(1, { gpus: 4 }), job(3, { gpus: 8 })].toSorted(comparator('-gpus'));
  expect(ids(sorted)).toEqual([3, 2, 1]);
});
