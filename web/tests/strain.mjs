// The page under strain, in Debian's Chromium on real servers: a second tenant looks everywhere and learns nothing of the
// first; the server's certificate is changed under an open page; 100,000 rows; a log of megabytes with what terminals and
// browsers would act on. The last line counts the checks.
import { execFileSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { chromium } from 'playwright-core';
import { Checks, kChromium, kPatienceMs } from './checks.mjs';
import { serveFixture } from './fixture.mjs';
import { Server, serveWithPage } from './server.mjs';

const config = `
cluster: strain-test
queues:
  secretlab:
    guaranteed: {gpus: 4}
    queues: {hushhush: {guaranteed: {gpus: 4}}}
  product: {guaranteed: {gpus: 4}}
`;

if (!existsSync(kChromium)) {
  console.log(`SKIPPED: there is no ${kChromium}; as root: apt-get install chromium`);
  process.exit(77);
}
if (!process.env.BERTH || !existsSync(process.env.BERTH)) throw new Error('$BERTH is no program');

const { server } = await serveWithPage(config);
const checks = new Checks();
const check = (holds, what) => checks.check(holds, what);
const browser = await chromium.launch({ executablePath: kChromium, args: ['--no-sandbox'] });
const complaints = [];

async function open(token, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(kPatienceMs);
  const page = await context.newPage();
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.addInitScript((value) => sessionStorage.setItem('berth.token', value), token);
  return page;
}
const go = (page, path) => page.goto(`${server.url}/#/${path}`);

await checks.part('a second tenant sees none of it', async () => {
  const loop = ['sh', '-c', 'echo hush-output; while true; do sleep 0.2; done'];
  const theirs = await server.submit({
    name: 'hush-run',
    user: 'hush-ann',
    queue: 'secretlab/hushhush',
    gpus: 6, // beyond its guarantee: what the second tenant wants is borrowed by it
    labels: { 'hush-label': 'x' },
    comment: 'hush-comment',
    command: loop,
  });
  const waits = await server.submit({
    name: 'hush-waits',
    user: 'hush-ann',
    queue: 'secretlab/hushhush',
    gpus: 8,
    command: 'true',
  });
  await server.ask('PUT', '/v1/prices', {
    currency: 'EUR',
    prices: [{ valid_from: '2020-01-01', gpus: { 'H100-SXM5-80GB': { floor: 2, burst: 3 } }, lending_credit: 50 }],
  });
  const mine = await server.submit({
    name: 'mine',
    user: 'ben',
    queue: 'product',
    gpus: 4,
    time_limit: '10m',
    command: loop.with(2, 'sleep 600'),
  });
  const late = await server.submit({ name: 'late', user: 'ben', queue: 'product', gpus: 4, command: 'true' });
  for (const [name, role, user] of [
    ['ben', 'member', 'ben'],
    ['lea', 'lead', undefined],
    ['oda', 'org-admin', undefined],
    ['fin', 'finance', undefined],
  ]) {
    const { token } = await server.ask('POST', '/v1/tokens', { name, role, queue: 'product', expires_in_s: 600 });
    const page = await open(token);
    const told = []; // all that the server says to this page, and where
    page.on('response', (answer) => {
      const where = answer.url();
      told.push(
        answer
          .text()
          .then((text) => ({ where, text }))
          .catch(() => ({ where, text: '' })), // a stream, or one that the page gave up
      );
    });
    const seen = [];
    const look = async (path) => {
      await go(page, path);
      await page.locator('header').waitFor();
      await sleep(400);
      seen.push({ path, text: await page.locator('body').innerText() });
    };
    for (const path of [
      'jobs',
      'jobs?phase=all',
      'submit',
      'queues',
      'queues/product',
      'fleet',
      'bills',
      'bills?by=job',
    ])
      await look(path);
    for (const path of [`jobs/${mine.id}`, `jobs/${late.id}`, 'waste', 'health', 'decisions', 'past?at=20'])
      await look(path);
    // and what it guesses
    for (const path of [`jobs/${theirs.id}`, `jobs/${waits.id}`, 'queues/secretlab%2Fhushhush']) await look(path);
    await look('bills?queue=secretlab');
    await look('jobs?queue=secretlab');
    for (const path of [
      `/v1/jobs/${theirs.id}/why`,
      `/v1/jobs/${theirs.id}/logs`,
      `/v1/jobs/${theirs.id}?at=20`,
      '/v1/jobs?at=20&limit=1000',
      '/v1/usage?at=20',
      '/v1/bill?at=20&by=job&invoice=lines',
      `/v1/jobs/${late.id}/why?at=20`,
    ])
      await page.evaluate(
        ([where, bearer]) =>
          fetch(where, { headers: { Authorization: `Bearer ${bearer}` } }).then((answer) => answer.text()),
        [path, token],
      );
    const answers = await Promise.all(told);
    check(answers.length > 30, `${role}: it has asked for things: ${answers.length}`);
    const leaks = answers.filter(({ text }) => /hush-/.test(text));
    check(leaks.length === 0, `${role}: what the server tells: ${leaks.map(({ where }) => where).join(' ')}`);
    // The name of a queue comes back in the answer to whoever asks for that very queue.
    const named = answers.filter(({ where, text }) => !where.includes('secretlab') && /secretlab|hushhush/.test(text));
    check(
      named.length === 0,
      `${role}: it learns the name of a queue from ${named.map(({ where }) => where).join(' ')}`,
    );
    const shown = seen.filter(({ text }) => /hush-/.test(text));
    check(shown.length === 0, `${role}: what the page shows: ${shown.map(({ path }) => path).join(' ')}`);
    await page.context().close();
  }
  for (const { id } of [theirs, waits, mine, late]) await server.ask('DELETE', `/v1/jobs/${id}`).catch(() => undefined);
});

await checks.part('a log of megabytes, with what terminals and browsers would act on', async () => {
  const hostile = String.raw`printf '<img src=x onerror=window.pwned=1>\033]0;title\007\033[2J\001\302\233 \327\251\327\234\327\225\327\235 \342\200\256 end\n'`;
  const { id } = await server.submit({
    name: 'megabytes',
    queue: 'product',
    command: [
      'sh',
      '-c',
      `head -c 3000000 /dev/zero | tr '\\0' x; echo; yes 'a line of the output' | head -n 120000; ${hostile}`,
    ],
  });
  const page = await open(server.token);
  await go(page, `jobs/${id}`);
  await page.getByText('This is all of it.').waitFor();
  const log = page.locator('.log');
  await log.getByText('end', { exact: false }).last().waitFor();
  const last = (await log.locator('.text').last().innerText()).trim();
  check(last.startsWith('<img src=x onerror=window.pwned=1>'), `markup is text: ${last}`);
  check(
    last.includes('⟨U+202E⟩') && last.includes('שלום'),
    `what turns the direction of writing is written out: ${last}`,
  );
  // eslint-disable-next-line no-control-regex
  check(
    !/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(last),
    `no control character is left: ${JSON.stringify(last)}`,
  );
  check((await page.evaluate(() => window.pwned)) === undefined, 'nothing of it is run');
  await page.getByRole('button', { name: 'Read from the start' }).click();
  await page.getByText('This is all of it.').waitFor();
  await page.getByText('bytes before this are not shown').waitFor({ state: 'detached' });
  await page.getByLabel('Search the log').fill('of the output');
  await checks.eventually('all of 5 MB is searched', async () =>
    (await page.locator('.controls').innerText()).includes('120,000 lines'),
  );
  await page.getByLabel('Search the log').fill('more characters in this line');
  await page.getByLabel('only these').check();
  await log.getByText('2,998,000 more characters').or(log.getByText('2998000 more characters')).waitFor();
  check(true, 'a line of 3 MB is cut, with how much of it is missing');
  check((await log.locator('.text').count()) < 200, 'only what is in sight is in the document');
  check((await page.title()).includes('berth'), 'the title is that of the page');
  await page.context().close();
});

await checks.part('100,000 rows', async () => {
  const fixture = await serveFixture(server.url, { nodes: 8, queues: 20 });
  const page = await open('0123456789abcdef');
  await page.goto(fixture.url);
  await page.locator('[data-row]').first().waitFor();
  check((await page.locator('main').innerText()).includes('more follow as you scroll'), 'what is not loaded is told');
  const { waiting, shown } = await page.evaluate(async () => {
    const scroller = document.querySelector('.scroller');
    for (let index = 0; index < 60; index += 1) {
      scroller.scrollTop = scroller.scrollHeight;
      await new Promise((done) => setTimeout(done, 20));
    }
    return { waiting: scroller.scrollHeight, shown: document.querySelectorAll('[data-row]').length };
  });
  check(waiting > 33 * 1000 && shown < 150, `rows come as one scrolls, and only those in sight are there: ${shown}`);
  // The first job of all is on the last page.
  await page.getByLabel('Search', { exact: true }).fill(fixture.fleet.jobs[0].name);
  await page.getByText(/of 1\d\d,\d{3} match\./).waitFor({ timeout: 120_000 });
  const total = fixture.fleet.jobs.length.toLocaleString('en-GB');
  check(
    (await page.locator('main').innerText()).includes(`of ${total} match.`),
    `all ${total} are searched, and none is left out in silence`,
  );
  const names = await page.locator('[data-row] .name').allInnerTexts();
  check(
    names.length > 0 && names.every((name) => name.includes(fixture.fleet.jobs[0].name)),
    `what was searched for is found: ${names.slice(0, 3).join(' ')}`,
  );
  await page.context().close();
  fixture.close();
});

await checks.part('the certificate is changed under the open page', async () => {
  const other = new Server({ config });
  const file = (name) => join(other.directory, name);
  const certify = (name) =>
    execFileSync(
      'openssl',
      `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout ${file(`${name}.key`)} -out ${file(`${name}.pem`)}`.split(
        ' ',
      ),
      { stdio: 'ignore' },
    );
  for (const name of ['server', 'next']) certify(name);
  other.flags = ['--tls-cert', file('server.pem'), '--tls-key', file('server.key')];
  await other.start();
  const fingerprint = () =>
    new Promise((done, fail) => {
      const socket = connect({ host: '127.0.0.1', port: other.port, rejectUnauthorized: false }, () => {
        done(socket.getPeerCertificate().fingerprint256);
        socket.destroy();
      });
      socket.on('error', fail);
    });
  const before = await fingerprint();
  const page = await open(other.token, { ignoreHTTPSErrors: true });
  await page.goto(`${other.url}/#/jobs`);
  await page.getByText('live', { exact: true }).waitFor();
  let lost = false;
  page.on('requestfailed', (request) => (lost ||= !request.failure()?.errorText.includes('ABORTED')));
  const submit = (name) =>
    page.evaluate(
      async ([token, job]) => {
        const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
        return (await fetch('/v1/jobs', { method: 'POST', headers, body: JSON.stringify(job) })).status;
      },
      [other.token, { name, queue: 'product', hold: true, command: 'true' }],
    );
  check((await submit('under-the-old-one')) === 201, 'a job is submitted under the old certificate');
  await page.getByText('under-the-old-one').waitFor();
  renameSync(file('next.key'), file('server.key'));
  renameSync(file('next.pem'), file('server.pem'));
  await checks.eventually('new connections get the new certificate', async () => (await fingerprint()) !== before);
  check((await submit('under-the-new-one')) === 201, 'and one under the new one');
  await page.getByText('under-the-new-one').waitFor();
  check((await page.getByText('The server has not answered since').count()) === 0, 'the open page goes on');
  check(!lost, 'none of its requests failed');
  await page.reload();
  await page.getByText('under-the-new-one').waitFor();
  check(true, 'and it is loaded again over the new one');
  await page.context().close();
  await other.kill();
  rmSync(other.directory, { recursive: true, force: true });
});

check(complaints.length === 0, `the browser complains of nothing: ${complaints.slice(0, 3).join(' | ')}`);
await browser.close();
await server.stop();
console.log(`${checks.passed} passed, ${checks.failed} failed, 0 skipped`);
process.exit(checks.failed > 0 ? 1 : 0);
