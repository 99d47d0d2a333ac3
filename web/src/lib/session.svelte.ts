// Sign-in: with an identity provider, by the server, which keeps the session in a cookie that no script can read; or with the
// token that `berth` itself uses, which is sent as a bearer header and kept for this tab alone. Everything that knows how one
// signs in is here.

import { may, mayAnywhere, type Identity, type Subject, type Verb } from './roles';

const kKey = 'berth.token';
const kWhere = 'berth.where'; // the address to come back to

interface SignIn {
  issuers: string[];
  change_token: string | null;
}

async function ask(): Promise<SignIn | null> {
  try {
    const answer = await fetch('/sign-in/session', { cache: 'no-store', redirect: 'error' });
    return answer.ok ? ((await answer.json()) as SignIn) : null;
  } catch {
    return null;
  }
}

class Session {
  token = $state(sessionStorage.getItem(kKey) ?? '');
  changeToken = $state(''); // what a change by the cookie's session has to carry; empty: there is no session
  known = $state(sessionStorage.getItem(kKey) !== null); // whether there is a session
  issuers = $state.raw<string[]>([]);
  identity = $state.raw<Identity | null>(null); // null: not known yet
  refused = $state(''); // why the server did not take the last token or session

  get signedIn(): boolean {
    return this.token !== '' || this.changeToken !== '';
  }

  // What a request has to carry.
  headers(): Record<string, string> {
    return this.token !== '' ? { Authorization: `Bearer ${this.token}` } : { 'X-Berth-Change': this.changeToken };
  }

  may(verb: Verb, subject: Subject = {}): boolean {
    return may(this.identity, verb, subject);
  }
  mayAnywhere(verb: Verb): boolean {
    return mayAnywhere(this.identity, verb);
  }

  // What the server says of who this is. The same again changes nothing.
  identify(identity: Identity): void {
    if (JSON.stringify(identity) !== JSON.stringify(this.identity)) this.identity = identity;
  }

  // Asks whether the browser has a session already, and by whom one can sign in.
  async resume(): Promise<void> {
    if (this.signedIn) return;
    const found = await ask();
    this.issuers = found?.issuers ?? [];
    if (!this.signedIn && found?.change_token) {
      this.changeToken = found.change_token;
      this.#goBack();
    }
    this.known = true;
  }

  // To the issuer; the browser leaves the page.
  begin(issuer: string): void {
    if (!location.hash.startsWith('#/sign-in')) sessionStorage.setItem(kWhere, location.hash);
    location.assign(`/sign-in/begin?issuer=${encodeURIComponent(issuer)}`);
  }

  // To where the reader was before it signed in.
  #goBack(): void {
    const where = sessionStorage.getItem(kWhere);
    sessionStorage.removeItem(kWhere);
    if (where?.startsWith('#/')) location.replace(where);
    else if (location.hash.startsWith('#/sign-in')) location.replace('#/jobs');
  }

  signIn(token: string): void {
    this.refused = '';
    this.identity = null;
    this.token = token.trim();
    sessionStorage.setItem(kKey, this.token);
    if (location.hash.startsWith('#/sign-in')) location.replace('#/jobs');
  }

  signOut(refused = ''): void {
    if (!this.signedIn) return; // several requests may be refused at once
    if (this.changeToken !== '' && refused === '') void this.#endSession(this.headers());
    this.refused = refused;
    this.token = '';
    this.changeToken = '';
    this.identity = null;
    sessionStorage.removeItem(kKey);
    void this.resume(); // by whom one can sign in
  }

  // The server does not take what the last request carried.
  lost(): void {
    this.signOut(this.token !== '' ? 'The server does not know that token.' : 'Your session has ended. Sign in again.');
  }

  async #endSession(headers: Record<string, string>): Promise<void> {
    await fetch('/sign-in/out', { method: 'POST', headers, keepalive: true }).catch(() => undefined);
  }
}

export const session = new Session();
