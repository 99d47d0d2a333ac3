// Text that a tenant typed, made safe to read: what is invisible or turns the direction of writing is written out. It is
// always shown as text (Svelte escapes it); this is about what a reader sees, not about markup.

const kHidden =
  // Control characters, zero-width characters, line separators, directional marks and isolates, tags, lone surrogates.
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu;

export function visible(text: string): string {
  return text.replace(kHidden, (hidden) => `⟨U+${hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

// The same of a text of several lines.
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}
