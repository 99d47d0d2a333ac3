// Sign-in. Today the page asks for the token that `berth` itself uses and sends it as a bearer header; it is kept for this
// tab alone. Everything that knows how one signs in is here: where the server signs in by itself (a session cookie), this
// module is replaced and nothing else.

import { may, mayAnywhere, type Identity, type Subject, type Verb } from './roles';

const kKey = 'berth.token';

class Session {
  token = $state(sessionStorage.getItem(kKey) ?? '');
  identity = $state.raw<Identity | null>(null); // null: not known yet
  refused = $state(''); // why the server did not take the last token

  get signedIn(): boolean {
    return this.token !== '';
  }

  // What a request has to carry.
  headers(): Record<string, string> {
    return { Authorization: `Bearer ${this.token}` };
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

  signIn(token: string): void {
    this.refused = '';
    this.identity = null;
    this.token = token.trim();
    sessionStorage.setItem(kKey, this.token);
  }

  signOut(refused = ''): void {
    if (!this.signedIn) return; // several requests may be refused at once
    this.refused = refused;
    this.token = '';
    this.identity = null;
    sessionStorage.removeItem(kKey);
  }
}

export const session = new Session();
