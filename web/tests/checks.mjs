// What browser tests share: checks that are counted, and waiting for what has to come.
import { setTimeout as sleep } from 'node:timers/promises';

export const kChromium = '/usr/bin/chromium';
export const kPatienceMs = 20_000;

export class Checks {
  passed = 0;
  failed = 0;

  check(holds, what) {
    if (holds) this.passed += 1;
    else {
      this.failed += 1;
      console.log(`FAILED: ${what}`);
    }
  }

  async part(name, run) {
    try {
      await run();
    } catch (error) {
      this.failed += 1;
      console.log(`FAILED: ${name}: ${String(error.stack ?? error).slice(0, 1500)}`);
    }
  }

  async eventually(what, holds) {
    const end = Date.now() + kPatienceMs;
    let last = false;
    while (!last && Date.now() < end) {
      last = await holds().catch(() => false);
      if (!last) await sleep(100);
    }
    this.check(last, what);
  }
}
