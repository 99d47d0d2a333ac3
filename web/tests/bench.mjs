// The page at size, in Chromium: 50,000 GPUs, 100,000 pending jobs, 1,000 queues (fixture.mjs). Prints one JSON object.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { serveFixture } from './fixture.mjs';
import { Server } from './server.mjs';

if (!existsSync('/usr/bin/chromium'))
  throw new Error('there is no /usr/bin/chromium; as root: apt-get install chromium');
const kLiveS = 20;
const kEventsPerS = 10;

const server = new Server({ config: 'cluster: bench\nqueues: {a: null}\n' });
await server.start();
const fixture = await serveFixture(server.url, {});
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function open() {
  const context = await browser.newContext({ viewport: { width: 1360, height: 820 } });
  await context.addInitScript(() => {
    sessionStorage.setItem('berth.token', '0123456789abcdef');
  });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  await devtools.send('Network.enable');
  const network = { bytes: 0 };
  devtools.on('Network.dataReceived', (event) => (network.bytes += event.encodedDataLength));
  return { page, network, devtools };
}

// Opening the page: three times, the median.
const openings = [];
for (let round = 0; round < 3; round += 1) {
  const { page, network } = await open();
  const began = performance.now();
  await page.goto(fixture.url);
  await page.locator('[data-row]').first().waitFor();
  const rows = performance.now() - began;
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null);
  await sleep(500);
  openings.push({ paint, rows, bytes: network.bytes });
  await page.context().close();
}
const median = (key) => openings.map((one) => one[key]).toSorted((a, b) => a - b)[1];

// Scrolling through the list, which loads more as it goes, and then events.
const { page, network, devtools } = await open();
await page.goto(fixture.url);
await page.locator('[data-row]').first().waitFor();
await browser.startTracing(page, {
  categories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'],
});
const frames = await page.evaluate(async () => {
  const scroller = document.querySelector('.scroller');
  const times = [];
  let last = performance.now();
  for (let index = 0; index < 240; index += 1) {
    scroller.scrollTop += 300;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times.toSorted((a, b) => a - b);
});
const trace = JSON.parse((await browser.stopTracing()).toString()).traceEvents;
// Processor time of the page's main thread: what another program does on this machine is not in it.
const main = trace.find(
  (event) =>
    event.name === 'thread_name' &&
    event.args?.name === 'CrRendererMain' &&
    trace.some((one) => one.tid === event.tid && one.pid === event.pid && one.name === 'FireAnimationFrame'),
);
const onMain = trace.filter(
  (event) => main && event.pid === main.pid && event.tid === main.tid && event.tdur !== undefined,
);
const tasks = onMain
  .filter((event) => event.name === 'RunTask' || event.name === 'ThreadControllerImpl::RunTask')
  .map((event) => event.tdur / 1000);
const scripts = onMain
  .filter((event) => event.name === 'FireAnimationFrame' || event.name === 'EventDispatch')
  .map((event) => event.tdur / 1000)
  .toSorted((a, b) => a - b);
const longTasks = tasks.filter((duration) => duration > 50).length;
const rowsLoaded = await page.locator('[data-row]').last().getAttribute('data-row');
await page.evaluate(() => (document.querySelector('.scroller').scrollTop = 0));
await sleep(1000);
const before = network.bytes;
await devtools.send('HeapProfiler.collectGarbage');
const heap = async () => (await devtools.send('Runtime.getHeapUsage')).usedSize;
const heapBefore = await heap();
for (let index = 0; index < kLiveS * kEventsPerS; index += 1) {
  fixture.tick();
  await sleep(1000 / kEventsPerS);
}
const liveBytes = network.bytes - before;
await devtools.send('HeapProfiler.collectGarbage');
const growth = (await heap()) - heapBefore;

let violations = 0;
for (const screen of ['jobs', 'queues', 'fleet', 'health', 'decisions', 'submit']) {
  await page.goto(`${fixture.url}/#/${screen}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await sleep(screen === 'fleet' ? 6000 : 1000);
  await page.evaluate(axeSource);
  violations += (await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))).violations
    .length;
}

const round = (value, digits = 1) => Math.round(value * 10 ** digits) / 10 ** digits;
console.log(
  JSON.stringify({
    benchmark: 'web',
    gpus: fixture.fleet.cluster.gpus,
    pending_jobs: 100_000,
    queues: fixture.fleet.queues.length,
    first_paint_ms: round(median('paint')),
    first_rows_ms: round(median('rows')),
    transfer_kb: round(median('bytes') / 1024),
    scroll_frame_p95_ms: round(frames[Math.floor(frames.length * 0.95)]),
    script_per_frame_p95_ms: scripts.length > 0 ? round(scripts[Math.floor(scripts.length * 0.95)]) : null,
    tasks: tasks.length,
    longest_task_ms: round(Math.max(0, ...tasks)),
    scroll_rows: Number(rowsLoaded),
    long_tasks: longTasks,
    live_events_per_s: kEventsPerS,
    live_kb_per_s: round(liveBytes / 1024 / kLiveS),
    memory_growth_mb: round(growth / 1024 / 1024, 2),
    axe_violations: violations,
  }),
);
await browser.close();
fixture.close();
await server.stop();
process.exit(0);
