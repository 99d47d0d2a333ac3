// The output of a task as lines to be read: bytes in, text out. Colour codes of terminals are left out, other control
// characters are written out, and a line that is too long is cut with a word about how much of it is missing.

import { visible } from './visible';

const kEscape = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
export const kMostOfLine = 2000;

export class LogText {
  lines: string[] = [];
  dropped = 0; // lines from the start that are not kept any more
  #open = ''; // the last line, which has no end yet
  #decoder = new TextDecoder('utf-8', { fatal: false });
  #most: number;

  constructor(most = 200_000) {
    this.#most = most;
  }

  add(bytes: Uint8Array): void {
    const text = this.#open + this.#decoder.decode(bytes, { stream: true });
    const parts = text.split('\n');
    this.#open = parts.pop() ?? '';
    for (const part of parts) this.lines.push(readable(part));
    if (this.lines.length > this.#most) {
      this.dropped += this.lines.length - this.#most;
      this.lines.splice(0, this.lines.length - this.#most);
    }
  }

  // All lines, the one that has no end yet included.
  all(): string[] {
    return this.#open === '' ? [...this.lines] : [...this.lines, readable(this.#open)];
  }
}

export function readable(line: string): string {
  // What a progress bar wrote over itself is what one would see of it: the text after the last carriage return.
  const plain = line.replace(/\r$/, '').replace(kEscape, '');
  const seen = plain.slice(plain.lastIndexOf('\r') + 1);
  const cut =
    seen.length > kMostOfLine
      ? `${seen.slice(0, kMostOfLine)} … (${seen.length - kMostOfLine} more characters in this line)`
      : seen;
  return visible(cut.replaceAll('\t', '    '));
}
