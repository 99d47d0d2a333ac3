import { expect, test } from 'vitest';
import { kMostOfLine, LogText, readable } from './logtext';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test('lines that arrive in pieces are put together, letters of several bytes too', () => {
  const log = new LogText();
  const all = bytes('größe\nzwei');
  for (const byte of all) log.add(new Uint8Array([byte]));
  expect(log.all()).toEqual(['größe', 'zwei']);
  log.add(bytes(' Teile\n'));
  expect(log.all()).toEqual(['größe', 'zwei Teile']);
});

test('colours of terminals are left out, other control characters are written out', () => {
  expect(readable('\u001b[1;31mred\u001b[0m \u001b]0;title\u0007x\u0008')).toBe('red x⟨U+0008⟩');
  expect(readable('a\u202eb')).toBe('a⟨U+202E⟩b');
  expect(readable('<img src=x onerror=alert(1)>')).toBe('<img src=x onerror=alert(1)>');
});

test('of a line that was written over, the last writing is seen', () => {
  expect(readable(' 10 %\r 50 %\r100 %\r')).toBe('100 %');
});

test('a line that is too long says how much of it is missing', () => {
  expect(readable('x'.repeat(kMostOfLine + 7))).toMatch(/… \(7 more characters in this line\)$/);
});

test('lines that are not kept are counted', () => {
  const log = new LogText(3);
  log.add(bytes('1\n2\n3\n4\n5\n'));
  expect(log.all()).toEqual(['3', '4', '5']);
  expect(log.dropped).toBe(2);
});

test('bytes that are no text do no harm', () => {
  const log = new LogText();
  log.add(new Uint8Array([0xff, 0xfe, 0x00, 0x0a]));
  expect(log.all()).toEqual(['��⟨U+0000⟩']);
});
