import assert from 'node:assert/strict';
import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { IssuerTokens, SIGNING_ALGORITHMS } from '../../../src/apiserver/authentication/issuers.ts';
import { parseToken } from '../../../src/apiserver/authentication/jwt.ts';
import type { BackendConnector } from '../../../src/apiserver/port.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { ManualClock, settle, systemClock } from '../../client/clocks.ts';
import { slack } from '../../support/slack.ts';

const ISSUER = 'https://issuer.example.com';
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ec384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const ec521 = generateKeyPairSync('ec', { namedCurve: 'P-521' });

/** JWS (RFC 7515) signed with node:crypto, not with the library that verifies it. */
function token(algorithm: string, key: KeyObject, header: object = {}, nowMs = Date.now()): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: ISSUER, sub: 'ann', aud: 'cluster', exp: Math.floor(nowMs / 1000) + 600 };
  const input = `${part({ alg: algorithm, ...header })}.${part(claims)}`;
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  const signature = sign(`sha${algorithm.slice(2)}`, Buffer.from(input), {
    key,
    dsaEncoding: 'ieee-p1363',
    ...(algorithm.startsWith('PS') ? pss : {}),
  });
  return `${input}.${signature.toString('base64url')}`;
}

const jwk = (key: KeyObject, more: object = {}): object => ({ ...key.export({ format: 'jwk' }), ...more });

/**
 * Returns a function that authenticates a token with an issuer that publishes `keys`, and returns the user name. `keys`
 * is a function if the keys change. The issuer cannot be reached while the function rejects.
 */
function issuerWith(
  keys: readonly unknown[] | ((signal: AbortSignal) => Promise<readonly unknown[]>),
  clock: Clock = systemClock,
): (text: string) => Promise<string | undefined> {
  const backends = {
    request: async ({ path, signal }: { path: string; signal: AbortSignal }) => {
      const published = typeof keys === 'function' ? await keys(signal) : keys;
      const isDiscovery = path.startsWith('/.well-known');
      const document = isDiscovery ? { issuer: ISSUER, jwks_uri: `${ISSUER}/keys` } : { keys: published };
      return Object.assign(Readable.from([Buffer.from(JSON.stringify(document))]), { statusCode: 200, headers: {} });
    },
  };
  const tokens = new IssuerTokens(
    {
      url: ISSUER,
      audiences: ['cluster'],
      algorithms: SIGNING_ALGORITHMS,
      username: { claim: 'sub', prefix: '' },
      requiredClaims: new Map(),
    },
    {
      backends: backends as unknown as BackendConnector & { request(): Promise<IncomingMessage> },
      clock,
      log: silentLog,
    },
  );
  return async (text) => {
    const parsed = parseToken(text);
    assert.ok(parsed);
    return (await tokens.authenticate(parsed, text))?.user.name;
  };
}

test('verifies tokens of every configurable algorithm, and requires a key for the algorithm', async () => {
  const pairs: Readonly<Record<string, { publicKey: KeyObject; privateKey: KeyObject }>> = {
    ES256: ec256,
    ES384: ec384,
    ES512: ec521,
  };
  for (const algorithm of SIGNING_ALGORITHMS) {
    const { publicKey, privateKey } = pairs[algorithm] ?? rsa;
    const user = issuerWith([jwk(publicKey, { kid: 'one' })]);
    assert.equal(await user(token(algorithm, privateKey, { kid: 'one' })), 'ann', algorithm);
    assert.equal(await user(token(algorithm, privateKey)), 'ann', `${algorithm} without kid`);
    const elsewhere = algorithm.startsWith('ES') ? rsa.publicKey : ec256.publicKey;
    const unfit = issuerWith([jwk(elsewhere, { kid: 'one' })]);
    assert.equal(await unfit(token(algorithm, privateKey, { kid: 'one' })), undefined, `${algorithm}, unfit key`);
  }
});

test('tries all keys for a token without kid, and ignores unusable keys', async () => {
  const user = issuerWith([
    null,
    'key',
    { kty: 'RSA' },
    { kty: 'RSA', n: '!', e: 'AQAB' },
    { kty: 'unknown' },
    jwk(ec384.publicKey),
    jwk(otherRsa.publicKey, { kid: 'first' }),
    jwk(rsa.publicKey, { kid: 'second' }),
  ]);
  assert.equal(await user(token('RS256', rsa.privateKey)), 'ann');
  assert.equal(await user(token('RS256', otherRsa.privateKey)), 'ann');
  assert.equal(await user(token('RS256', rsa.privateKey, { kid: 'second' })), 'ann');
  assert.equal(await user(token('RS256', rsa.privateKey, { kid: 'first' })), undefined);
  const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  assert.equal(await user(token('RS256', otherKey)), undefined);
});

test('rejects keys for encryption or another algorithm, and critical extensions', async () => {
  const encryption = issuerWith([jwk(rsa.publicKey, { use: 'enc' })]);
  assert.equal(await encryption(token('RS256', rsa.privateKey)), undefined);
  const pinned = issuerWith([jwk(rsa.publicKey, { alg: 'PS256' })]);
  assert.equal(await pinned(token('RS256', rsa.privateKey)), undefined);
  assert.equal(await pinned(token('PS256', rsa.privateKey)), 'ann');
  const user = issuerWith([jwk(rsa.publicKey)]);
  assert.equal(await user(token('RS256', rsa.privateKey, { crit: ['b64'], b64: true })), undefined);
});

test('ignores invalid, unusual or huge keys without blocking', async () => {
  const signed = token('RS256', rsa.privateKey);
  const giant = { kty: 'RSA', n: Buffer.alloc(8192, 0xff).toString('base64url') };
  const hostile: readonly (readonly unknown[])[] = [
    [null, 5, 'x', [], {}, { kty: 7 }, { kty: 'RSA' }, { kty: 'RSA', n: 5, e: {} }, { kty: 'RSA', n: '', e: '' }],
    [
      { kty: 'oct', k: 'AAAA', alg: 'RS256' },
      { kty: 'oct', k: 'AAAA' },
    ],
    [
      { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA' },
      { kty: 'EC', crv: '../x', x: 'A', y: 'A' },
    ],
    [JSON.parse('{"__proto__":{"kty":"RSA"},"kty":"RSA","n":"AQAB","e":"AQAB"}')],
    Array.from({ length: 200 }, () => ({ ...giant, e: Buffer.alloc(8192, 0xfd).toString('base64url') })),
    Array.from({ length: 200 }, () => ({ ...giant, e: 'AQAB' })),
    Array.from({ length: 20_000 }, (_, kid) => ({ kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: String(kid) })),
  ];
  let longest = 0;
  let last = performance.now();
  const watch = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 5);
  const began = performance.now();
  for (const keys of hostile) {
    const userOf = issuerWith(keys);
    assert.equal(await userOf(signed).catch(() => undefined), undefined);
    assert.equal(await userOf(token('RS256', rsa.privateKey, { kid: '__proto__' })).catch(() => undefined), undefined);
  }
  clearInterval(watch);
  assert.ok(
    longest < 1_000 * slack() && performance.now() - began < 15_000 * slack(),
    `${longest} of ${performance.now() - began} ms`,
  );
  const mixed = [...(hostile[0] ?? []), jwk(rsa.publicKey)];
  assert.equal(await issuerWith(mixed)(signed), 'ann');
});

test('verifies tokens with cached keys while the issuer cannot be reached', async () => {
  const HOUR_MS = 3_600_000;
  const clock = new ManualClock(Date.now());
  const one = jwk(rsa.publicKey, { kid: 'one' });
  const unreachable = (): Promise<never> => Promise.reject(new Error('connect ENETUNREACH'));
  let keys: (signal: AbortSignal) => Promise<readonly unknown[]> = async () => [one];
  const user = issuerWith((signal) => keys(signal), clock);
  const held = (): string => token('RS256', rsa.privateKey, { kid: 'one' }, clock.nowMs());
  const unknown = (): string => token('ES256', ec256.privateKey, { kid: 'two' }, clock.nowMs());
  assert.equal(await user(held()), 'ann');

  keys = unreachable;
  for (let hour = 1; hour <= 3; hour++) {
    await clock.advance(HOUR_MS);
    assert.equal(await user(held()), 'ann', `${hour} h after the keys were fetched`);
  }
  await clock.advance(10_000);
  await assert.rejects(user(unknown()), /ENETUNREACH/);
  // A firewall now drops the packets to the issuer. After a failed fetch, tokens are verified without delay.
  keys = (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  await clock.advance(10_000);
  assert.equal(await user(held()), 'ann');

  // The issuer is reachable again and has replaced its key.
  keys = async () => [jwk(ec256.publicKey, { kid: 'two' })];
  await clock.advance(20_000);
  await user(held());
  await settle();
  assert.equal(await user(held()), undefined);
  assert.equal(await user(unknown()), 'ann');
});

test('a removed key is rejected by the first request after the maximum age of the keys', async () => {
  const clock = new ManualClock(Date.now());
  let keys = [jwk(rsa.publicKey, { kid: 'one' })];
  const user = issuerWith(async () => keys, clock);
  const held = (): string => token('RS256', rsa.privateKey, { kid: 'one' }, clock.nowMs());
  assert.equal(await user(held()), 'ann');
  keys = [jwk(ec256.publicKey, { kid: 'two' })];
  await clock.advance(3_599_000);
  assert.equal(await user(held()), 'ann');
  await clock.advance(1_000);
  assert.equal(await user(held()), undefined);
});
