// A document that the form for submitting begins with: that of another job, perhaps changed, or what was typed before.

export interface Draft {
  document: Record<string, unknown>;
  of?: number; // the job whose document it was
  replaces?: boolean; // that job is to be cancelled when this one is submitted
}

const kKey = 'berth.draft';

export function keepDraft(draft: Draft): void {
  sessionStorage.setItem(kKey, JSON.stringify(draft));
}

export function takeDraft(): Draft | null {
  const text = sessionStorage.getItem(kKey);
  sessionStorage.removeItem(kKey);
  return text === null ? null : (JSON.parse(text) as Draft);
}

// Returns the document with a JSON merge patch (RFC 7396).
export function patched(document: Record<string, unknown>, patch: Record<string, unknown>): Record<string, unknown> {
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const result = { ...document };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = isObject(value) ? patched(isObject(result[key]) ? result[key] : {}, value) : value;
  }
  return result;
}
