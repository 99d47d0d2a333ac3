// What modules of the page ask of the browser when they are loaded, for unit tests, which run without one.
const kept = new Map<string, string>();
const storage = {
  getItem: (key: string) => kept.get(key) ?? null,
  setItem: (key: string, value: string) => void kept.set(key, value),
  removeItem: (key: string) => void kept.delete(key),
};
Object.assign(globalThis, {
  sessionStorage: storage,
  location: { hash: '' },
  addEventListener: () => undefined,
  document: { hidden: false },
});
