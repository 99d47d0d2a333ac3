// Numbers and times as they are shown. Numbers are never rounded away from what the API says, but for shares and memory.

const kDay = 86_400;

// Whole seconds as 45 s, 3 min 20 s, 2 h 05 min, 3 d 4 h.
export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s < 600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 60)} min`;
  if (s < kDay) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, '0')} min`;
  return `${Math.floor(s / kDay)} d ${Math.floor((s % kDay) / 3600)} h`;
}

export function secondsBetween(from: string, to: string | number): number {
  return ((typeof to === 'number' ? to : Date.parse(to)) - Date.parse(from)) / 1000;
}

const thousands = new Intl.NumberFormat('en-US', { maximumFractionDigits: 3 });

export function count(value: number): string {
  return thousands.format(value);
}

export function gpus(value: number): string {
  return `${count(value)} ${value === 1 ? 'GPU' : 'GPUs'}`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function memory(mib: number): string {
  if (mib >= 1024 * 1024) return `${count(Math.round((mib / 1024 / 1024) * 10) / 10)} TiB`;
  return mib >= 1024 ? `${count(Math.round((mib / 1024) * 10) / 10)} GiB` : `${count(mib)} MiB`;
}

export function percent(value: number): string {
  return `${count(Math.round(value * 10) / 10)} %`;
}

// GPU time, from seconds.
export function gpuHours(gpuSeconds: number): string {
  const hours = gpuSeconds / 3600;
  if (gpuSeconds < 600) return `${count(Math.round(gpuSeconds))} GPU-s`;
  return hours < 10 ? `${hours.toFixed(2)} GPU-h` : `${count(Math.round(hours * 10) / 10)} GPU-h`;
}

// In the reader's zone; without the day where it is the same day as `now`.
export function localTime(iso: string, now: number): string {
  const time = new Date(iso);
  const clockText = time.toLocaleTimeString('en-GB');
  if (time.toDateString() === new Date(now).toDateString()) return clockText;
  const day = time.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' });
  return time.getFullYear() === new Date(now).getFullYear()
    ? `${day} ${clockText}`
    : `${day} ${time.getFullYear()} ${clockText}`;
}

export function utc(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}
