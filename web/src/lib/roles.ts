// What a role allows: the table of docs/roles.md (a test compares them). The server decides; the page asks here so that it
// offers nothing that would be refused, and can say which role could do it.

export const kRoles = [
  'viewer',
  'member',
  'lead',
  'org-admin',
  'finance',
  'auditor',
  'operator',
  'admin',
  'metrics',
] as const;
export type Role = (typeof kRoles)[number];
export type Reach = 'none' | 'own' | 'all'; // own: only what belongs to the subject's own user

// In the order of kRoles: - none, o own, a all.
const kTable = {
  'see-queue': 'aaaaaaaa-',
  'see-job': 'aoaa-aaa-',
  'read-log': '-oa----a-',
  submit: '-ooo---a-',
  'stop-job': '-oaa--aa-',
  'hold-job': '-oaa--aa-',
  'prioritize-job': '-oaa---a-',
  'move-job': '------aa-',
  'report-checkpoint': '-ooo---a-',
  'see-usage': 'aoaaaaaa-',
  'see-nodes': '-----aaa-',
  'manage-nodes': '------aa-',
  'see-config': '-----aaa-',
  'change-config': '-------a-',
  'see-events': '-----a-a-',
  'see-server': '-----aaa-',
  'see-metrics': '-----aaaa',
  'confirm-clock': '------aa-',
  'manage-tokens': '-------a-',
  'manage-billing': '----a--a-',
  'report-quantities': '----a-aa-',
  'manage-rules': '---a---a-',
  'change-queue': '---a--aa-',
  'manage-roles': '--aa---a-',
  'see-audit': '---a-a-a-',
  'break-glass': '------aa-',
  'open-shell': '-ooo---a-',
} as const;
export type Verb = keyof typeof kTable;
export const kVerbs = Object.keys(kTable) as Verb[];

export interface Identity {
  subject: string; // user:ada, token:ci
  user: string; // the owner of the jobs that it submits
  roles: { role: Role; queue: string }[]; // the empty queue is the root
}

// A queue, or a job of it. The root is the empty queue.
export interface Subject {
  queue?: string;
  owner?: string;
}

export function reachOf(role: Role, verb: Verb): Reach {
  const letter = kTable[verb][kRoles.indexOf(role)];
  return letter === 'a' ? 'all' : letter === 'o' ? 'own' : 'none';
}

function isAtOrBelow(path: string, ancestor: string): boolean {
  return ancestor === '' || path === ancestor || path.startsWith(`${ancestor}/`);
}

export function may(identity: Identity | null, verb: Verb, { queue = '', owner = '' }: Subject = {}): boolean {
  if (!identity) return false;
  return identity.roles.some((binding) => {
    const reach = isAtOrBelow(queue, binding.queue) ? reachOf(binding.role, verb) : 'none';
    return reach === 'all' || (reach === 'own' && owner !== '' && owner === identity.user);
  });
}

// Returns true if some role of the subject has the verb at some queue, though perhaps only on what is its own.
export function mayAnywhere(identity: Identity | null, verb: Verb): boolean {
  return identity?.roles.some((binding) => reachOf(binding.role, verb) !== 'none') ?? false;
}

const listed = (words: string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

// "the role operator or admin at the root", "the role lead, org-admin or admin at research or above"
export function neededWords(verb: Verb, { queue = '' }: Subject = {}): string {
  const able = kRoles.filter((role) => reachOf(role, verb) === 'all');
  const roles = able.length > 0 ? able : kRoles.filter((role) => reachOf(role, verb) === 'own');
  return `the role ${listed(roles)} ${queue === '' ? 'at the root' : `at ${queue} or above`}`;
}

// "member at research/nlp, auditor at the root"
export function roleWords(identity: Identity): string {
  const words = identity.roles.map(({ role, queue }) => `${role} at ${queue === '' ? 'the root' : queue}`);
  return words.length > 0 ? words.join(', ') : 'no role';
}
