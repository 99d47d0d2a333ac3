// The server's time, ticking: durations on the page are measured on the clock by which the server decides, not on that of
// the reader's machine.

class Clock {
  now = $state(Date.now());
  #ahead = 0; // of the reader's clock

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.now = Date.now() + this.#ahead;
    }, 1000);
  }

  // The server's time is at least that.
  set(iso: string): void {
    const ahead = Date.parse(iso) - Date.now();
    if (Math.abs(ahead - this.#ahead) > 1500) this.#ahead = ahead;
    this.now = Date.now() + this.#ahead;
  }
}

export const clock = new Clock();
