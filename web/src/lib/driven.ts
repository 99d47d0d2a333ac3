// What each team holds and does not drive: of GPUs that tell how much they were driven over the last hour.

import type { Node } from './types';

export interface TeamDriven {
  team: string; // the queue at the top
  held: number; // GPUs, measured or not
  measured: number;
  undriven: number; // of the measured: as many GPUs as would do the rest of the work at 100 %
}

// `queueOf` has the queue of each job that runs. A GPU that several jobs share counts for each of them in equal parts.
export function drivenByTeam(nodes: Node[], queueOf: Map<number, string>): TeamDriven[] {
  const teams = new Map<string, TeamDriven>();
  for (const node of nodes) {
    for (const gpu of node.gpus) {
      for (const job of gpu.jobs) {
        const team = (queueOf.get(job) ?? '').split('/')[0]!;
        const part = 1 / gpu.jobs.length;
        const sum = teams.get(team) ?? { team, held: 0, measured: 0, undriven: 0 };
        sum.held += part;
        if (gpu.driven_pct !== undefined) {
          sum.measured += part;
          sum.undriven += (part * (100 - gpu.driven_pct)) / 100;
        }
        teams.set(team, sum);
      }
    }
  }
  return [...teams.values()].toSorted((a, b) => b.undriven - a.undriven || a.team.localeCompare(b.team));
}
