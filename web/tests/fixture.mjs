// A large cluster that is not there, for measuring the page: the real page, from the program, and an API that answers from
// a fleet made up by a seed. It answers what the page asks for, with the members that the real API has.
//
//   node fixture.mjs PAGE_URL [NODES] [PENDING_JOBS] [QUEUES]     prints its own address
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const kTeams = ['research', 'product', 'vision', 'speech', 'search', 'ads', 'robotics', 'platform'];
const kNames = [
  'llama-sft',
  'vit-large',
  'ranker',
  'embeddings',
  'eval',
  'tokenizer',
  'rlhf',
  'distill',
  'sweep',
  'notebook',
  'whisper-ft',
  'ocr',
];
const kUsers = ['ann', 'bob', 'chris', 'dana', 'emil', 'fatima', 'grace', 'hugo', 'ines', 'jan'];
const kReasons = [
  'insufficient-resources',
  'insufficient-resources',
  'quota-max',
  'fragmented',
  'would-delay-reservation',
  'user-limit',
  'held',
  'never-fits',
];
const kModels = ['H100-SXM5-80GB', 'H100-SXM5-80GB', 'A100-SXM4-80GB', 'L40S-48GB'];

function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export function makeFleet({
  nodes: nodeCount = 6250,
  pending = 100_000,
  queues: queueCount = 1000,
  now = Date.now(),
} = {}) {
  const next = random(7);
  const iso = (secondsAgo) => new Date(now - secondsAgo * 1000).toISOString();
  const leaves = Array.from(
    { length: queueCount - kTeams.length },
    (_, index) =>
      `${kTeams[index % kTeams.length]}/project-${String(Math.floor(index / kTeams.length)).padStart(3, '0')}`,
  );
  const jobs = [];
  const job = (phase, gpus, more) => {
    const id = jobs.length + 1;
    const age = 60 + next(86_400);
    jobs.push({
      id,
      name: `${kNames[next(kNames.length)]}-${id}`,
      queue: leaves[Math.floor(leaves.length * (next(1000) / 1000) ** 2)] ?? leaves[0],
      user: kUsers[next(kUsers.length)],
      kind: 'gang',
      class: ['training', 'training', 'batch', 'dev', 'inference'][next(5)],
      priority: [1000, 500, 500, 100][next(4)],
      priority_class: '',
      phase,
      held: false,
      submitted: iso(age),
      waiting_since: iso(age),
      gpus,
      tasks_total: Math.max(1, Math.ceil(gpus / 8)),
      attempt: phase === 'running' ? 1 : 0,
      attempts: phase === 'running' ? 1 : 0,
      failures: 0,
      gpu_seconds: phase === 'running' ? gpus * 60 * (1 + next(500)) : 0,
      nodes: [],
      ...more,
    });
    return jobs.at(-1);
  };
  const nodes = [];
  let current = null;
  let left = 0;
  for (let index = 0; index < nodeCount; index += 1) {
    const rack = Math.floor(index / 16);
    const status = next(400) === 0 ? 'unknown' : 'ready';
    const cordoned = next(60) === 0;
    const name = `gpu-${String(index).padStart(4, '0')}`;
    const taken = new Set();
    const gpus = Array.from({ length: 8 }, (_, at) => {
      const healthy = next(500) !== 0;
      if (left === 0 && !cordoned && next(12) !== 0) {
        left = [1, 2, 4, 8, 8, 16, 32, 64, 128][next(9)];
        current = job('running', left, { started: iso(60 + next(40_000)), within: next(4) !== 0 });
      }
      const used = healthy && status === 'ready' && !cordoned && left > 0;
      if (used) {
        left -= 1;
        taken.add(current.id);
        if (current.nodes.at(-1) !== name) current.nodes.push(name);
      }
      const gpu = {
        index: at,
        uuid: `GPU-${index}-${at}`,
        model: kModels[Math.floor(rack / 8) % kModels.length],
        memory_mib: 81_559,
        numa: at < 4 ? 0 : 1,
        nvlink_island: 0,
        healthy,
        simulated: false,
        free: used || !healthy ? 0 : 1,
        nominated: !used && healthy && next(40) === 0 ? 1 : 0,
        jobs: used ? [current.id] : [],
      };
      return used ? { ...gpu, driven_pct: 20 + next(80) } : gpu;
    });
    nodes.push({
      name,
      pool: Math.floor(rack / 8) % 5 === 4 ? 'burst' : 'main',
      cell: 'local',
      status,
      cordoned,
      draining: cordoned && next(2) === 0,
      why: '',
      maintenance: [],
      labels: {},
      taints: [],
      topology: [`b${Math.floor(rack / 16) + 1}`, `r${(rack % 16) + 1}`],
      cpus: 128,
      cpus_free: 128 - 12 * taken.size,
      memory_mib: 2_097_152,
      memory_free_mib: 1_048_576,
      gpus,
      gpus_total: 8,
      gpus_free: gpus.reduce((sum, gpu) => sum + gpu.free, 0),
      tasks: [...taken].map((id) => ({ job: id, task: 0 })),
      containers: true,
      image_count: 12,
      lease: 1,
    });
  }
  if (current) current.gpus -= left; // the fleet ended before the last job
  const running = jobs.length;
  for (let index = 0; index < pending; index += 1) {
    const reason = kReasons[next(kReasons.length)];
    job('pending', [1, 1, 2, 4, 8, 8, 16, 64, 256][next(9)], { reason, held: reason === 'held' });
  }
  const queues = queueViews(leaves, jobs, nodes);
  const total = nodes.length * 8;
  const free = nodes.reduce((sum, node) => sum + (node.status === 'ready' ? node.gpus_free : 0), 0);
  const allocated = jobs.reduce((sum, one) => sum + (one.phase === 'running' ? one.gpus : 0), 0);
  const cluster = {
    name: 'fixture',
    version: '0.1.0',
    config_version: 3,
    seq: 1000,
    time: new Date(now).toISOString(),
    simulated_gpus: false,
    warnings: [],
    log: { appends: 1, records: 1, fsyncs: 1, check: 'sound', checked: 1 },
    nodes: nodes.length,
    gpus: total,
    gpus_free: free,
    gpus_allocated: allocated,
    gpus_unhealthy: nodes.reduce((sum, node) => sum + node.gpus.filter((gpu) => !gpu.healthy).length, 0),
    jobs_pending: pending,
    jobs_running: running,
    jobs_stopping: 0,
    allocated_pct: Math.round((allocated / total) * 1000) / 10,
    gpus_stranded: Math.min(212.4, free / 2),
    fragmentation_alarm: false,
  };
  return { nodes, jobs, queues, cluster };
}

function queueViews(leaves, jobs, nodes) {
  const total = nodes.length * 8;
  const sums = new Map();
  const add = (path, key, value) => {
    const of = sums.get(path) ?? { used: 0, running: 0, pending: 0, borrowed: 0 };
    of[key] += value;
    sums.set(path, of);
  };
  for (const job of jobs) {
    for (const path of [job.queue, job.queue.split('/')[0]]) {
      if (job.phase === 'pending') add(path, 'pending', 1);
      else {
        add(path, 'running', 1);
        add(path, 'used', job.gpus);
        if (!job.within) add(path, 'borrowed', job.gpus);
      }
    }
  }
  return [...new Set(leaves.map((leaf) => leaf.split('/')[0])), ...leaves].toSorted().map((path) => {
    const leaf = path.includes('/');
    const of = sums.get(path) ?? { used: 0, running: 0, pending: 0, borrowed: 0 };
    const floor = leaf ? Math.round((total * 0.7) / leaves.length) : Math.round((total * 0.7) / kTeams.length);
    const amounts = (gpus) => (gpus === undefined ? { models: {} } : { gpus, models: {} });
    return {
      path,
      parent: leaf ? path.split('/')[0] : '',
      depth: leaf ? 2 : 1,
      leaf,
      weight: 1,
      policy: 'best-effort',
      trust_domain: '',
      guaranteed: amounts(floor),
      effective: amounts(floor),
      max: amounts(leaf ? floor * 12 : floor * 2),
      lending_limit: amounts(),
      max_per_user: {},
      usage: { gpus: of.used, models: {} },
      within: { gpus: Math.min(floor, of.used - of.borrowed), models: {} },
      borrowed_gpus: of.used - Math.min(floor, of.used - of.borrowed),
      burst_gpus: 0,
      nominated_gpus: 0,
      pending: of.pending,
      running: of.running,
      dominant_share: (of.used / total).toFixed(4),
    };
  });
}

// Serves it. `page` is the address of a berth whose page is passed on. tick() makes one more job start, as an event.
export async function serveFixture(page, options) {
  const fleet = makeFleet(options);
  const { jobs, nodes, queues, cluster } = fleet;
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const streams = new Set();

  const listJobs = (query) => {
    let found = jobs;
    for (const key of ['phase', 'user']) if (query.get(key)) found = found.filter((job) => job[key] === query.get(key));
    const queue = query.get('queue');
    if (queue) found = found.filter((job) => job.queue === queue || job.queue.startsWith(`${queue}/`));
    const sort = query.get('sort') ?? 'id';
    const key = sort.replace(/^-/, '');
    const way = sort.startsWith('-') ? -1 : 1;
    if (sort === '-id') found = found.toReversed();
    else if (sort !== 'id')
      found = found.toSorted((a, b) => way * (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : a.id - b.id));
    const from = Number(query.get('cursor') ?? 0);
    const limit = Number(query.get('limit') ?? 100);
    return {
      items: found.slice(from, from + limit),
      next_cursor: from + limit < found.length ? String(from + limit) : null,
      seq: cluster.seq,
    };
  };
  const answers = [
    [/^\/v1\/identity$/, () => ({ subject: 'admin', user: 'admin', roles: [{ role: 'admin', queue: '' }] })],
    [/^\/v1\/cluster$/, () => ({ ...cluster, time: new Date().toISOString() })],
    [/^\/v1\/jobs$/, (_, query) => listJobs(query)],
    [
      /^\/v1\/jobs\/(\d+)$/,
      ([, id]) => ({ ...byId.get(Number(id)), tasks: [], past: [], spec: { name: byId.get(Number(id)).name } }),
    ],
    [
      /^\/v1\/jobs\/(\d+)\/why$/,
      ([, id]) => ({
        id: Number(id),
        phase: 'pending',
        code: byId.get(Number(id)).reason,
        never: false,
        headline: '8 GPUs are free on no node',
        details: [],
        quota: '',
        preemption: '',
        remedies: [],
      }),
    ],
    [/^\/v1\/queues$/, () => ({ items: queues, seq: cluster.seq })],
    [/^\/v1\/queues\/([^/]+)$/, ([, path]) => queues.find((queue) => queue.path === decodeURIComponent(path))],
    [/^\/v1\/queues\/([^/]+)\/share$/, () => ({ path: '', lines: ['gpus: 1 of 2 used'] })],
    [
      /^\/v1\/nodes$/,
      (_, query) => ({
        items: nodes.slice(
          Number(query.get('cursor') ?? 0),
          Number(query.get('cursor') ?? 0) + Number(query.get('limit')),
        ),
        next_cursor:
          Number(query.get('cursor') ?? 0) + Number(query.get('limit')) < nodes.length
            ? String(Number(query.get('cursor') ?? 0) + Number(query.get('limit')))
            : null,
        seq: cluster.seq,
      }),
    ],
    [/^\/v1\/nodes\/([^/]+)$/, ([, name]) => nodes.find((node) => node.name === decodeURIComponent(name))],
    [/^\/v1\/events$/, () => ({ items: [], next_from: cluster.seq + 1, seq: cluster.seq })],
    [/^\/v1\/advice$/, () => ({ time: '', items: [], left_out: [], complete: true, seq: cluster.seq })],
    [/^\/v1\/capacity$/, () => ({ time: '', idle_for_s: 600, items: [], complete: true, seq: cluster.seq })],
    [/^\/v1\/config$/, () => ({ version: 3, config: {}, yaml: '' })],
    [
      /^\/v1\/usage$/,
      (_, query) => ({
        from: query.get('from'),
        to: query.get('to'),
        items: [{ queue: 'research/a', user: 'ann', gpu_model: 'H100', kind: 'within', gpu_seconds: 80 }],
        idle_gpu_seconds: 15,
        down_gpu_seconds: 5,
        capacity_gpu_seconds: 100,
      }),
    ],
  ];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://fixture');
    if (url.pathname === '/v1/events' && url.searchParams.get('follow') === 'true') {
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
      response.flushHeaders();
      streams.add(response);
      request.on('close', () => streams.delete(response));
      return;
    }
    if (url.pathname === '/metrics') return void response.end('');
    for (const [pattern, answer] of answers) {
      const match = pattern.exec(url.pathname);
      if (!match) continue;
      response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
      return void response.end(JSON.stringify(answer(match, url.searchParams)));
    }
    // The page itself, as the program serves it: compressed.
    const { request: askPage } = await import('node:http');
    askPage(
      page + request.url,
      { headers: { 'accept-encoding': request.headers['accept-encoding'] ?? '' } },
      (from) => {
        response.writeHead(from.statusCode, from.headers);
        from.pipe(response);
      },
    ).end();
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const waiting = jobs.filter((job) => job.phase === 'pending');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    fleet,
    tick() {
      const job = waiting.pop();
      if (!job) return;
      Object.assign(job, {
        phase: 'running',
        started: new Date().toISOString(),
        reason: undefined,
        held: false,
        attempt: 1,
        attempts: 1,
        within: true,
      });
      cluster.seq += 1;
      cluster.jobs_pending -= 1;
      cluster.jobs_running += 1;
      const line = JSON.stringify({
        seq: cluster.seq,
        time: job.started,
        kind: 'attempt-started',
        job: job.id,
        attempt: 1,
        placements: [],
        within: 1,
      });
      for (const stream of streams) stream.write(`${line}\n`);
    },
    close() {
      for (const stream of streams) stream.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [page, nodes, pending, queues] = process.argv.slice(2);
  const options = { nodes: Number(nodes ?? 6250), pending: Number(pending ?? 100_000), queues: Number(queues ?? 1000) };
  console.log((await serveFixture(page, options)).url);
}
