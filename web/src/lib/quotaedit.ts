// The limits of a queue as they are typed, and the settings that a change of them asks for (POST /v1/queues/PATH/changes).

import type { Queue } from './types';

export interface QuotaFields {
  guaranteed: string; // GPUs; empty: none
  max: string;
  lending_limit: string;
  weight: string;
}
const kKeys: Record<keyof QuotaFields, string> = {
  guaranteed: 'guaranteed.gpus',
  max: 'max.gpus',
  lending_limit: 'lending_limit.gpus',
  weight: 'weight',
};
const kFields = Object.keys(kKeys) as (keyof QuotaFields)[];

export function quotaOf(queue: Queue): QuotaFields {
  const text = (value: number | undefined): string => (value === undefined ? '' : String(value));
  return {
    guaranteed: text(queue.guaranteed.gpus),
    max: text(queue.max.gpus),
    lending_limit: text(queue.lending_limit.gpus),
    weight: text(queue.weight),
  };
}

// One KEY=VALUE for each limit that was typed anew; the server says what is wrong with a value.
export function settingsOf(before: QuotaFields, typed: QuotaFields): string[] {
  return kFields
    .filter((key) => typed[key].trim() !== before[key])
    .map((key) => `${kKeys[key]}=${typed[key].trim() || (key === 'weight' ? '1' : 'none')}`);
}

// What is in the form when others have changed the queue meanwhile: what was typed stays, all else is as it is now.
export function rebased(typed: QuotaFields, before: QuotaFields, now: QuotaFields): QuotaFields {
  const fields = { ...typed };
  for (const key of kFields) if (typed[key].trim() === before[key]) fields[key] = now[key];
  return fields;
}
