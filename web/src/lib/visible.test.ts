import { expect, test } from 'vitest';
import { visible, visibleLines } from './visible';

test('what turns the direction of writing, or is not seen, is written out', () => {
  expect(visible('a\u202egnp.exe')).toBe('a⟨U+202E⟩gnp.exe');
  expect(visible('x\u0000\u001b[31m\u007f')).toBe('x⟨U+0000⟩⟨U+001B⟩[31m⟨U+007F⟩');
  expect(visible('zero\u200bwidth\ufeff')).toBe('zero⟨U+200B⟩width⟨U+FEFF⟩');
  expect(visible('tag\u{e0041}')).toBe('tag⟨U+E0041⟩');
});

test('what can be read stays as it is, markup too', () => {
  for (const text of ['<b>bold</b>', 'שלום', '模型-7', '🚀', 'a b']) expect(visible(text)).toBe(text);
});

test('lines stay lines', () => {
  expect(visibleLines('{\n  "a": "\u202e"\n}')).toBe('{\n  "a": "⟨U+202E⟩"\n}');
});
