import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { allows, consequences, withheld } from './actions';
import { kRoles, kVerbs, may, mayAnywhere, neededWords, reachOf, roleWords, type Identity } from './roles';
import type { JobSummary } from './types';

const member: Identity = { subject: 'token:ci', user: 'ann', roles: [{ role: 'member', queue: 'research/nlp' }] };
const lead: Identity = { subject: 'token:lea', user: 'lea', roles: [{ role: 'lead', queue: 'research' }] };

test('the table is that of docs/roles.md, which is compared with the code of the server', () => {
  const text = readFileSync(new URL('../../../docs/roles.md', import.meta.url), 'utf8');
  const table = text.split('<!-- roles -->')[1]!.split('<!-- /roles -->')[0]!.trim().split('\n');
  const cells = table.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  expect(cells[0]!.slice(2)).toEqual([...kRoles]);
  expect(cells.slice(2).map(([verb]) => verb)).toEqual(kVerbs);
  for (const [verb, , ...reach] of cells.slice(2))
    expect(kRoles.map((role) => reachOf(role, verb as never)).map((one) => (one === 'none' ? '-' : one))).toEqual(
      reach,
    );
});

test('a role reaches its queue and those below it, and own what is its own', () => {
  expect(may(lead, 'stop-job', { queue: 'research/nlp', owner: 'ann' })).toBe(true);
  expect(may(lead, 'stop-job', { queue: 'researchers', owner: 'ann' })).toBe(false);
  expect(may(lead, 'see-queue')).toBe(false);
  expect(may(member, 'stop-job', { queue: 'research/nlp', owner: 'ann' })).toBe(true);
  expect(may(member, 'stop-job', { queue: 'research/nlp', owner: 'bob' })).toBe(false);
  expect(may(member, 'submit', { queue: 'research/nlp' })).toBe(false);
  expect(mayAnywhere(member, 'submit')).toBe(true);
  expect(mayAnywhere(member, 'see-events')).toBe(false);
  expect(may(null, 'see-queue')).toBe(false);
});

test('what is not allowed is said with the roles that could', () => {
  expect(neededWords('see-events')).toBe('the role auditor or admin at the root');
  expect(neededWords('submit', { queue: 'a/b' })).toBe('the role admin at a/b or above');
  expect(roleWords(member)).toBe('member at research/nlp');
  const job = { id: 1, queue: 'research/nlp', user: 'bob', phase: 'pending', held: false, gpus: 1 } as JobSummary;
  expect(allows('cancel', job)).toBe(true);
  expect(allows('cancel', job, member)).toBe(false);
  expect(withheld(job, lead)).toEqual([]);
  expect(withheld(job, member).join(' ')).toContain('Cancel: that takes the role lead');
  expect(consequences('cancel', [job, { ...job, user: 'ann' }], member).join(' ')).toContain(
    '1 job of the 2 chosen stay as they are: your role does not allow it',
  );
});
