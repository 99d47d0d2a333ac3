import { expect, test } from 'vitest';
import { count, duration, gpuHours, gpus, memory, percent, plural, secondsBetween, utc } from './format';

test('durations are said in two units at most', () => {
  expect([0, 59, 60, 200, 3599, 3600, 86_399, 86_400, 270_000].map(duration)).toEqual([
    '0 s',
    '59 s',
    '1 min 0 s',
    '3 min 20 s',
    '59 min',
    '1 h 00 min',
    '23 h 59 min',
    '1 d 0 h',
    '3 d 3 h',
  ]);
  expect(duration(-5)).toBe('0 s');
});

test('numbers are those of the API, to the thousandth', () => {
  expect(count(1234567)).toBe('1,234,567');
  expect(count(0.125)).toBe('0.125');
  expect(gpus(1)).toBe('1 GPU');
  expect(gpus(2.5)).toBe('2.5 GPUs');
  expect(plural(1, 'job')).toBe('1 job');
  expect(plural(2, 'service or array', 'services or arrays')).toBe('2 services or arrays');
  expect(percent(84.34)).toBe('84.3 %');
});

test('memory and GPU time have units that fit', () => {
  expect(memory(512)).toBe('512 MiB');
  expect(memory(262_144)).toBe('256 GiB');
  expect(memory(2 * 1024 * 1024)).toBe('2 TiB');
  expect(gpuHours(5.2)).toBe('5 GPU-s');
  expect(gpuHours(1800)).toBe('0.50 GPU-h');
  expect(gpuHours(360_000)).toBe('100 GPU-h');
});

test('times are told in UTC on demand', () => {
  expect(utc('2026-11-25T00:35:25.414Z')).toBe('2026-11-25 00:35:25 UTC');
  expect(secondsBetween('2026-11-25T00:00:00Z', '2026-11-25T00:01:30Z')).toBe(90);
});
