// A berth server of the tests' own, in a fresh directory, killed at will.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const kPatienceMs = 120_000;

export class Server {
  constructor({ config, gpus = '8xH100-SXM5-80GB', flags = [], port = 0 }) {
    this.flags = flags;
    this.directory = mkdtempSync(join(tmpdir(), 'berth-web-'));
    chmodSync(this.directory, 0o711); // a server that is root runs jobs as other users
    this.gpus = gpus;
    this.port = port;
    this.log = '';
    this.config = join(this.directory, 'cluster.yaml');
    writeFileSync(this.config, config);
  }

  async start() {
    const ready = join(this.directory, 'ready');
    rmSync(ready, { force: true });
    const data = join(this.directory, 'data');
    const args = ['serve', '--data', data, '--config', this.config, '--node-name', 'n1', '--simulate-gpus', this.gpus];
    this.process = spawn(
      process.env.BERTH,
      [...args, '--port', String(this.port), '--ready-file', ready, ...this.flags],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      },
    );
    this.ended = new Promise((done) => this.process.on('exit', done));
    for (const stream of [this.process.stdout, this.process.stderr]) stream.on('data', (text) => (this.log += text));
    const began = Date.now();
    while (!existsSync(ready) || readFileSync(ready, 'utf8').trim() === '') {
      if (this.process.exitCode !== null || Date.now() - began > kPatienceMs)
        throw new Error(`the server does not start:\n${this.log.slice(-2000)}`);
      await sleep(50);
    }
    this.url = readFileSync(ready, 'utf8').trim();
    this.port = Number(new URL(this.url).port);
    this.token = readFileSync(join(data, 'token'), 'utf8').trim();
  }

  async ask(method, path, body) {
    const headers = { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`);
    return JSON.parse(text || 'null');
  }

  submit(job) {
    return this.ask('POST', '/v1/jobs', { queue: 'research/nlp', cpus: 0.1, memory: '64MiB', ...job });
  }

  async kill() {
    this.process.kill('SIGKILL');
    await this.ended;
  }

  // Cancels what runs, so that nothing outlives the test.
  async stop() {
    try {
      for (const phase of ['running', 'stopping', 'pending']) {
        for (const job of (await this.ask('GET', `/v1/jobs?phase=${phase}&limit=1000`)).items)
          await this.ask('DELETE', `/v1/jobs/${job.id}`).catch(() => undefined); // it may have ended meanwhile
      }
      for (let tries = 0; tries < 100 && (await this.ask('GET', '/v1/jobs?limit=1')).items.length > 0; tries += 1)
        await sleep(100);
    } finally {
      this.process.kill('SIGTERM');
      await this.ended;
      rmSync(this.directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 }); // tasks may leave last
    }
  }
}

// Starts a server under this configuration, which is stopped when the test is interrupted. Returns it with the answer to a
// request for the page; ends the test (77) if the program has none.
export async function serveWithPage(config) {
  const server = new Server({ config });
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.on(signal, () => void server.stop().finally(() => process.exit(1)));
  await server.start();
  const home = await fetch(server.url);
  if (home.status !== 404) return { server, home };
  console.log(`SKIPPED: this program has no page: ${(await home.text()).split('\n')[0]}`);
  await server.stop();
  process.exit(77);
}
