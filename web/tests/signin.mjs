// Signing in on the page with a real identity provider (npm's oidc-provider), in Debian's Chromium: by whom, as whom, out
// again; requests that other sites forge; a session whose access ends. The last line counts the checks.
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { Checks, kChromium, kPatienceMs } from './checks.mjs';
import { Server } from './server.mjs';

const config = `
cluster: sign-in-test
queues:
  research: {guaranteed: {gpus: 4}}
  other: {guaranteed: {gpus: 4}}
roles:
  - {subject: "group:corp:nlp", role: member, queue: research}
  - {subject: "user:corp:bob", role: member, queue: other}
`;
const kProvider = join(dirname(fileURLToPath(import.meta.url)), '../../tests/e2e/provider');

function skip(why) {
  console.log(`SKIPPED: ${why}`);
  process.exit(77);
}
if (!existsSync(kChromium)) skip(`there is no ${kChromium}; as root: apt-get install chromium`);
if (!process.env.BERTH || !existsSync(process.env.BERTH)) throw new Error('$BERTH is no program');
let home = '';
try {
  home = execFileSync(join(kProvider, 'modules'), { encoding: 'utf8' }).trim();
} catch (error) {
  skip(String(error.stdout || error).trim());
}

function freePort() {
  return new Promise((done) => {
    const one = createServer().listen(0, '127.0.0.1', () => {
      const { port } = one.address();
      one.close(() => done(port));
    });
  });
}
function answers(port) {
  return new Promise((done) => {
    const one = connect(port, '127.0.0.1');
    one.on('connect', () => (one.destroy(), done(true)));
    one.on('error', () => done(false));
  });
}

const directory = mkdtempSync(join(tmpdir(), 'berth-signin-'));
const [providerPort, port] = [await freePort(), await freePort()];
const issuer = `http://127.0.0.1:${providerPort}`;
const script = join(home, `provider-${process.pid}-${providerPort}.mjs`); // its imports are found from there
copyFileSync(join(kProvider, 'provider.mjs'), script);
const stateFile = join(directory, 'provider.json');
const state = { key: 'k1', algorithm: 'RS256', groups: { ada: ['nlp'], eve: [] }, token_s: 300 };
writeFileSync(stateFile, JSON.stringify({ ...state, page: `http://127.0.0.1:${port}/sign-in/answer` }));
const provider = spawn('node', [script, String(providerPort), stateFile], { stdio: 'inherit' });
const change = (changes) => fetch(`${issuer}/test/state`, { method: 'POST', body: JSON.stringify(changes) });
while (!(await answers(providerPort))) await sleep(50);

const issuers = join(directory, 'issuers.yaml');
writeFileSync(
  issuers,
  `issuers:
  - name: corp
    url: ${issuer}
    audience: berth
    clock_skew: 0s
    page: {client_id: berth-page, scope: openid groups}
`,
);
const server = new Server({ config, flags: ['--issuers', issuers], port });
async function cleanUp() {
  await server.stop();
  provider.kill();
  rmSync(script, { force: true });
  rmSync(directory, { recursive: true, force: true });
}
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => void cleanUp().finally(() => process.exit(1)));
await server.start();
if ((await fetch(server.url)).status === 404) {
  await cleanUp();
  skip('this program has no page');
}

const checks = new Checks();
const check = (holds, what) => checks.check(holds, what);
const browser = await chromium.launch({ executablePath: kChromium, args: ['--no-sandbox'] });
const complaints = [];

async function open() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(kPatienceMs);
  const page = await context.newPage();
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of (401|403|404)/.test(message.text())) complaints.push(message.text());
  });
  return page;
}
async function signIn(page, user, path = '') {
  await page.goto(`${server.url}/${path}`);
  await page.getByRole('button', { name: 'Sign in with corp' }).click();
  await page.getByLabel('Name').fill(user);
  await page.getByRole('button', { name: 'Yes' }).click();
}
// Those of berth: the provider's are of the same host.
const cookiesOf = async (page) =>
  (await page.context().cookies(server.url)).filter((one) => one.name.startsWith('berth'));
const sessionOf = async (page) => (await cookiesOf(page)).find((one) => one.name.startsWith('berth-session-'));
// A request as a page of this server would send it, with other headers.
const ask = (page, method, path, headers = {}, body = undefined) =>
  page.evaluate(
    async ([method, path, headers, body]) => {
      const answer = await fetch(path, { method, headers, body });
      return { status: answer.status, text: await answer.text() };
    },
    [method, path, headers, body],
  );
const kJob = JSON.stringify({ queue: 'research', command: 'sleep 100', cpus: 0.1, memory: '64MiB', name: 'by-ada' });
const kJson = { 'Content-Type': 'application/json' };

const ada = await open();
await checks.part('signing in', async () => {
  await signIn(ada, 'ada', '#/queues');
  await ada.getByRole('heading', { name: 'Queues' }).waitFor();
  check(ada.url() === `${server.url}/#/queues`, `the reader comes back to where it was: ${ada.url()}`);
  await ada.locator('.who').getByText('corp:ada').waitFor();
  const cookies = await cookiesOf(ada);
  check(cookies.length === 1, `one cookie is left: ${cookies.map((one) => one.name).join(' ')}`);
  const session = cookies[0];
  check(
    session.httpOnly && session.sameSite === 'Strict' && session.domain === '127.0.0.1' && session.path === '/',
    `the cookie is for this server alone: ${JSON.stringify({ ...session, value: '' })}`,
  );
  check((await ada.evaluate(() => document.cookie)) === '', 'no script can read it');
  check(
    (await ada.evaluate(() => JSON.stringify(localStorage) + JSON.stringify(sessionStorage))) === '{}{}',
    'nothing else is kept',
  );
});

await checks.part('what one may see and do', async () => {
  await ada.goto(`${server.url}/#/submit`);
  await ada.getByLabel('Command').fill('sleep 100');
  await ada.getByLabel('Name', { exact: true }).fill('by-ada');
  await ada.getByLabel('Queue').selectOption('research');
  await ada.getByRole('button', { name: 'Submit', exact: true }).click();
  await ada.getByRole('heading', { name: 'by-ada' }).waitFor();
  const job = (await server.ask('GET', '/v1/jobs')).items[0];
  check(job.user === 'corp:ada', `the job belongs to the one who signed in: ${job.user}`);
  const bob = await open();
  await signIn(bob, 'bob');
  await bob.getByText('No job waits or runs').waitFor();
  check((await ask(bob, 'GET', `/v1/jobs/${job.id}`)).status === 404, 'another one does not see it');
  await bob.context().close();
  await ada.goto(`${server.url}/#/jobs`);
  await ada.getByText('by-ada').waitFor();
  check(true, 'its own jobs are listed');
});

await checks.part('changes that other sites forge', async () => {
  const { change_token } = JSON.parse((await ask(ada, 'GET', '/sign-in/session')).text);
  const without = await ask(ada, 'POST', '/v1/jobs', kJson, kJob);
  check(without.status === 403 && without.text.includes('change-token'), `without the token: ${without.status}`);
  const wrong = await ask(
    ada,
    'POST',
    '/v1/jobs',
    { ...kJson, 'X-Berth-Change': change_token.replace(/./, 'x') },
    kJob,
  );
  check(wrong.status === 403, `with a wrong token: ${wrong.status}`);
  check((await ask(ada, 'POST', '/sign-in/out')).status === 403, 'nobody is signed out by another site');
  const with_token = await ask(ada, 'POST', '/v1/jobs', { ...kJson, 'X-Berth-Change': change_token }, kJob);
  check(with_token.status === 201, `with the token: ${with_token.status} ${with_token.text.slice(0, 200)}`);
  // Whatever a browser sends along: the server alone.
  const session = await sessionOf(ada);
  const cookie = `${session.name}=${session.value}`;
  const send = (headers, method = 'GET', path = '/v1/jobs') =>
    fetch(server.url + path, { method, headers: { cookie, ...headers } }).then((answer) => answer.status);
  check((await send({})) === 200, 'the cookie is the session');
  check((await send({ 'Sec-Fetch-Site': 'cross-site' })) === 403, 'a page of another site reads nothing');
  check(
    (await send({ 'Sec-Fetch-Site': 'same-site', 'X-Berth-Change': change_token }, 'POST', '/v1/nodes/n1/cordon')) ===
      403,
    'nor one of a neighbour',
  );
  check((await send({ cookie: `${cookie}; ${cookie}` })) === 401, 'a cookie that is given twice is none');
  check((await send({ cookie: `${session.name}=0` })) === 401, 'nor is a wrong one');
  check((await send({ Authorization: 'Bearer 0123456789abcdef0123456789abcdef' })) === 401, 'a token goes before it');
});

await checks.part('answers of an issuer that are not for this browser', async () => {
  const answer = (query, cookie = '') =>
    fetch(`${server.url}/sign-in/answer?${query}`, { redirect: 'manual', headers: { cookie } });
  for (const query of [
    'code=x&state=y',
    'state=',
    '',
    'error=access_denied&state=y',
    'code=x&state=y&iss=https://evil',
  ]) {
    const found = await answer(query, `berth-sign-in-${new URL(server.url).port}=1/corp/y/n/v/00`);
    check(
      found.status === 303 &&
        found.headers.get('location') === '/#/sign-in?failed=state' &&
        !/berth-session/.test(found.headers.get('set-cookie')),
      `${query}: ${found.status} ${found.headers.get('location')}`,
    );
  }
  const begun = await fetch(`${server.url}/sign-in/begin?issuer=corp`, { redirect: 'manual' });
  const to = new URL(begun.headers.get('location'));
  check(
    to.origin === issuer && to.searchParams.get('code_challenge_method') === 'S256',
    'the browser is sent to the issuer, with PKCE',
  );
  const kept = begun.headers.get('set-cookie').split(';')[0];
  check(!decodeURIComponent(to.search).includes(kept.split('/').at(-2)), 'what proves the code stays here');
  check(
    (await answer(`code=x&state=${to.searchParams.get('state')}&iss=https://evil`, kept)).headers
      .get('location')
      .endsWith('state'),
    'an answer of another issuer is refused',
  );
  check(
    (await answer(`code=x&state=${to.searchParams.get('state')}&iss=${issuer}`, kept)).headers
      .get('location')
      .endsWith('denied'),
    'and so is a code that the issuer did not give',
  );
  for (const path of [
    'begin?issuer=https://evil',
    'begin?issuer=corp&to=https://evil',
    'begin?issuer=other',
    'answer?next=//evil',
  ]) {
    const found = await fetch(`${server.url}/sign-in/${path}`, { redirect: 'manual' });
    check(!(found.headers.get('location') ?? '').includes('evil'), `${path} goes nowhere else: ${found.status}`);
  }
});

await checks.part('who is refused', async () => {
  const eve = await open();
  await signIn(eve, 'eve');
  await eve.getByText('have no role here').waitFor();
  check((await sessionOf(eve)) === undefined, 'without a role there is no session');
  await eve.context().close();
  const nobody = await open();
  await signIn(nobody, 'nobody');
  await nobody.getByText('refused the sign-in').waitFor();
  check(true, 'who says no at the issuer is told so');
  await nobody.context().close();
});

await checks.part('signing out', async () => {
  const session = await sessionOf(ada);
  const stolen = `${session.name}=${session.value}`;
  await ada.getByRole('button', { name: 'Sign out' }).click();
  await ada.getByRole('button', { name: 'Sign in with corp' }).waitFor();
  await checks.eventually('the cookie is gone', async () => (await sessionOf(ada)) === undefined);
  check(
    (await fetch(`${server.url}/v1/jobs`, { headers: { cookie: stolen } })).status === 401,
    'and so is the session',
  );
  await ada.reload();
  await ada.getByRole('button', { name: 'Sign in with corp' }).waitFor();
  check(true, 'also after a reload');
});

await checks.part('the issuer is asked anew when the ID token ends', async () => {
  await change({ token_s: 3 });
  const page = await open();
  await signIn(page, 'ada');
  await page.getByText('by-ada').first().waitFor();
  await sleep(4000);
  check((await ask(page, 'GET', '/v1/jobs')).status === 200, 'a session goes on as long as its issuer agrees');
  await change({ gone: ['ada'] });
  await page.getByText('Your session has ended').waitFor();
  check(true, 'and ends when it does not');
  await change({ gone: [], token_s: 300 });
  await page.context().close();
});

await checks.part('a session ends with its access', async () => {
  const page = await open();
  await signIn(page, 'ada');
  await page.getByText('by-ada').first().waitFor();
  const current = await server.ask('GET', '/v1/config');
  await server.ask('PUT', '/v1/config', {
    ...(current.config ?? current),
    roles: [{ subject: 'user:corp:bob', role: 'member', queue: 'other' }],
  });
  await page.getByText('Your session has ended').waitFor();
  check(true, 'a role that is taken away ends it at once');
  await page.context().close();
});

check(complaints.length === 0, `the browser complains of nothing: ${complaints.slice(0, 3).join(' | ')}`);
await browser.close();
await cleanUp();
console.log(`${checks.passed} passed, ${checks.failed} failed, 0 skipped`);
process.exit(checks.failed > 0 ? 1 : 0);
