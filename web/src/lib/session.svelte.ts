// Sign-in. Today the page asks for the token that `berth` itself uses and sends it as a bearer header; it is kept for this
// tab alone. Everything that knows how one signs in is here: where the server signs in by itself (a session cookie), this
// module is replaced and nothing else.

const kKey = 'berth.token';

class Session {
  token = $state(sessionStorage.getItem(kKey) ?? '');
  refused = $state(''); // why the server did not take the last token

  get signedIn(): boolean {
    return this.token !== '';
  }

  // What a request has to carry.
  headers(): Record<string, string> {
    return { Authorization: `Bearer ${this.token}` };
  }

  signIn(token: string): void {
    this.refused = '';
    this.token = token.trim();
    sessionStorage.setItem(kKey, this.token);
  }

  signOut(refused = ''): void {
    if (!this.signedIn) return; // several requests may be refused at once
    this.refused = refused;
    this.token = '';
    sessionStorage.removeItem(kKey);
  }
}

export const session = new Session();
