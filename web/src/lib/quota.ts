// The bars of the quota tree. All queues are drawn on one scale; each number is the API's own.

import type { Queue } from './types';

export interface Bar {
  within: number; // used inside the guarantee
  borrowed: number; // used beyond it
  nominated: number; // kept for jobs whose victims are leaving
  floor: number; // guaranteed and in force; 0 where none is stated
  idle: number; // of the floor: what it does not use, and others may borrow as far as it is lent
  ceiling: number | null; // null: none but that of the queues above
  pending: number;
}

export function barOf(queue: Queue): Bar {
  const used = queue.usage.gpus ?? 0;
  const within = queue.within.gpus ?? 0;
  const floor = queue.effective.gpus ?? queue.guaranteed.gpus ?? 0;
  return {
    within,
    borrowed: Math.max(0, used - within),
    nominated: queue.nominated_gpus,
    floor,
    idle: Math.max(0, floor - within),
    ceiling: queue.max.gpus ?? null,
    pending: queue.pending,
  };
}

// How many GPUs the whole width is: enough for every bar, and for the ceilings that the cluster can fill.
export function scaleOf(queues: Queue[], clusterGpus: number): number {
  let most = 0;
  for (const queue of queues) {
    const bar = barOf(queue);
    most = Math.max(
      most,
      bar.within + bar.borrowed + bar.nominated,
      bar.floor,
      Math.min(bar.ceiling ?? 0, clusterGpus),
    );
  }
  return most || 1;
}

// Starved: it waits, and does not have what is guaranteed to it.
export function isStarved(queue: Queue): boolean {
  const bar = barOf(queue);
  return queue.pending > 0 && bar.floor > bar.within + bar.nominated;
}

// By the tree: each queue right behind its parent, siblings by name.
export function inTreeOrder(queues: Queue[]): Queue[] {
  return queues.toSorted((a, b) => {
    const x = a.path.split('/');
    const y = b.path.split('/');
    for (let index = 0; index < Math.min(x.length, y.length); index += 1) {
      if (x[index] !== y[index]) return x[index]! < y[index]! ? -1 : 1;
    }
    return x.length - y.length;
  });
}
