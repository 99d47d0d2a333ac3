// Reads /metrics (the text format of Prometheus) as far as the page needs it.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const kLine = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const kLabel = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = kLine.exec(line);
    if (!match) continue;
    const labels: Record<string, string> = {};
    for (const [, name, value] of (match[2] ?? '').matchAll(kLabel)) {
      labels[name!] = value!.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
    }
    samples.push({ name: match[1]!, labels, value: Number(match[3]) });
  }
  return samples;
}

// The sum of the samples of a name, by the value of one label.
export function sumBy(samples: Sample[], name: string, label: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const sample of samples) {
    if (sample.name !== name) continue;
    const key = sample.labels[label] ?? '';
    sums.set(key, (sums.get(key) ?? 0) + sample.value);
  }
  return sums;
}

export interface Waits {
  count: number;
  mean: number; // seconds
  p50: number | null; // the upper end of the bucket that the quantile is in; null: beyond the last
  p95: number | null;
}

// Quantiles of a histogram, by the value of one label: never finer than its buckets.
export function histogramBy(samples: Sample[], name: string, label: string): Map<string, Waits> {
  const buckets = new Map<string, Map<number, number>>();
  for (const sample of samples) {
    if (sample.name !== `${name}_bucket`) continue;
    const key = sample.labels[label] ?? '';
    const le = sample.labels.le === '+Inf' ? Infinity : Number(sample.labels.le);
    const of = buckets.get(key) ?? new Map<number, number>();
    of.set(le, (of.get(le) ?? 0) + sample.value);
    buckets.set(key, of);
  }
  const counts = sumBy(samples, `${name}_count`, label);
  const sums = sumBy(samples, `${name}_sum`, label);
  const result = new Map<string, Waits>();
  for (const [key, of] of buckets) {
    const total = counts.get(key) ?? 0;
    const rising = [...of].toSorted(([a], [b]) => a - b);
    const quantile = (q: number): number | null => {
      const bound = rising.find(([, below]) => below >= q * total)?.[0];
      return bound === undefined || bound === Infinity ? null : bound;
    };
    if (total > 0)
      result.set(key, { count: total, mean: (sums.get(key) ?? 0) / total, p50: quantile(0.5), p95: quantile(0.95) });
  }
  return result;
}
