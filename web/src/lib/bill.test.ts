import { describe, expect, it } from 'vitest';
import { floorUses, hoursText, linesOf, money, monthsBack, monthWords, type BillLine, type BillRow } from './bill';

const row = (name: string, used: number, lent: number, idle: number): BillRow => ({
  name,
  floor_used_gpu_milli_ms: used,
  floor_lent_gpu_milli_ms: lent,
  floor_idle_gpu_milli_ms: idle,
  burst_gpu_milli_ms: 0,
  amount: '0',
  amount_micro: 0,
});

describe('months', () => {
  it('are those of UTC, newest first, over the turn of a year', () => {
    expect(monthsBack(Date.parse('2026-02-01T00:00:00Z'), 3)).toEqual(['2026-02', '2026-01', '2025-12', '2025-11']);
    expect(monthsBack(Date.parse('2026-01-31T23:59:59.999Z'), 1)).toEqual(['2026-01', '2025-12']);
  });
  it('are named in words', () => {
    expect(monthWords('2026-11')).toBe('November 2026');
  });
});

describe('amounts', () => {
  it('have two decimals', () => {
    expect(money(1_234_567_890, 'EUR')).toBe('1,234.57 EUR');
    expect(money(-2_500_000, 'EUR')).toBe('-2.50 EUR');
    expect(money(0, '')).toBe('0.00');
  });
  it('show what is less than a hundredth', () => {
    expect(money(49, 'EUR')).toBe('0.000049 EUR');
  });
  it('GPU-hours come from thousandths of GPUs times milliseconds', () => {
    expect(hoursText(0)).toBe('–');
    expect(hoursText(1000 * 3_600_000)).toBe('1.00');
    expect(hoursText(1000 * 3_600_000 * 1234.56)).toBe('1,234.6');
  });
});

describe('floors', () => {
  it('are those that somebody holds, the most idle first, and their parts add up', () => {
    const uses = floorUses([row('a', 5, 1, 2), row('b', 0, 0, 9), row('none', 0, 0, 0)]);
    expect(uses.map((one) => one.queue)).toEqual(['b', 'a']);
    for (const one of uses) expect(one.used + one.lent + one.idle).toBe(one.held);
  });
});

describe('the lines of a row', () => {
  const line = (queue: string, job: number, kind: string): BillLine => ({
    ...{ cause: '', gpu_model: 'H100', slice: '', borrower: '', user: job > 0 ? 'ada' : '', job_name: 'x' },
    ...{ from: '', to: '', unit: 'gpu-hour', quantity: '1', unit_price: '1', amount: '1', amount_micro: 1, note: '' },
    queue,
    job,
    kind,
  });
  const lines = [line('a', 1, 'floor-used'), line('a', 0, 'floor-idle'), line('b', 2, 'burst')];
  it('are those of its queue, job, user or kind', () => {
    expect(linesOf(lines, 'queue', 'a')).toHaveLength(2);
    expect(linesOf(lines, 'job', '2')).toEqual([lines[2]]);
    expect(linesOf(lines, 'user', 'ada')).toEqual([lines[0], lines[2]]);
    expect(linesOf(lines, 'kind', 'burst')).toEqual([lines[2]]);
  });
  it('of no job are what idle floors cost', () => {
    expect(linesOf(lines, 'job', '')).toEqual([lines[1]]);
    expect(linesOf(lines, 'user', '')).toEqual([lines[1]]);
  });
});
