// The page in Debian's Chromium, on a real server with real jobs. Each check says what holds; the last line counts them.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { serveWithPage } from './server.mjs';

const kChromium = '/usr/bin/chromium';
const kPatienceMs = 20_000;
const config = `
cluster: page-test
gpu_models:
  H100-SXM5-80GB: {weight: 1.0, memory: 80GiB}
priority_classes:
  production: 1000
  training: {value: 500, default: true}
queues:
  research:
    guaranteed: {gpus: 4}
    queues:
      nlp: {guaranteed: {gpus: 4}, max: {gpus: 6}}
  product: {guaranteed: {gpus: 4}}
scheduling: {grace: 1s, min_runtime: 0s}
`;

if (!existsSync(kChromium)) {
  console.log(`SKIPPED: there is no ${kChromium}; as root: apt-get install chromium`);
  process.exit(77);
}
if (!process.env.BERTH || !existsSync(process.env.BERTH)) throw new Error('$BERTH is no program');

let passed = 0;
let failed = 0;
function check(holds, what) {
  if (holds) passed += 1;
  else {
    failed += 1;
    console.log(`FAILED: ${what}`);
  }
}
async function part(name, run) {
  try {
    await run();
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}: ${String(error.stack ?? error).slice(0, 1500)}`);
  }
}
async function eventually(what, holds) {
  const end = Date.now() + kPatienceMs;
  let last = false;
  while (!last && Date.now() < end) {
    last = await holds().catch(() => false);
    if (!last) await sleep(100);
  }
  check(last, what);
}

const { server, home } = await serveWithPage(config);
const policy = home.headers.get('content-security-policy') ?? '';

const browser = await chromium.launch({ executablePath: kChromium, args: ['--no-sandbox'] });
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const requested = new Set();
const complaints = [];
let expectLoss = false;

async function open(options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
    ...options,
  });
  context.setDefaultTimeout(kPatienceMs);
  const page = await context.newPage();
  page.on('request', (request) => requested.add(new URL(request.url()).origin));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !expectLoss && !/status of (400|401|403|404|409|412)/.test(message.text()))
      complaints.push(message.text());
  });
  return page;
}
const signIn = (page) => page.addInitScript((token) => sessionStorage.setItem('berth.token', token), server.token);
const go = (page, path) => page.goto(`${server.url}/#/${path}`);
const text = (page) => page.locator('main').innerText();

async function axe(page, what) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  for (const violation of found.violations)
    console.log(
      `  ${what}: ${violation.id}: ${violation.nodes
        .map((node) => node.html.slice(0, 160))
        .slice(0, 3)
        .join(' | ')}`,
    );
  check(found.violations.length === 0, `axe: ${what} has ${found.violations.length} violations`);
}

const page = await open();

await part('signing in', async () => {
  await page.goto(server.url);
  await axe(page, 'sign-in');
  await page.getByLabel('Token').fill('0123456789abcdef0123456789abcdef');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('The server does not know that token').waitFor();
  await page.getByLabel('Token').fill(server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('No job waits or runs').waitFor();
  check((await page.evaluate(() => localStorage.length)) === 0, 'the token is kept for the tab alone');
  await page.getByText('live', { exact: true }).waitFor();
});

await part('submitting a job, and watching it', async () => {
  await page.getByRole('link', { name: 'Submit a job' }).click();
  await page
    .getByLabel('Command')
    .fill(
      `sh -c 'echo first; sleep 3; echo "<b>second</b>"; printf "\\\\033[31mred\\\\033[0m \\\\342\\\\200\\\\256 x\\\\n"'`,
    );
  await page.getByLabel('Name', { exact: true }).fill('from-the-page');
  await page.getByLabel('Queue').selectOption('research/nlp');
  check(
    (await page.locator('pre').first().innerText()).includes('"queue": "research/nlp"'),
    'the form shows the document',
  );
  await page.getByText('6', { exact: false }).first().waitFor();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.getByRole('heading', { name: 'from-the-page' }).waitFor();
  await page.locator('.tag').getByText('running').waitFor();
  check(true, 'it is seen to start');
  await page.locator('.log').getByText('first').waitFor();
  check(true, 'its log is read while it runs');
  await page.locator('.tag').getByText('succeeded').waitFor();
  await page.getByText('This is all of it.').waitFor();
  const log = await page.locator('.log').innerText();
  check(log.includes('<b>second</b>'), 'markup in the log is text');
  check(
    log.includes('red ⟨U+202E⟩ x'),
    `what turns the direction of writing is written out in the log: ${JSON.stringify(log)}`,
  );
  check((await page.locator('.log b').count()) === 0, 'nothing in the log became an element');
  const job = (await server.ask('GET', '/v1/jobs?phase=finished')).items[0];
  check(job.name === 'from-the-page' && job.outcome === 'succeeded', 'the server says the same');
});

await part('what a tenant typed is no markup', async () => {
  const names = [
    '<img src=x onerror=window.pwned=1>',
    '"><script>window.pwned=1</script>',
    '\u202eevil',
    '{@html pwned}',
    'שלום-123',
    'x'.repeat(200),
  ];
  const taken = [];
  for (const name of names) {
    const submitted = await server
      .submit({ name, user: '<svg onload=window.pwned=1>', comment: '<b>x</b>', command: 'true', hold: true })
      .catch((error) => {
        console.log(`  refused by the server: ${JSON.stringify(name)}: ${error.message.slice(0, 120)}`);
        return null;
      });
    if (submitted) taken.push({ id: submitted.id, name });
  }
  check(taken.length > 0, 'some hostile name was taken by the server');
  await go(page, 'jobs');
  for (const { id, name } of taken) {
    const link = page.locator(`a[href="#/jobs/${id}"]`);
    await link.waitFor();
    if (name.startsWith('<'))
      check((await link.innerText()) === name, `the name is shown as it was typed: ${await link.innerText()}`);
    if (name.includes('\u202e'))
      check((await link.innerText()).includes('⟨U+202E⟩'), 'a right-to-left override is written out');
  }
  await go(page, `jobs/${taken[0].id}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await sleep(500);
  check((await page.evaluate(() => window.pwned)) === undefined, 'nothing that was typed was run');
  check(
    (await page.locator('main img, main script, main b').count()) === 0,
    'nothing that was typed became an element',
  );
  await go(page, `decisions?job=${taken[0].id}`);
  await page.getByText('job-submitted').first().waitFor();
  check((await page.evaluate(() => window.pwned)) === undefined, 'nor among the decisions');
  for (const { id } of taken) await server.ask('DELETE', `/v1/jobs/${id}`);
});

let blocked;
await part('why a job waits, and what one can do', async () => {
  await server.submit({ name: 'long', gpus: 2, command: ['sh', '-c', 'while true; do echo tick; sleep 1; done'] });
  blocked = (await server.submit({ name: 'too-much', gpus: 8, command: 'true' })).id;
  await go(page, `jobs/${blocked}`);
  await page.locator('.why .headline').waitFor();
  const why = await server.ask('GET', `/v1/jobs/${blocked}/why`);
  check(
    (await page.locator('.why .headline').innerText()) === why.headline,
    'the reason is the one that the API gives',
  );
  check((await page.locator('.why li').count()) >= why.remedies.length, 'with the remedies');
  await page.getByRole('button', { name: 'Fill the form with it…' }).first().click();
  await page.getByText(`Made from job ${blocked}`).waitFor();
  const smaller = JSON.parse(await page.locator('pre').first().innerText());
  check(smaller.name === 'too-much' && smaller.gpus < 8, 'a remedy fills the form with the document, changed');
  await page.getByText('It would start now').waitFor();
  check(true, 'and the server says that it would start');
  await axe(page, 'the form with a forecast');
  check(await page.getByLabel(`Cancel job ${blocked} when`).isChecked(), 'the old job is to be cancelled then');
  await page.getByLabel(`Cancel job ${blocked} when`).uncheck();
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page
    .locator('.tag')
    .getByText(/running|succeeded/)
    .first()
    .waitFor();
  await go(page, `jobs/${blocked}`);
  await page.getByRole('button', { name: 'Change priority…' }).click();
  await page.getByLabel('New priority').fill('777');
  await page.locator('dialog').getByText('It would wait.').waitFor();
  check(true, 'what another priority would do is said before');
  await page.getByRole('button', { name: 'Change priority', exact: true }).click();
  await page.getByText('777').first().waitFor();
  check((await server.ask('GET', `/v1/jobs/${blocked}`)).priority === 777, 'the priority was changed');
  await go(page, 'jobs');
  await page.getByLabel(`Choose job ${blocked}`).check();
  await page.getByRole('button', { name: 'Hold…' }).click();
  await page.getByText('will not start until released').waitFor();
  await axe(page, 'a dialog');
  await page.getByRole('button', { name: 'Hold', exact: true }).click();
  await page.locator('.tag').getByText('held').waitFor();
  check((await server.ask('GET', `/v1/jobs/${blocked}`)).held, 'the job is held');
  await page.getByLabel(`Choose job ${blocked}`).check();
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByText('taken off the queue').waitFor();
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.locator(`a[href="#/jobs/${blocked}"]`).waitFor({ state: 'detached' });
  check(
    (await server.ask('GET', `/v1/jobs/${blocked}`)).outcome === 'cancelled',
    'the job is cancelled, and left the list',
  );
});

await part('the list: filters in the address, numbers of the API, the keyboard', async () => {
  for (let index = 0; index < 30; index += 1)
    await server.submit({
      name: `many-${index}`,
      user: index % 2 ? 'ann' : 'bob',
      gpus: 1,
      command: 'sleep 600',
      hold: index > 3,
    });
  await go(page, 'jobs?user=ann&sort=gpus&q=many');
  await page
    .getByText(/of \d+ match|match\.$/)
    .first()
    .waitFor();
  check(
    (await page.locator('[data-row]').count()) === 15,
    `a filter in the address holds: ${await page.locator('[data-row]').count()} rows`,
  );
  await page.getByLabel('Search', { exact: true }).fill('many-17');
  await eventually('a search narrows the list', async () => (await page.locator('[data-row]').count()) === 1);
  check((await page.evaluate(() => location.hash)).includes('q=many-17'), 'and is in the address');
  await go(page, 'jobs');
  await eventually('the counts are those of the API', async () => {
    const cluster = await server.ask('GET', '/v1/cluster');
    const shown = await page.locator('.counts').innerText();
    return (
      shown.includes(`${cluster.jobs_pending} pending`) &&
      shown.includes(`${cluster.jobs_running} running`) &&
      shown.includes(`${cluster.gpus_free} of ${cluster.gpus} GPUs free`)
    );
  });
  await page.locator('[data-row="0"] a').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('j');
  check(
    (await page.evaluate(() => document.activeElement?.closest('[data-row]')?.dataset.row)) === '2',
    'arrow keys move through the list',
  );
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1 }).waitFor();
});

await part('the queues', async () => {
  await go(page, 'queues');
  await page.getByRole('row', { name: /nlp/ }).waitFor();
  await eventually('used, guaranteed and waiting are those of the API', async () => {
    const queue = await server.ask('GET', '/v1/queues/research%2Fnlp');
    const cells = await page.getByRole('row', { name: /nlp/ }).first().locator('td').allInnerTexts();
    return (
      cells[2] === String(queue.usage.gpus) &&
      cells[3] === '4' &&
      cells[5] === '6' &&
      cells[7] === String(queue.pending)
    );
  });
  await page.getByRole('button', { name: 'The arithmetic of research/nlp' }).click();
  const share = await server.ask('GET', '/v1/queues/research%2Fnlp/share');
  await page.getByText(share.lines.at(-1)).waitFor();
  await page.getByRole('link', { name: 'nlp', exact: true }).click();
  await page.getByText('that wait are here').waitFor();
  check((await text(page)).includes('By priority, then by age'), 'the line says in which order it is');
});

await part('a figure leads to the rows that make it', async () => {
  const listed = async () => /(?:All ([\d,]+)|([\d,]+) of [\d,]+) +(?:that )?match/.exec(await text(page));
  const leadsTo = async (figure, what) => {
    const number = (await figure.innerText()).replace(/\D/g, '');
    await figure.click();
    await eventually(`${what}: ${number} leads to as many rows`, async () => {
      const found = await listed();
      return found !== null && number !== '' && number === (found[1] ?? found[2]).replaceAll(',', '');
    });
  };
  const inLine = await server.submit({ name: 'in-line', gpus: 6, command: 'true' });
  await go(page, 'queues');
  const row = page.getByRole('row', { name: /nlp/ }).first();
  await row.locator('td').nth(7).getByText('1', { exact: true }).waitFor();
  await leadsTo(row.locator('td').nth(7).locator('a'), 'jobs of a queue that wait');
  await go(page, 'queues');
  await row.waitFor();
  await leadsTo(row.locator('td').nth(6).locator('a'), 'jobs of a queue that run');
  await go(page, 'health');
  await leadsTo(page.getByRole('region', { name: 'Why jobs wait' }).locator('a.figure').first(), 'a reason');
  await server.ask('DELETE', `/v1/jobs/${inLine.id}`);
  await go(page, 'health');
  await page.getByRole('region', { name: 'Allocated' }).getByRole('link', { name: 'idle' }).click();
  await page.getByRole('heading', { name: 'Fleet' }).waitFor();
  check(page.url().endsWith('color=state'), 'GPUs that are idle lead to the fleet by state');
});

await part('a quota is changed, within the envelope and not beyond it, over what was seen', async () => {
  await go(page, 'queues');
  await page.getByRole('button', { name: 'Change the quota of research/nlp' }).click();
  const ceiling = page.getByLabel('Ceiling, GPUs');
  await eventually('the numbers of now are in the form', async () => (await ceiling.inputValue()) === '6');
  await page.getByLabel('Guaranteed GPUs').fill('');
  await ceiling.fill('1');
  await page.getByText('It uses more than its new ceiling').waitFor();
  check(true, 'what it would do is said before');
  await axe(page, 'the dialog of a quota');
  await ceiling.fill('');
  await page.getByLabel('Guaranteed GPUs').fill('5');
  await page.locator('dialog .error').waitFor();
  check(
    await page.getByRole('button', { name: 'Apply' }).isDisabled(),
    'what is beyond the envelope cannot be applied',
  );
  await page.getByLabel('Guaranteed GPUs').fill('4');
  await ceiling.fill('7');
  await page.locator('dialog .mono').first().waitFor();
  await server.ask('POST', '/v1/queues/research%2Fnlp/changes', { set: ['weight=2'] });
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByText('was changed in between').waitFor();
  check(true, 'another change in between is told, and not overwritten');
  check((await page.getByLabel('Weight').inputValue()) === '2', 'and is in the form');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.locator('dialog').waitFor({ state: 'detached' });
  const after = await server.ask('GET', '/v1/queues/research%2Fnlp');
  check(after.max.gpus === 7 && after.weight === 2, 'and then both are in force');

  const { token } = await server.ask('POST', '/v1/tokens', {
    name: 'orla',
    role: 'org-admin',
    queue: 'research',
    expires_in_s: 600,
  });
  const orla = await open();
  await orla.addInitScript((value) => sessionStorage.setItem('berth.token', value), token);
  await go(orla, 'queues');
  await orla.getByRole('button', { name: 'Change the quota of research/nlp' }).click();
  check(
    (await orla.getByRole('button', { name: /Change the quota of/ }).count()) === 1,
    'an org-admin is offered the queues below its own, and no other',
  );
  await eventually(
    'an org-admin reads the numbers',
    async () => (await orla.getByLabel('Guaranteed GPUs').inputValue()) === '4',
  );
  await orla.getByLabel('Guaranteed GPUs').fill('9');
  await orla.locator('dialog .error').waitFor();
  check(
    (await orla.locator('dialog .error').innerText()).includes('4'),
    `beyond its envelope it is told the arithmetic: ${await orla.locator('dialog .error').innerText()}`,
  );
  await orla.getByLabel('Guaranteed GPUs').fill('3');
  await orla.getByText('guaranteed.gpus: 4 → 3').waitFor();
  await orla.getByRole('button', { name: 'Apply' }).click();
  await orla.locator('dialog').waitFor({ state: 'detached' });
  const below = await server.ask('GET', '/v1/queues/research%2Fnlp');
  check(below.guaranteed.gpus === 3, 'within it, it changes a quota');
  await server.ask('POST', '/v1/queues/research%2Fnlp/changes', { set: ['guaranteed.gpus=4'] });
  await orla.context().close();
  await go(page, 'queues/research%2Fnlp');
  await page.getByRole('heading', { name: 'GPUs used' }).waitFor();
});

await part('a job is preempted, and resumes', async () => {
  const loop = ['sh', '-c', 'trap "exit 0" TERM; while true; do sleep 0.2; done'];
  const borrower = (
    await server.submit({ name: 'borrower', queue: 'product', gpus: 4, command: loop, checkpoint: { on_signal: true } })
  ).id;
  const second = (
    await server.submit({ name: 'second', queue: 'product', gpus: 2, command: loop, checkpoint: { on_signal: true } })
  ).id;
  await go(page, `jobs/${second}`);
  await page
    .locator('.tag')
    .getByText(/running|pending/)
    .first()
    .waitFor();
  const urgent = (
    await server.submit({ name: 'urgent', queue: 'product', gpus: 4, priority: 'production', command: 'sleep 2' })
  ).id;
  await go(page, `jobs/${borrower}`);
  await page.getByText('Attempts that are over').waitFor();
  check((await text(page)).includes('preempted'), 'the time line says that it was preempted');
  check((await page.locator(`a[href="#/jobs/${urgent}"]`).count()) > 0, 'and for which job');
  await eventually('it runs again', async () => (await server.ask('GET', `/v1/jobs/${borrower}`)).attempts === 2);
  await page.locator('.tag').getByText('running').waitFor();
  for (const id of [borrower, second]) await server.ask('DELETE', `/v1/jobs/${id}`);
});

await part('the bill and the waste', async () => {
  await go(page, 'bills');
  await page.getByText('No prices are in force yet').waitFor();
  await axe(page, 'bills without prices');
  await go(page, 'waste');
  await page.getByText('No prices are in force yet').waitFor();
  await go(page, 'bills');
  const model = 'H100-SXM5-80GB';
  await server.ask('PUT', '/v1/prices', {
    currency: 'EUR',
    prices: [{ valid_from: '2020-01-01', gpus: { [model]: { floor: 2000, burst: 3000 } }, lending_credit: 50 }],
  });
  await page.getByRole('button', { name: 'Count again' }).click();
  await page.getByText('nobody owes this').waitFor();
  await page.getByText('Where all GPU time went').waitFor();
  const bill = await server.ask('GET', '/v1/bill?by=queue');
  const rows = await page.locator('section[aria-label="The bill"] tbody tr').count();
  check(rows === bill.items.length, `a row for each of the API: ${rows} for ${bill.items.length}`);
  check(bill.fleet.length === 1 && bill.fleet[0].capacity > 0, 'there was GPU time');
  await page.getByRole('button', { name: 'The lines of product' }).click();
  await page.getByText('they add up to').waitFor();
  check((await text(page)).includes('floor-idle'), 'a row is opened down to its lines');
  await page.getByLabel('By', { exact: true }).selectOption('job');
  await page.getByText('no job: floors that were idle or lent').waitFor();
  check(page.url().includes('by=job'), 'what one looks at is in the address');
  await page.getByLabel('Queue', { exact: true }).selectOption('product');
  await page.waitForURL(/queue=product/);
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Lines (CSV)' }).click(),
  ]);
  const csv = readFileSync(await file.path(), 'utf8');
  check(csv.split('\n')[0].includes('queue'), `the lines are downloaded: ${csv.slice(0, 80)}`);
  check(
    file.suggestedFilename().endsWith('-product.csv'),
    `under a name that says of what: ${file.suggestedFilename()}`,
  );
  await go(page, 'bills?month=2019-01');
  await page.getByText('Nothing was used and nothing was held in January 2019').waitFor();
  await go(page, 'bills?by=label');
  await page.getByLabel('Key of the label').fill('model');
  await page.keyboard.press('Enter');
  await page.waitForURL(/label=model/);
  await page.getByText('no label').waitFor();
  await go(page, 'waste');
  await page.getByRole('link', { name: 'product' }).waitFor();
  await page.getByRole('button', { name: 'Work it out for product' }).click();
  await page.getByText(/EUR of this month/).waitFor();
  check(true, 'what giving back an idle floor would save is worked out');
});

await part('each role has a page of its own, and asks for nothing that is refused', async () => {
  const tokenOf = async (name, role, queue) =>
    (await server.ask('POST', '/v1/tokens', { name, role, queue, expires_in_s: 600 })).token;
  const pageOf = async (token) => {
    const other = await open();
    await other.addInitScript((value) => sessionStorage.setItem('berth.token', value), token);
    other.refused = [];
    other.on('response', (answer) => answer.status() === 403 && other.refused.push(answer.url()));
    return other;
  };
  const mine = await server.submit({ name: 'mine', queue: 'product', user: 'ci', gpus: 1, command: 'echo hello' });
  const theirs = await server.submit({ name: 'theirs', queue: 'product', user: 'zoe', command: 'true', hold: true });
  const member = await pageOf(await tokenOf('ci', 'member', 'product'));
  await go(member, 'jobs?phase=all');
  await member.locator(`a[href="#/jobs/${mine.id}"]`).waitFor();
  await member.getByText('every 5 s').waitFor();
  check((await member.locator('[data-row]').count()) === 1, 'a member sees its own jobs and no others');
  check(
    (await member.locator('nav').innerText()).replace(/\s+/g, ' ').trim() === 'Jobs Queues Bills Trying',
    `a member is offered jobs, queues, its bill and trying: ${await member.locator('nav').innerText()}`,
  );
  await go(member, `jobs/${theirs.id}`);
  await member.getByText(`no such job ${theirs.id}`).waitFor();
  check(true, 'and not the job of another, as the API has it');
  await go(member, `jobs/${mine.id}`);
  await member.locator('.log').getByText('hello').waitFor();
  await go(member, 'submit');
  await member.getByLabel('Command').fill('true');
  await member.getByLabel('Name', { exact: true }).fill('of-a-member');
  await member.getByRole('button', { name: 'Submit', exact: true }).click();
  await member.getByRole('heading', { name: 'of-a-member' }).waitFor();
  check(true, 'a member submits');
  for (const screen of ['queues', 'queues/product']) {
    await go(member, screen);
    await member.getByRole('link', { name: 'product' }).first().waitFor();
    await sleep(300);
    await axe(member, `${screen} of a member`);
  }
  await go(member, 'bills?by=job');
  await member.getByRole('link', { name: `mine (${mine.id})` }).waitFor();
  check(!(await text(member)).includes('floor idle'), 'the bill of a member is that of its own jobs');
  await axe(member, 'the bill of a member');
  await go(member, 'fleet');
  await member.getByText('That takes the role auditor, operator or admin at the root.').waitFor();
  await member.getByText('You are token:ci: member at product.').waitFor();
  await axe(member, 'a screen that a role does not allow');
  for (const screen of ['jobs', `jobs/${mine.id}`, 'queues', 'queues/product', 'bills?by=job']) {
    await go(member, screen);
    await member.getByRole('heading').first().waitFor();
    await sleep(300);
    const links = await member
      .locator('main a[href^="#/fleet"], main a[href^="#/decisions"], main a[href^="#/health"]')
      .count();
    check(links === 0, `${screen}: a member is offered no link to what it may not see: ${links}`);
  }
  check(member.refused.length === 0, `nothing was refused to the member: ${member.refused.join(' ')}`);
  const late = await server.submit({ name: 'late', queue: 'product', user: 'ci', command: 'true', hold: true });
  await go(member, 'jobs');
  await member.locator(`a[href="#/jobs/${late.id}"]`).waitFor();
  check(true, 'and what is new comes without a stream of events');

  const viewer = await pageOf(await tokenOf('vic', 'viewer', 'product'));
  await go(viewer, `jobs/${theirs.id}`);
  await viewer
    .getByText('Release, Change priority, Cancel: that takes the role')
    .first()
    .waitFor()
    .catch(() => undefined);
  check((await viewer.getByRole('button', { name: 'Cancel…' }).count()) === 0, 'a viewer is offered no action');
  check((await text(viewer)).includes('that takes the role lead'), 'and is told which role could');
  check((await text(viewer)).includes('What it wrote is for the role lead or admin'), 'so for the log');
  check(viewer.refused.length === 0, `nothing was refused to the viewer: ${viewer.refused.join(' ')}`);

  const finance = await pageOf(await tokenOf('fin', 'finance', 'product'));
  await finance.goto(server.url);
  await finance.getByRole('heading', { name: 'Queues' }).waitFor();
  check(true, 'finance, which sees no jobs, begins with the queues');
  await go(finance, 'queues/product');
  await finance.getByText('Within its guarantee', { exact: true }).waitFor();
  await go(finance, 'waste');
  await finance.getByRole('link', { name: 'product' }).waitFor();
  check(!(await text(finance)).includes('research'), 'finance of one queue sees the floors of that queue alone');
  await go(finance, 'bills');
  await finance.getByRole('cell', { name: 'product', exact: true }).waitFor();
  check(finance.refused.length === 0, `nothing was refused to finance: ${finance.refused.join(' ')}`);

  const operator = await pageOf(await tokenOf('oli', 'operator', ''));
  for (const screen of ['fleet/n1', 'health', 'bills', 'waste', 'queues', `jobs/${theirs.id}`]) {
    await go(operator, screen);
    await operator.getByRole('heading').first().waitFor();
    await sleep(500);
  }
  check((await text(operator)).includes('Change priority: that takes'), 'an operator does not change priorities');
  check(operator.refused.length === 0, `nothing was refused to the operator: ${operator.refused.join(' ')}`);
  for (const other of [member, viewer, finance, operator]) await other.context().close();
  for (const { id } of [theirs, late]) await server.ask('DELETE', `/v1/jobs/${id}`);
});

await part('the fleet, health and decisions', async () => {
  await go(page, 'fleet');
  await page.getByText('1 node · ').waitFor();
  await page.locator('canvas').focus();
  await page.keyboard.press('ArrowRight');
  await page.getByRole('heading', { name: 'n1' }).waitFor();
  await page.getByRole('button', { name: 'Cordon…' }).click();
  await page.getByText('Nothing new is started on it').waitFor();
  await page.getByRole('button', { name: 'Cordon', exact: true }).click();
  await eventually('the node is cordoned', async () => (await server.ask('GET', '/v1/nodes/n1')).cordoned);
  await page.getByRole('button', { name: 'Uncordon…' }).click();
  await page.getByRole('button', { name: 'Uncordon', exact: true }).click();
  await eventually('and takes tasks again', async () => !(await server.ask('GET', '/v1/nodes/n1')).cordoned);
  await go(page, 'health');
  await page.getByText('Why jobs wait').waitFor();
  await eventually('allocated is that of the API', async () =>
    (await text(page)).includes(`${(await server.ask('GET', '/v1/cluster')).allocated_pct} %`),
  );
  await go(page, 'decisions');
  await page.getByText('attempt-started').first().waitFor();
  await page.locator('.link').first().click();
  await page.getByText('"seq":').waitFor();
});

await part('the state at a past moment', async () => {
  const held = (await server.submit({ name: 'held-then', command: 'true', hold: true })).id;
  const { seq } = await server.ask('GET', '/v1/jobs?limit=1');
  const then = await server.ask('GET', `/v1/cluster?at=${seq}`);
  await server.ask('DELETE', `/v1/jobs/${held}`);
  await go(page, 'decisions');
  await page.getByRole('link', { name: 'The state then' }).click();
  await page.getByText('Move the slider').waitFor();
  await page.getByRole('spinbutton', { name: 'Event' }).fill(String(seq));
  await page.getByRole('spinbutton', { name: 'Event' }).press('Enter');
  await page.getByText('This is the past').waitFor();
  const shown = await text(page);
  check(
    shown.includes(`${then.gpus_allocated} of ${then.gpus} GPUs`) && shown.includes(`${then.jobs_pending} waited`),
    `the numbers are the API's at that event: ${shown.slice(0, 300)}`,
  );
  await page.getByText('held-then').waitFor();
  check(true, 'a job that is gone is shown as it was');
  const reason = await server.ask('GET', `/v1/jobs/${held}/why?at=${seq}`);
  await page.getByRole('button', { name: `Why job ${held} waited` }).click();
  await page.getByText(reason.headline).waitFor();
  check(true, 'with why it waited then');
  await page.getByRole('button', { name: 'One event earlier' }).click();
  await page.getByText(`after event ${(seq - 1).toLocaleString('en-GB')},`).waitFor();
  await eventually('and is not shown before it came', async () => !(await text(page)).includes('held-then'));
  await page.getByRole('slider', { name: 'Event' }).focus();
  await page.keyboard.press('Home');
  await page.getByText('after event 1,').waitFor();
  check(page.url().endsWith('at=1'), 'the moment is in the address');
  await go(page, `past?at=${seq + 1_000_000}`);
  await page.getByText('has not happened').waitFor();
  check(!(await text(page)).includes('This is the past'), 'what has not happened is no past');
});

await part('a report of berth simulate is opened, and nothing in it is markup', async () => {
  const estimate = { count: 3, mean: 120, standard_deviation: 1, ci95_low: 100, ci95_high: 140 };
  const hostile = '<img src=x onerror=window.pwned=1>\u202e';
  const summary = {
    schema: 'berth.simulate.summary/1',
    title: hostile,
    command: hostile,
    version: '0.1.0',
    input: { jobs: 10, gpus: 8, sources: [hostile], notes: [], defaults_taken: [], rows_left_out: [] },
    runs: ['fifo', hostile].map((policy, index) => ({
      policy,
      seed: 1,
      over_time: {
        waiting_jobs: [
          [0, index],
          [3600, 5],
        ],
        utilization_pct: [
          [0, 50],
          [3600, 80],
        ],
      },
    })),
    policies: ['fifo', hostile].map((policy) => ({ policy, measures: { mean_wait_s: estimate } })),
    comparisons: [{ ...estimate, mean: -60, policy: hostile, measure: 'mean_wait_s', differs: true, same_jobs: true }],
  };
  const requestsBefore = requested.size;
  const sent = [];
  const listen = (request) => request.method() !== 'GET' && sent.push(request.url());
  page.on('request', listen);
  await go(page, 'trying');
  await page.getByText('sent nowhere').waitFor();
  const file = (name, content) => ({ name, mimeType: 'application/json', buffer: Buffer.from(content) });
  await page.getByLabel('Open summary.json').setInputFiles(file('broken.json', '{"schema": 1}'));
  await page.getByText('its schema is not').waitFor();
  await page.getByLabel('Open summary.json').setInputFiles(file('summary.json', JSON.stringify(summary)));
  await page.getByText('better', { exact: true }).or(page.getByText('▲ better')).first().waitFor();
  check((await page.locator('main img').count()) === 0, 'no text of a report became an element');
  check((await page.evaluate(() => window.pwned)) === undefined, 'nor was it run');
  check((await text(page)).includes('⟨U+202E⟩'), 'what turns the direction of writing is written out');
  check(sent.length === 0 && requested.size === requestsBefore, `a report is sent nowhere: ${sent.join(' ')}`);
  await axe(page, 'a report');
  page.off('request', listen);
});

await part('the server is killed and started again under the open page', async () => {
  await go(page, 'jobs');
  await page.getByText('live', { exact: true }).waitFor();
  await page.locator('[data-row]').first().waitFor();
  expectLoss = true;
  await server.kill();
  await page.getByText('The server has not answered since').waitFor();
  check((await page.locator('[data-row]').count()) > 0, 'what was there is still shown');
  await server.start();
  await page.getByText('The server has not answered since').waitFor({ state: 'detached' });
  const id = (await server.submit({ name: 'after-the-restart', command: 'true', hold: true })).id;
  await page.locator(`a[href="#/jobs/${id}"]`).waitFor();
  check(true, 'the page goes on by itself');
  expectLoss = false;
});

await part('every screen by the rules of accessibility, in light and dark, and on a phone', async () => {
  const some = (await server.ask('GET', '/v1/jobs?limit=1')).items[0].id;
  const screens = [
    'jobs',
    `jobs/${some}`,
    'submit',
    'queues',
    'queues/research%2Fnlp',
    'fleet',
    'fleet/n1',
    'bills',
    'waste',
    'health',
    'decisions',
    'past?at=30',
    'trying',
  ];
  for (const colorScheme of ['light', 'dark']) {
    const other = await open({ colorScheme });
    await signIn(other);
    for (const screen of screens) {
      await go(other, screen);
      await other.getByRole('heading', { level: 1 }).waitFor();
      await sleep(700);
      await axe(other, `${screen} in ${colorScheme}`);
    }
    await other.context().close();
  }
  const advised = await open(); // links in the middle of sentences
  await signIn(advised);
  const item = { code: 'gpus-underdriven', severity: 'note', text: 'It stands still.', remedy: 'Ask for less.' };
  const items = [
    { ...item, about: 'job', name: String(some) },
    { ...item, about: 'queue', name: 'research/nlp' },
  ];
  const kind = {
    pool: 'default',
    gpu_model: 'H100',
    gpus: 8,
    nodes: 1,
    releasable: 0,
    cpus: 8,
    memory_mib: 8,
    taints: [],
  };
  const idle = [{ node: 'n1', since: '2026-11-01T00:00:00.000Z', kept_for: 'reserved', job: some }];
  const wanted = { nodes: 1, jobs: [some], gpus: 8 };
  await advised.route('**/v1/advice', (route) =>
    route.fulfill({ json: { time: '', items, left_out: [], complete: true, seq: 1 } }),
  );
  await advised.route('**/v1/capacity', (route) =>
    route.fulfill({ json: { time: '', idle_for_s: 600, items: [{ ...kind, idle, wanted }], complete: true, seq: 1 } }),
  );
  for (const screen of ['health', 'waste']) {
    await go(advised, screen);
    await advised.getByText('It stands still.').first().waitFor();
    await axe(advised, `${screen} with advice`);
  }
  await advised.context().close();
  const phone = await open({ viewport: { width: 375, height: 700 } });
  await signIn(phone);
  for (const screen of ['jobs', `jobs/${some}`]) {
    await go(phone, screen);
    await phone.getByRole('heading', { level: 1 }).waitFor();
    await sleep(700);
    const wide = await phone.evaluate(
      () => Math.max(document.documentElement.scrollWidth, document.querySelector('main').scrollWidth) - innerWidth,
    );
    check(wide <= 0, `${screen} fits a phone: ${wide} pixels too wide`);
    await axe(phone, `${screen} on a phone`);
  }
});

check(
  [...requested].every((origin) => origin === server.url),
  `no request to any other host: ${[...requested].join(' ')}`,
);
check(
  !/unsafe|data:|https?:/.test(policy) && policy.includes("default-src 'none'"),
  'the content security policy has no exception',
);
check(complaints.length === 0, `the browser complains of nothing: ${complaints.slice(0, 3).join(' | ')}`);

await browser.close();
await server.stop();
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 ? 1 : 0);
