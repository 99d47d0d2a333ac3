// What the form for submitting makes of its fields: the job document of docs/jobs.md. Members that the form does not know
// are kept as they came.

export interface Fields {
  name: string;
  queue: string;
  user: string;
  tasks: string;
  gpus: string;
  gpu_models: string;
  cpus: string;
  memory: string;
  command: string;
  priority: string;
  class: string;
  time_limit: string;
  retries: string;
  onSignal: boolean;
  hold: boolean;
}

export const kEmpty: Fields = {
  name: '',
  queue: '',
  user: '',
  tasks: '1',
  gpus: '1',
  gpu_models: '',
  cpus: '1',
  memory: '',
  command: '',
  priority: '',
  class: '',
  time_limit: '',
  retries: '',
  onSignal: false,
  hold: false,
};

type Document = Record<string, unknown>;

// A command as one types it: words, with quotes around what has spaces.
export function splitCommand(text: string): string[] {
  const words: string[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|'([^']*)'|((?:[^\s"'\\]|\\.)+)/gy;
  let word: string | null = null;
  let at = 0;
  while (at < text.length) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) {
      const part = match[2] ?? (match[1] ?? match[3] ?? '').replace(/\\(.)/gs, '$1');
      word = (word ?? '') + part;
      at = pattern.lastIndex;
    } else {
      if (word !== null) words.push(word);
      word = null;
      at += 1;
    }
  }
  if (word !== null) words.push(word);
  return words;
}

export function joinCommand(words: string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(' ');
}

const isNumber = (text: string): boolean => /^\d+(\.\d+)?$/.test(text.trim());

function put(document: Document, key: string, value: unknown): void {
  if (value === '' || value === undefined || value === false) delete document[key];
  else document[key] = value;
}

export function toDocument(fields: Fields, base: Document = {}): Document {
  const document: Document = { ...base };
  for (const key of ['name', 'queue', 'user', 'memory', 'priority', 'class', 'time_limit'] as const)
    put(document, key, fields[key].trim());
  for (const key of ['tasks', 'gpus', 'cpus', 'retries'] as const) {
    const text = fields[key].trim();
    put(document, key, isNumber(text) ? Number(text) : text);
  }
  const models = fields.gpu_models.split(',').map((model) => model.trim());
  put(
    document,
    'gpu_models',
    models.some((model) => model !== '') ? models.filter((model) => model !== '') : undefined,
  );
  const command = splitCommand(fields.command);
  put(document, 'command', command.length > 0 ? command : undefined);
  const checkpoint = { ...((base.checkpoint as Document | undefined) ?? {}) };
  put(checkpoint, 'on_signal', fields.onSignal);
  put(document, 'checkpoint', Object.keys(checkpoint).length > 0 ? checkpoint : undefined);
  put(document, 'hold', fields.hold);
  return document;
}

export function toFields(document: Document): Fields {
  const text = (key: string): string => {
    const value = document[key];
    return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
  };
  const command = document.command;
  const models = document.gpu_models;
  return {
    name: text('name'),
    queue: text('queue'),
    user: text('user'),
    tasks: text('tasks'),
    gpus: text('gpus'),
    gpu_models: Array.isArray(models) ? models.join(', ') : text('gpu_models'),
    cpus: text('cpus'),
    memory: text('memory'),
    command: Array.isArray(command) ? joinCommand(command.map(String)) : text('command'),
    priority: text('priority'),
    class: text('class'),
    time_limit: text('time_limit'),
    retries: text('retries'),
    onSignal: (document.checkpoint as Document | undefined)?.on_signal === true,
    hold: document.hold === true,
  };
}

// GPUs of the whole job, where the fields say it in numbers.
export function gpusOf(document: Document): number | null {
  const tasks = document.tasks ?? 1;
  const gpus = document.gpus ?? 0;
  return typeof tasks === 'number' && typeof gpus === 'number' ? tasks * gpus : null;
}
