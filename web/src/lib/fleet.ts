// Where each GPU of the fleet is drawn, and in which colour. World units; the canvas scales them.

import type { Gpu, Node } from './types';

export interface Spot {
  node: Node;
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Box {
  label: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Plan {
  spots: Spot[];
  racks: Box[];
  pools: Box[];
  w: number;
  h: number;
}

export const kGpu = 6; // the side of a GPU, with the gap behind it
const kNodeGap = 3;
const kRackGap = 8;
const kRackHead = 9;
const kPoolHead = 13;
const kNodesHigh = 8; // nodes above each other in a rack

export function columnsOf(node: Node): number {
  return Math.max(1, Math.min(node.gpus.length > 8 ? 8 : 4, node.gpus.length));
}

// Where a GPU of a node is, from the corner of the node.
export function gpuAt(node: Node, index: number): { x: number; y: number } {
  const columns = columnsOf(node);
  return { x: 1 + (index % columns) * kGpu, y: 1 + Math.floor(index / columns) * kGpu };
}

function sizeOf(node: Node): { w: number; h: number } {
  const columns = columnsOf(node);
  return { w: columns * kGpu + 1, h: Math.max(1, Math.ceil(node.gpus.length / columns)) * kGpu + 1 };
}

const rackOf = (node: Node): string => node.topology.join(' / ');

function groupBy(nodes: Node[], key: (node: Node) => string): Map<string, Node[]> {
  const groups = new Map<string, Node[]>();
  for (const node of nodes) {
    const group = groups.get(key(node));
    if (group) group.push(node);
    else groups.set(key(node), [node]);
  }
  return new Map([...groups].toSorted(([a], [b]) => a.localeCompare(b, 'en', { numeric: true })));
}

interface Rack {
  label: string;
  nodes: Node[];
  w: number;
  h: number;
  high: number;
  cell: { w: number; h: number };
}

function rackFor(label: string, nodes: Node[]): Rack {
  const sizes = nodes.map(sizeOf);
  const cell = { w: Math.max(...sizes.map((size) => size.w)), h: Math.max(...sizes.map((size) => size.h)) };
  // A rack that is no rack, because no topology is told, is as square as it can be.
  const high =
    label === ''
      ? Math.max(1, Math.ceil(Math.sqrt((nodes.length * cell.w) / cell.h)))
      : Math.min(nodes.length, kNodesHigh);
  const wide = Math.ceil(nodes.length / high);
  return {
    label,
    nodes,
    high,
    cell,
    w: wide * (cell.w + kNodeGap) - kNodeGap,
    h: high * (cell.h + kNodeGap) - kNodeGap,
  };
}

// Pools one below the other, racks beside each other in rows, nodes in their rack, by name. `aspect` is the canvas's.
export function planFleet(nodes: Node[], aspect: number): Plan {
  const plan: Plan = { spots: [], racks: [], pools: [], w: 1, h: 1 };
  const pools = [...groupBy(nodes, (node) => node.pool)].map(([label, members]) => ({
    label,
    racks: [...groupBy(members, rackOf)].map(([rack, inside]) => rackFor(rack, inside)),
  }));
  const area = pools
    .flatMap((pool) => pool.racks)
    .reduce((sum, rack) => sum + (rack.w + kRackGap) * (rack.h + kRackGap + kRackHead), 0);
  const widest = Math.max(Math.sqrt(area * aspect), ...pools.flatMap((pool) => pool.racks.map((rack) => rack.w)));
  let y = 0;
  for (const pool of pools) {
    const top = y;
    y += kPoolHead;
    let x = 0;
    let rowHeight = 0;
    let right = 0;
    for (const rack of pool.racks) {
      const head = rack.label === '' ? 0 : kRackHead;
      if (x > 0 && x + rack.w > widest) {
        x = 0;
        y += rowHeight + kRackGap;
        rowHeight = 0;
      }
      if (head > 0) plan.racks.push({ label: rack.label, x, y, w: rack.w, h: rack.h + head });
      rack.nodes.forEach((node, index) => {
        const column = Math.floor(index / rack.high);
        const size = sizeOf(node);
        plan.spots.push({
          node,
          x: x + column * (rack.cell.w + kNodeGap),
          y: y + head + (index % rack.high) * (rack.cell.h + kNodeGap),
          ...size,
        });
      });
      x += rack.w + kRackGap;
      right = Math.max(right, x - kRackGap);
      rowHeight = Math.max(rowHeight, rack.h + head);
    }
    y += rowHeight;
    plan.pools.push({ label: pool.label, x: 0, y: top, w: right, h: y - top });
    plan.w = Math.max(plan.w, right);
    y += 2 * kRackGap;
  }
  plan.h = Math.max(1, y - 2 * kRackGap);
  return plan;
}

export type ColorBy = 'team' | 'state' | 'driven' | 'health';

// Okabe and Ito's, which colour-blind readers tell apart; black is left out, it would vanish in the dark.
export const kTeamColors = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a90f', '#8c6bb1'];
// Light to dark, even in brightness (after viridis).
export const kDrivenColors = ['#fde725', '#a0da39', '#4ac16d', '#1fa187', '#277f8e', '#365c8d', '#46327e', '#440154'];

export type Look =
  | 'free'
  | 'closed'
  | 'silent'
  | 'broken'
  | 'foreign'
  | 'used'
  | 'part'
  | 'nominated'
  | 'unmeasured'
  | `team-${number}`
  | `driven-${number}`;

export function isClosed(node: Node): boolean {
  return node.cordoned || node.draining || node.maintenance.some((window) => Date.parse(window.from) <= Date.now());
}

// A team is a queue at the top. Returns the teams of the jobs, each once, in order.
export function teamsIn(queueOf: Map<number, string>): string[] {
  return [...new Set([...queueOf.values()].map((queue) => queue.split('/')[0]!))].toSorted();
}

// Returns the number of the team that a job belongs to.
export function teamNumbers(teams: string[], queueOf: Map<number, string>): (job: number) => number {
  const numbers = new Map(teams.map((team, index) => [team, index]));
  return (job) => numbers.get((queueOf.get(job) ?? '').split('/')[0]!) ?? 0;
}

// `teamOf` is the number of the team that a job belongs to.
export function lookOf(node: Node, gpu: Gpu, by: ColorBy, teamOf: (job: number) => number): Look {
  if (!gpu.healthy) return 'broken';
  if (node.status !== 'ready') return 'silent';
  const job = gpu.jobs[0];
  if (job === undefined && gpu.foreign) return 'foreign';
  if (by === 'health') return isClosed(node) ? 'closed' : 'used';
  if (by === 'driven') {
    if (gpu.driven_pct === undefined) return job === undefined ? 'free' : 'unmeasured';
    return `driven-${Math.min(7, Math.floor((100 - gpu.driven_pct) / 12.5))}`;
  }
  if (job === undefined) return gpu.nominated > 0 ? 'nominated' : isClosed(node) ? 'closed' : 'free';
  if (by === 'team') return `team-${teamOf(job) % kTeamColors.length}`;
  return gpu.free > 0 ? 'part' : 'used';
}

export const kLookWords: Record<string, string> = {
  free: 'free',
  closed: 'cordoned or drained',
  silent: 'no contact',
  broken: 'unhealthy',
  foreign: 'used by others',
  used: 'bound',
  part: 'bound in part',
  nominated: 'nominated',
  unmeasured: 'bound, not measured',
};
