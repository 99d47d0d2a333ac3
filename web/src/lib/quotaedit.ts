// Changes the quota of one queue in the configuration as the server gives it (GET /v1/config), and nothing else of it.

type Document = Record<string, unknown>;

export interface QuotaFields {
  guaranteed: string; // GPUs; empty: not stated
  max: string;
  lending_limit: string;
  weight: string;
}

const isDocument = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

// The queue at `path`, in a copy of the configuration that may be changed.
function find(config: Document, path: string): { copy: Document; queue: Document } | null {
  const copy = structuredClone(config);
  let at: Document = copy;
  for (const name of path.split('/')) {
    const queues = at.queues;
    if (!isDocument(queues) || !(name in queues)) return null;
    if (!isDocument(queues[name])) queues[name] = {}; // a bare name is a queue without limits
    at = queues[name] as Document;
  }
  return { copy, queue: at };
}

export function quotaOf(config: Document, path: string): QuotaFields | null {
  const found = find(config, path);
  if (!found) return null;
  const gpus = (key: string): string => {
    const amounts = found.queue[key];
    const value = isDocument(amounts) ? amounts.gpus : undefined;
    return value === undefined || isDocument(value) ? '' : String(value);
  };
  const weight = found.queue.weight;
  return {
    guaranteed: gpus('guaranteed'),
    max: gpus('max'),
    lending_limit: gpus('lending_limit'),
    weight: weight === undefined ? '' : String(weight),
  };
}

const amountOf = (text: string): number | string => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : text);

// The configuration with those limits; amounts of other things than GPUs stay as they are.
export function withQuota(config: Document, path: string, fields: QuotaFields): Document {
  const found = find(config, path);
  if (!found) return config;
  for (const key of ['guaranteed', 'max', 'lending_limit'] as const) {
    const text = fields[key].trim();
    const before = found.queue[key];
    const amounts: Document = isDocument(before) ? { ...before } : {};
    if (text === '') delete amounts.gpus;
    else amounts.gpus = amountOf(text);
    if (Object.keys(amounts).length > 0) found.queue[key] = amounts;
    else delete found.queue[key];
  }
  const weight = fields.weight.trim();
  if (weight === '') delete found.queue.weight;
  else found.queue.weight = amountOf(weight);
  return found.copy;
}
