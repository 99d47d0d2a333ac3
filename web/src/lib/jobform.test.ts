import { expect, test } from 'vitest';
import { gpusOf, joinCommand, kEmpty, splitCommand, toDocument, toFields } from './jobform';

test('a command is split as a shell would', () => {
  expect(splitCommand('python3 train.py --epochs 3')).toEqual(['python3', 'train.py', '--epochs', '3']);
  expect(splitCommand(`sh -c 'echo "a  b"; exit 1'`)).toEqual(['sh', '-c', 'echo "a  b"; exit 1']);
  expect(splitCommand('echo "a \\"b\\"" c\\ d ""')).toEqual(['echo', 'a "b"', 'c d', '']);
  expect(splitCommand('  ')).toEqual([]);
});

test('a command that was joined is split into the same words', () => {
  for (const words of [['a'], ['sh', '-c', `it's "x" $y`], ['', ' '], ['a\\b', 'c\nd']]) {
    expect(splitCommand(joinCommand(words))).toEqual(words);
  }
});

test('the document has what was filled in, and nothing else', () => {
  expect(
    toDocument({ ...kEmpty, command: 'true', queue: 'a', gpus: '0.5', gpu_models: 'H100, A100', onSignal: true }),
  ).toEqual({
    queue: 'a',
    tasks: 1,
    gpus: 0.5,
    cpus: 1,
    gpu_models: ['H100', 'A100'],
    command: ['true'],
    checkpoint: { on_signal: true },
  });
});

test('what the form does not know of another job is kept', () => {
  const document = {
    queue: 'a',
    command: ['sh', '-c', 'x y'],
    tasks: 2,
    gpus: 4,
    cpus: 1,
    topology: { required: 'rack' },
    checkpoint: { on_signal: true, grace: '2m' },
  };
  expect(toDocument(toFields(document), document)).toEqual(document);
  expect(gpusOf(document)).toBe(8);
});
