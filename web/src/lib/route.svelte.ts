// Where the reader is: #/screen/argument?filters. All of it lies behind the #, so that the server never sees it, and what
// one looks at can be sent to a colleague.

export interface Route {
  screen: string; // jobs, job, submit, queues, queue, fleet, node, bills, waste, health, decisions, past, trying
  argument: string;
  query: URLSearchParams;
}

const kOne: Record<string, string> = { jobs: 'job', queues: 'queue', fleet: 'node' };

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [list = '', ...rest] = path.split('/');
  let argument = '';
  try {
    argument = decodeURIComponent(rest.join('/'));
  } catch {
    argument = rest.join('/');
  }
  const screen = argument === '' ? list || 'jobs' : (kOne[list] ?? list);
  return { screen, argument, query: new URLSearchParams(query) };
}

export const href = {
  jobs: (query: Record<string, string> = {}): string => `#/jobs${tail(query)}`,
  job: (id: number): string => `#/jobs/${id}`,
  queue: (path: string): string => `#/queues/${encodeURIComponent(path)}`,
  fleet: (color = ''): string => `#/fleet${tail(color === '' ? {} : { color })}`,
  bills: (query: Record<string, string> = {}): string => `#/bills${tail(query)}`,
  decisions: (query: Record<string, string> = {}): string => `#/decisions${tail(query)}`,
  node: (name: string): string => `#/fleet/${encodeURIComponent(name)}`,
  submit: '#/submit',
};

function tail(query: Record<string, string>): string {
  const text = new URLSearchParams(query).toString();
  return text === '' ? '' : `?${text}`;
}

class Router {
  current = $state.raw(parseRoute(location.hash));

  constructor() {
    addEventListener('hashchange', () => {
      this.current = parseRoute(location.hash);
    });
  }

  go(hash: string): void {
    location.hash = hash;
  }

  // Changes filters in the address, without a step to go back to for each letter typed.
  setQuery(changes: Record<string, string>): void {
    const query = new URLSearchParams(this.current.query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === '') query.delete(name);
      else query.set(name, value);
    }
    const path = location.hash.split('?')[0] || '#/jobs';
    const text = query.toString();
    history.replaceState(null, '', text === '' ? path : `${path}?${text}`);
    this.current = parseRoute(location.hash);
  }
}

export const router = new Router();
