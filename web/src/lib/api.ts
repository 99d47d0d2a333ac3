// Requests to the API. Every failure is one of two: a Problem, which the server answered, or Unreachable.

import { session } from './session.svelte';
import type { Page } from './types';

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export class Unreachable extends Error {
  constructor() {
    super('the server does not answer');
  }
}

export interface Options {
  body?: unknown;
  text?: string; // instead of `body`: the body as it is
  type?: string; // the content type of `text`
  headers?: Record<string, string>;
  signal?: AbortSignal;
  timeoutMs?: number; // 0: none
}

const kTimeoutMs = 30_000;

async function problemOf(answer: Response): Promise<Problem> {
  const body = (await answer.json().catch(() => ({}))) as { code?: string; detail?: string };
  return new Problem(answer.status, body.code ?? 'unknown', body.detail ?? `the server answered ${answer.status}`);
}

function signalOf(options: Options): AbortSignal | null {
  const timeoutMs = options.timeoutMs ?? kTimeoutMs;
  const signals = [options.signal, timeoutMs > 0 ? AbortSignal.timeout(timeoutMs) : undefined].filter(
    (one) => one !== undefined,
  );
  return signals.length > 0 ? AbortSignal.any(signals) : null;
}

// The answer, with its body unread; throws unless its status is a success.
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { ...session.headers(), ...options.headers };
  let body: string | undefined = options.text;
  if (options.body !== undefined) body = JSON.stringify(options.body);
  if (body !== undefined) headers['Content-Type'] = options.type ?? 'application/json';
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body,
      signal: signalOf(options),
      cache: 'no-store',
      redirect: 'error',
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Unreachable();
  }
  if (answer.ok) return answer;
  if (answer.status === 401) session.lost();
  throw await problemOf(answer);
}

export async function ask<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const answer = await send(method, path, options);
  try {
    return (await answer.json()) as T;
  } catch {
    throw new Unreachable(); // it went away in the middle of its answer
  }
}

export const get = <T>(path: string, options: Options = {}): Promise<T> => ask<T>('GET', path, options);

// A path with its query; parameters that are undefined or empty are left out.
export function withQuery(path: string, query: Record<string, string | number | boolean | undefined>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '' && value !== false) parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${text}`;
}

// Every item of a list that comes by pages. `onPage` is told of each page.
export async function getAll<T>(path: string, options: Options = {}, onPage?: (items: T[]) => void): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page: Page<T> = await get(withQuery(path, { limit: 1000, cursor }), options);
    items.push(...page.items);
    onPage?.(page.items);
    cursor = page.next_cursor;
  }
  return items;
}

export function sayError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
