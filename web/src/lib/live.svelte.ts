// The one stream of events that keeps the page current. Screens say which events touch them (keepFresh) and load again;
// when the stream breaks, the page says since when, tries again, and loads everything anew once the server is back. A
// reader whose role does not see events has no stream: what is on the screen is then asked for again every few seconds.

import { untrack } from 'svelte';
import { get, send } from './api';
import { clock } from './clock.svelte';
import type { Identity } from './roles';
import { session } from './session.svelte';
import type { BerthEvent, Cluster } from './types';

const kSilenceMs = 40_000; // the server says something every 15 s
const kGatherMs = 250;
const kCountMs = 2000;
const kPollMs = 5000;
const kRetryMs = [500, 1000, 2000, 5000];

export interface Listener {
  events(events: BerthEvent[]): void;
  again(): void; // events may have been missed: load everything
  poll?(): void; // there is no stream; `again` where it is absent
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true });
  });
}

class Live {
  connected = $state(false);
  polling = $state(false);
  lostSince = $state<number | null>(null); // on the clock of this machine
  seq = $state(0);
  cluster = $state<Cluster | null>(null);

  #listeners = new Set<Listener>();
  #gathered: BerthEvent[] = [];
  #flushing: ReturnType<typeof setTimeout> | null = null;
  #counting: ReturnType<typeof setTimeout> | null = null;
  #stop: AbortController | null = null;

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // Follows the events until stop().
  start(): void {
    this.stop();
    const stop = new AbortController();
    this.#stop = stop;
    void this.#follow(stop.signal);
  }

  stop(): void {
    this.#stop?.abort();
    this.#stop = null;
    this.connected = false;
    this.lostSince = null;
    this.cluster = null;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted && session.signedIn) {
      const opened = (): void => void (failures = 0);
      try {
        await this.#identify(signal);
        this.polling = !session.may('see-events');
        if (this.polling) {
          await this.#poll(signal, opened); // returns when there is a stream after all
          continue;
        }
        await this.#connectAndRead(signal, opened);
      } catch {
        // Why is the same to the reader: there is no answer now.
      }
      if (signal.aborted) return;
      this.connected = false;
      this.lostSince ??= Date.now();
      await pause(kRetryMs[Math.min(failures++, kRetryMs.length - 1)]!, signal);
    }
  }

  async #identify(signal: AbortSignal): Promise<void> {
    const answer = await send('GET', '/v1/identity', { signal, timeoutMs: 10_000 });
    session.identify((await answer.json()) as Identity);
    const date = answer.headers.get('date');
    if (date) clock.set(new Date(date).toISOString());
  }

  // The server answers, for the first time or again.
  #reached(): void {
    const wasLost = this.lostSince !== null;
    this.connected = true;
    this.lostSince = null;
    if (wasLost) for (const listener of this.#listeners) listener.again();
  }

  async #poll(signal: AbortSignal, opened: () => void): Promise<void> {
    for (;;) {
      if (session.may('see-server')) this.cluster = await get<Cluster>('/v1/cluster', { signal });
      if (!this.connected) this.#reached();
      opened();
      do await pause(kPollMs, signal);
      while (document.hidden && !signal.aborted);
      if (signal.aborted) return;
      await this.#identify(signal);
      if (session.may('see-events')) return;
      for (const listener of this.#listeners) (listener.poll ?? listener.again).call(listener);
    }
  }

  async #connectAndRead(signal: AbortSignal, opened: () => void): Promise<void> {
    const cluster = await get<Cluster>('/v1/cluster', { signal, timeoutMs: 10_000 });
    clock.set(cluster.time);
    this.cluster = cluster;
    this.seq = cluster.seq;
    const silence = new AbortController();
    const both = AbortSignal.any([signal, silence.signal]);
    const answer = await send('GET', `/v1/events?follow=true&from=${cluster.seq + 1}`, {
      headers: { Accept: 'application/x-ndjson' },
      signal: both,
      timeoutMs: 0,
    });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    this.#reached();
    opened();
    let rest = '';
    for (;;) {
      const watchdog = setTimeout(() => silence.abort(), kSilenceMs);
      const { done, value } = await reader.read();
      clearTimeout(watchdog);
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') this.#take(JSON.parse(line) as BerthEvent);
    }
  }

  #take(event: BerthEvent): void {
    if (typeof event.seq !== 'number') return;
    this.#gathered.push(event);
    this.#flushing ??= setTimeout(() => this.#flush(), kGatherMs);
  }

  #flush(): void {
    this.#flushing = null;
    const events = this.#gathered;
    this.#gathered = [];
    const last = events.at(-1);
    if (!last) return;
    this.seq = last.seq;
    clock.set(last.time);
    for (const listener of this.#listeners) listener.events(events);
    if (events.some((event) => event.kind !== 'cycle-ran')) this.#count();
  }

  // The numbers of the whole cluster, again; at most every two seconds.
  #count(): void {
    this.#counting ??= setTimeout(() => {
      this.#counting = null;
      void get<Cluster>('/v1/cluster')
        .then((cluster) => (this.cluster = cluster))
        .catch(() => undefined);
    }, kCountMs);
  }
}

export const live = new Live();

// Calls `load` now, and again when an event came that `touches` what is shown; never twice at once, and after a pause that
// grows with how long loading takes. Returns what ends it.
export function keepFresh(
  load: () => Promise<void>,
  touches: (event: BerthEvent) => boolean,
  everyMs = 1000,
): () => void {
  let running = false;
  let wanted = false;
  let ended = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const run = async (): Promise<void> => {
    if (running || ended) {
      wanted = true;
      return;
    }
    running = true;
    wanted = false;
    const began = performance.now();
    await load().catch(() => undefined);
    const pause = Math.max(everyMs, 5 * (performance.now() - began));
    timer = setTimeout(() => {
      running = false;
      if (wanted) void run();
    }, pause);
  };
  const unlisten = live.listen({
    events: (events) => {
      if (events.some(touches)) void run();
    },
    again: () => void run(),
  });
  untrack(() => void run()); // an effect that calls this must not depend on what loading reads
  return () => {
    ended = true;
    clearTimeout(timer);
    unlisten();
  };
}
