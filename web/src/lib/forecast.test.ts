import { expect, test } from 'vitest';
import { keepDraft, patched, takeDraft } from './draft';
import { forecastWords, victimWords } from './forecast';
import type { Forecast } from './types';

const forecast = (more: Partial<Forecast>): Forecast => ({
  id: 9,
  phase: 'pending',
  started: 0,
  places: [],
  victims: [],
  victims_not_shown: 0,
  warnings: [],
  ...more,
});

test('a forecast says whether it starts, where, and at whose cost', () => {
  const places = ['n1', 'n2', 'n3', 'n4', 'n5'].map((node) => ({ node, tasks: 1, gpus: 8 }));
  expect(forecastWords(forecast({ phase: 'running', started: 1, within: true, places }))).toEqual([
    'It would start now on n1 (8 GPUs), n2 (8 GPUs), n3 (8 GPUs), n4 (8 GPUs) and 1 more node, within the guarantee.',
  ]);
  expect(forecastWords(forecast({}))).toEqual(['It would wait.']);
  const victim = { job: 4, user: 'dan', queue: 'b', cause: 'reclaim', gpus: 1, unsaved_s: 72 };
  const taking = forecastWords(forecast({ victims: [victim], victims_not_shown: 2 }));
  expect(taking[0]).toContain('once they have left');
  expect(taking[1]).toContain('2 jobs that you do not see');
  expect(victimWords(victim)).toContain('1 min 12 s of work since its last checkpoint');
});

test('a remedy is put into the document, and nothing else of it changes', () => {
  const document = { gpus: 8, exclusive: true, checkpoint: { on_signal: true, every: '1h' }, env: { A: '1' } };
  expect(patched(document, { gpus: 4, exclusive: null, checkpoint: { every: null } })).toEqual({
    gpus: 4,
    checkpoint: { on_signal: true },
    env: { A: '1' },
  });
  expect(document.gpus).toBe(8);
  keepDraft({ document, of: 7, replaces: true });
  expect(takeDraft()).toEqual({ document, of: 7, replaces: true });
  expect(takeDraft()).toBeNull();
});
