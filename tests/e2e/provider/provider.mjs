// An OpenID provider for oidc_test.py and web/tests/signin.mjs: npm's oidc-provider with two users, a client of the device
// flow, one of berth's web page and a machine's.
//   node provider.mjs PORT STATE_FILE
// STATE_FILE is read at the start: {"key": "k1", "algorithm": "RS256", "groups": {"ada": ["nlp"]}, "token_s": 60}; the key of
// that name is made anew at each start. POST /test/state changes the rest. POST /test/approve?user_code=CODE&user=ada is
// the browser of a user who says yes. "page": the redirect URI of the web page; its users sign in by a form with their name,
// and `nobody` says no.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const [port, stateFile] = process.argv.slice(2);
const state = JSON.parse(readFileSync(stateFile, 'utf8'));
const issuer = `http://127.0.0.1:${port}`;

function signingKey() {
  const pair = state.algorithm === 'ES256'
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
    : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...pair.privateKey.export({ format: 'jwk' }), kid: state.key, use: 'sig', alg: state.algorithm };
}

const provider = new Provider(issuer, {
  jwks: { keys: [signingKey()] },
  cookies: { keys: ['of a test'] },
  clients: [
    {
      client_id: 'berth-cli',
      token_endpoint_auth_method: 'none',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
      response_types: [],
      redirect_uris: [],
      id_token_signed_response_alg: state.algorithm,
    },
    ...(state.page === undefined
      ? []
      : [
          {
            client_id: 'berth-page',
            token_endpoint_auth_method: 'none',
            grant_types: ['authorization_code', 'refresh_token'],
            response_types: ['code'],
            redirect_uris: [state.page],
            id_token_signed_response_alg: state.algorithm,
          },
        ]),
    {
      client_id: 'robot',
      client_secret: 'not-a-real-secret',
      id_token_signed_response_alg: state.algorithm,
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
    },
  ],
  scopes: ['openid', 'offline_access', 'groups'],
  claims: { openid: ['sub'], groups: ['groups'] },
  conformIdTokenClaims: false,
  findAccount: (_, sub) =>
    state.gone?.includes(sub) ? undefined : { accountId: sub, claims: () => ({ sub, groups: state.groups[sub] ?? [] }) },
  ttl: {
    IdToken: () => state.token_s,
    ClientCredentials: () => state.token_s,
    AccessToken: () => state.token_s,
    DeviceCode: () => 60,
    Grant: () => 3600,
    RefreshToken: () => 3600,
  },
  rotateRefreshToken: true,
  interactions: { url: (_, interaction) => `/test/interaction/${interaction.uid}` },
  issueRefreshToken: (_, client, code) => client.grantTypeAllowed('refresh_token') &&
    (client.clientId === 'berth-page' ? state.refresh !== false : code.scopes.has('offline_access')),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    deviceFlow: {
      enabled: true,
      async userCodeInputSource(ctx) { ctx.body = 'code?'; },
      async userCodeConfirmSource(ctx) { ctx.body = 'sure?'; },
      async successSource(ctx) { ctx.body = 'done'; },
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      getResourceServerInfo: () => ({
        scope: 'use',
        audience: 'berth',
        accessTokenFormat: 'jwt',
        accessTokenTTL: state.token_s,
        jwt: { sign: { alg: state.algorithm } },
      }),
    },
  },
});
provider.on('server_error', (_, error) => console.error(error));

// What the pages of the device flow would do for a user who is signed in.
async function approve(userCode, user) {
  const code = await provider.DeviceCode.findByUserCode(userCode.replace('-', ''), { ignoreExpiration: true });
  if (!code) return false;
  const grant = new provider.Grant({ accountId: user, clientId: code.clientId });
  grant.addOIDCScope('openid offline_access groups');
  grant.addOIDCClaims(['sub', 'groups']);
  Object.assign(code, { accountId: user, grantId: await grant.save(), scope: code.params.scope, authTime: 1 });
  await code.save();
  return true;
}

// The form by which a user of the web page signs in.
async function interact(request, response) {
  if (request.method === 'GET') {
    response.setHeader('Content-Type', 'text/html');
    response.end('<form method="post"><label>Name <input name="user"></label><button>Yes</button></form>');
    return;
  }
  let body = '';
  for await (const part of request) body += part;
  const user = new URLSearchParams(body).get('user');
  const { params } = await provider.interactionDetails(request, response);
  let result = { error: 'access_denied' };
  if (user !== 'nobody') {
    const grant = new provider.Grant({ accountId: user, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    grant.addOIDCClaims(['sub', 'groups']);
    result = { login: { accountId: user }, consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

const handler = provider.callback();
createServer(async (request, response) => {
  const url = new URL(request.url, issuer);
  if (url.pathname === '/test/state') {
    let body = '';
    for await (const part of request) body += part;
    Object.assign(state, JSON.parse(body));
    response.end('ok');
  } else if (url.pathname.startsWith('/test/interaction/')) {
    await interact(request, response);
  } else if (url.pathname === '/test/approve') {
    const done = await approve(url.searchParams.get('user_code'), url.searchParams.get('user')).catch((error) => error);
    response.statusCode = done === true ? 200 : 500;
    response.end(String(done?.stack ?? done));
  } else {
    handler(request, response);
  }
}).listen(Number(port), '127.0.0.1', () => console.log('ready'));
