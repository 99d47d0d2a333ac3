import { expect, test } from 'vitest';
import { eventAt } from './past';

const kStart = Date.parse('2026-11-21T08:00:00Z');
// An event every ten seconds, from 1 to 100; two of them at one time.
const read = (seq: number): Promise<{ seq: number; time: string }> =>
  Promise.resolve({ seq, time: new Date(kStart + 10_000 * (seq === 51 ? 50 : seq)).toISOString() });

test('a time is the last event not after it', async () => {
  expect(await eventAt(kStart + 10_000, 100, read)).toBe(1);
  expect(await eventAt(kStart + 19_999, 100, read)).toBe(1);
  expect(await eventAt(kStart + 20_000, 100, read)).toBe(2);
  expect(await eventAt(kStart + 500_000, 100, read)).toBe(51);
  expect(await eventAt(kStart + 9_999_999, 100, read)).toBe(100);
  expect(await eventAt(kStart - 1, 100, read)).toBe(1);
  expect(await eventAt(kStart, 0, read)).toBe(1);
});
