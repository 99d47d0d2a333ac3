// A document that the form for submitting begins with: that of another job, or what was typed before.

const kKey = 'berth.draft';

export function keepDraft(document: Record<string, unknown>): void {
  sessionStorage.setItem(kKey, JSON.stringify(document));
}

export function takeDraft(): Record<string, unknown> | null {
  const text = sessionStorage.getItem(kKey);
  sessionStorage.removeItem(kKey);
  if (text === null) return null;
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}
