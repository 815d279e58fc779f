import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { createTokens, simpleTokens } from '../../../src/store/auth/auth-tokens.ts';
import { costLikeBcrypt, scryptHasher } from '../../../src/store/auth/password.ts';
import type { Tokens } from '../../../src/store/auth/tokens.ts';
import { AuthError } from '../../../src/store/core/auth/errors.ts';
import { Channel } from '../../../src/wire/grpc/channel.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import {
  type Certificates,
  DEBIAN_ETCD,
  isInstalled,
  makeCertificates,
  clock as realClock,
  remove,
  startDebianEtcd,
  temporaryDirectory,
} from '../harness.ts';

/** Clock that advances only on request. */
function standing(): Clock & { forward(ms: number): void } {
  let now = 1_700_000_000_000;
  return {
    nowMs: () => now,
    monotonicMs: () => now,
    setTimer: () => ({ cancel: () => {} }),
    forward: (ms) => {
      now += ms;
    },
  };
}

const pem = (key: KeyObject): string =>
  String(key.export({ format: 'pem', type: key.type === 'private' ? 'pkcs8' : 'spki' }));
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const FILES: Readonly<Record<string, string>> = {
  'rsa.key': pem(rsa.privateKey),
  'rsa.pub': pem(rsa.publicKey),
  'other.pub': pem(otherRsa.publicKey),
  'p256.key': pem(p256.privateKey),
  'p256.pub': pem(p256.publicKey),
  'p384.key': pem(p384.privateKey),
  secret: 'not so secret',
  rubbish: 'rubbish',
};

const tokensOf = (option: string, clock: Clock = realClock): Promise<Tokens> =>
  createTokens(option, clock, async (path) => FILES[path] ?? Promise.reject(new Error(`no ${path}`)));

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Token of `user`, registered on this member. */
async function given(tokens: Tokens, user: string): Promise<string> {
  const token = await tokens.issue(user, 1);
  tokens.remember?.(token, user);
  return token;
}

describe('simple tokens', () => {
  it('simple tokens expire after five minutes without use', async () => {
    const clock = standing();
    const tokens = simpleTokens(clock);
    const token = await given(tokens, 'alice');
    clock.forward(299_000);
    assert.deepEqual(tokens.caller(token, 7), { user: 'alice', revision: 7 });
    clock.forward(299_000);
    assert.notEqual(tokens.caller(token, 7), undefined);
    clock.forward(300_000);
    assert.equal(tokens.caller(token, 7), undefined);
  });

  it('invalidates simple tokens when their user is deleted or auth is disabled', async () => {
    const tokens = simpleTokens(standing());
    const [alice, bob] = [await given(tokens, 'alice'), await given(tokens, 'bob')];
    assert.notEqual(alice, bob);
    tokens.forget('alice');
    assert.equal(tokens.caller(alice, 1), undefined);
    assert.equal(tokens.caller(bob, 1)?.user, 'bob');
    tokens.clear();
    assert.equal(tokens.caller(bob, 1), undefined);
    assert.equal(tokens.caller('', 1), undefined);
  });
});

describe('limit of simple tokens', () => {
  it('evicts the least recently used simple tokens beyond the limit', async () => {
    const tokens = simpleTokens(standing());
    const [first, second] = [await given(tokens, 'a'), await given(tokens, 'b')];
    for (let i = 2; i < 50_000; i += 1) await given(tokens, 'c');
    assert.equal(tokens.caller(first, 1)?.user, 'a');
    await given(tokens, 'd');
    assert.equal(tokens.caller(second, 1), undefined);
    assert.equal(tokens.caller(first, 1)?.user, 'a');
  });
});

describe('JSON web tokens', () => {
  for (const option of [
    'jwt,sign-method=RS256,priv-key=rsa.key',
    'jwt,pub-key=rsa.pub,priv-key=rsa.key,sign-method=RS512,ttl=10m',
    'jwt,sign-method=PS384,priv-key=rsa.key,ttl=1h30m',
    'jwt,sign-method=ES256,priv-key=p256.key,pub-key=p256.pub',
    'jwt,sign-method=ES384,priv-key=p384.key',
    'jwt,sign-method=HS256,priv-key=secret',
  ]) {
    it(`JSON web tokens contain user and revision with the option ${option}`, async () => {
      const tokens = await tokensOf(option);
      const token = await tokens.issue('alice', 12);
      assert.deepEqual(tokens.caller(token, 99), { user: 'alice', revision: 12 });
      const [head, body, signature = ''] = token.split('.');
      const flipped = Buffer.from(signature, 'base64url');
      flipped[10] = (flipped[10] as number) ^ 1;
      assert.equal(tokens.caller(`${head}.${body}.${flipped.toString('base64url')}`, 12), undefined);
      const forged = part({ username: 'root', revision: 12, exp: 9_999_999_999 });
      assert.equal(tokens.caller(`${head}.${forged}.${signature}`, 12), undefined);
    });
  }

  it('JSON web tokens expire after their TTL', async () => {
    const clock = standing();
    const tokens = await tokensOf('jwt,sign-method=ES256,priv-key=p256.key,ttl=10m', clock);
    const token = await tokens.issue('alice', 1);
    clock.forward(599_000);
    assert.notEqual(tokens.caller(token, 1), undefined);
    clock.forward(1000);
    assert.equal(tokens.caller(token, 1), undefined);
  });

  it('rejects JSON web tokens with the method none, or signed with the public key as an HMAC secret', async () => {
    const tokens = await tokensOf('jwt,sign-method=RS256,pub-key=rsa.pub');
    const claims = part({ username: 'root', revision: 1, exp: 9_999_999_999 });
    assert.equal(tokens.caller(`${part({ alg: 'none', typ: 'JWT' })}.${claims}.`, 1), undefined);
    assert.equal(tokens.caller(`${part({ alg: 'none', typ: 'JWT' })}.${claims}.AAAA`, 1), undefined);
    const head = part({ alg: 'HS256', typ: 'JWT' });
    const mac = createHmac('sha256', FILES['rsa.pub'] as string)
      .update(`${head}.${claims}`)
      .digest('base64url');
    assert.equal(tokens.caller(`${head}.${claims}.${mac}`, 1), undefined);
    const rs512 = await tokensOf('jwt,sign-method=RS512,priv-key=rsa.key');
    assert.equal(tokens.caller(await rs512.issue('root', 1), 1), undefined);
  });

  it('accepts JSON web tokens of other issuers only with the required claims', async () => {
    const tokens = await tokensOf('jwt,sign-method=HS256,priv-key=secret');
    const make = (claims: object, header: object = { alg: 'HS256' }): string => {
      const body = `${part(header)}.${part(claims)}`;
      return `${body}.${createHmac('sha256', FILES['secret'] as string)
        .update(body)
        .digest('base64url')}`;
    };
    assert.equal(tokens.caller(make({ username: 'a', revision: 4 }), 1)?.revision, 4);
    for (const claims of [
      {},
      { username: 1, revision: 1 },
      { username: 'a' },
      { username: 'a', revision: '1' },
      { username: 'a', revision: 1, exp: 'never' },
      { username: 'a', revision: 1, nbf: 9_999_999_999 },
      [],
    ]) {
      assert.equal(tokens.caller(make(claims), 1), undefined, JSON.stringify(claims));
    }
    // A valid signature under a header with another algorithm.
    for (const header of [{ alg: 'HS256', crit: ['x'] }, { alg: 'HS512' }, { alg: 'none' }, {}]) {
      assert.equal(tokens.caller(make({ username: 'a', revision: 1 }, header), 1), undefined, JSON.stringify(header));
    }
    for (const rubbish of ['', '.', '..', 'a.b', 'a.b.c', 'a.b.c.d', 'x'.repeat(100_000)]) {
      assert.equal(tokens.caller(rubbish, 1), undefined);
    }
  });

  it('issues no JSON web token if only the public key is configured', async () => {
    const tokens = await tokensOf('jwt,sign-method=RS256,pub-key=rsa.pub');
    await assert.rejects(
      tokens.issue('alice', 1),
      (error) => error instanceof AuthError && error.code === 'verify-only',
    );
  });

  it('rejects an invalid --auth-token option with the reason', async () => {
    for (const [option, reason] of [
      ['other', /neither simple nor jwt/],
      ['simple,ttl=1m', /neither simple nor jwt/],
      ['jwt', /sign-method= is not one of/],
      ['jwt,sign-method=none', /sign-method=none is not one of/],
      ['jwt,sign-method=RS256', /give priv-key/],
      ['jwt,sign-method=HS256,pub-key=rsa.pub', /needs priv-key/],
      ['jwt,sign-method=RS256,priv-key=p256.key', /needs an RSA key/],
      ['jwt,sign-method=ES384,priv-key=p256.key', /needs a key on secp384r1/],
      ['jwt,sign-method=RS256,priv-key=rubbish', /priv-key: .*PEM/],
      ['jwt,sign-method=RS256,priv-key=rsa.key,pub-key=other.pub', /does not belong/],
      ['jwt,sign-method=RS256,priv-key=rsa.key,ttl=soon', /ttl=soon is not a duration/],
      ['jwt,sign-method=RS256,priv-key=rsa.key,color=red', /color=red is not one of/],
      ['jwt,sign-method=RS256,sign-method=RS512,priv-key=rsa.key', /each once/],
    ] as const) {
      await assert.rejects(
        tokensOf(option),
        (error) => error instanceof CodedError && error.code === 'bad-config' && reason.test(error.message),
        option,
      );
    }
  });
});

describe('passwords', () => {
  const hasher = scryptHasher({ ln: 4, r: 8, p: 1 });

  it('password hashes have a random salt and can be verified', async () => {
    const [first, second] = [await hasher.hash('pass word'), await hasher.hash('pass word')];
    assert.notEqual(first, second);
    assert.match(first, /^\$scrypt\$ln=4,r=8,p=1\$/);
    assert.ok(await hasher.verify('pass word', first));
    assert.ok(!(await hasher.verify('pass wort', first)));
    assert.ok(await hasher.verify('', await hasher.hash('')));
  });

  it('verifies a password with the scrypt parameters of its hash, within limits', async () => {
    const stronger = await scryptHasher({ ln: 6, r: 4, p: 2 }).hash('pw');
    assert.ok(await hasher.verify('pw', stronger));
    for (const hash of ['', 'pw', '$scrypt$ln=30,r=8,p=1$AAAA$AAAA', '$scrypt$ln=4,r=0,p=1$AAAA$AAAA', '$2a$10$abc']) {
      assert.ok(!(await hasher.verify('pw', hash)), hash);
    }
  });

  it('hashing a password takes as long as with bcrypt at the same cost, with bounded memory', () => {
    assert.deepEqual(costLikeBcrypt(10), { ln: 14, r: 8, p: 2 });
    assert.deepEqual(costLikeBcrypt(4), { ln: 8, r: 8, p: 2 });
    assert.deepEqual(costLikeBcrypt(12), { ln: 14, r: 8, p: 8 });
    assert.deepEqual(costLikeBcrypt(31), costLikeBcrypt(20));
  });

  it('verifies a password hashed with the highest bcrypt cost', async () => {
    const cost = { ...costLikeBcrypt(31), ln: 1 };
    assert.ok(await hasher.verify('pw', await scryptHasher(cost).hash('pw')));
  });

  it('queues password hashing and rejects requests beyond the queue limit', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 200 }, () => hasher.hash('pw')));
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    assert.equal(refused.length, 200 - 2 - 128);
    assert.ok(refused.every(({ reason }) => reason instanceof CodedError && reason.code === 'too-many-requests'));
    assert.ok(await hasher.verify('pw', await hasher.hash('pw')));
  });
});

describe("tokens of Debian's etcd", async () => {
  const skip = (await isInstalled(DEBIAN_ETCD)) ? false : 'etcd-server is not installed';
  let root = '';
  let certificates: Certificates;
  before(async () => {
    root = await temporaryDirectory();
    certificates = await makeCertificates(root);
    for (const [name, content] of Object.entries(FILES)) await writeFile(join(root, name), content);
  });
  after(() => remove(root));

  for (const [method, key] of [
    ['RS512', 'rsa'],
    ['PS256', 'rsa'],
    ['ES256', 'p256'],
  ] as const) {
    it(`this store accepts JSON web tokens of Debian's etcd with ${method}, and etcd accepts those of this store`, {
      skip,
    }, async () => {
      const option = (directory: string): string =>
        `jwt,pub-key=${directory}${key}.pub,priv-key=${directory}${key}.key,sign-method=${method}`;
      const etcd = await startDebianEtcd(await mkdtemp(join(root, 'data-')), certificates, {
        'auth-token': option(`${root}/`),
      });
      const tls = { ca: certificates.ca, ...certificates.client };
      const channel = new Channel({ endpoints: [etcd.endpoint], log: silentLog, clock: realClock, ...tls });
      const call = (path: string, message: Buffer, token?: string): Promise<Buffer> =>
        channel.unary(path, message, 5000, token === undefined ? {} : { metadata: { name: 'token', value: token } });
      const auth = (name: string, ...strings: readonly string[]): Promise<Buffer> => {
        const out = new Writer();
        for (const [i, value] of strings.entries()) out.string(i + 1, value);
        return call(`/etcdserverpb.Auth/${name}`, out.finish());
      };
      try {
        await auth('UserAdd', 'root', 'pw');
        await auth('RoleAdd', 'root');
        await auth('UserGrantRole', 'root', 'root');
        await auth('AuthEnable');
        const theirs = field2(await auth('Authenticate', 'root', 'pw'));
        // Files are given by name only, see `tokensOf`.
        const tokens = await tokensOf(option(''));
        const caller = tokens.caller(theirs, 0);
        assert.equal(caller?.user, 'root');
        const ours = await tokens.issue('root', caller.revision);
        const range = new Writer().latin1(1, 'a').finish();
        await call('/etcdserverpb.KV/Range', range, ours);
        await assert.rejects(call('/etcdserverpb.KV/Range', range, `${ours.slice(0, -6)}AAAAAA`), /invalid auth token/);
        const old = await tokens.issue('root', caller.revision - 1);
        await assert.rejects(call('/etcdserverpb.KV/Range', range, old), /revision of auth store is old/);
      } finally {
        channel.close();
        await etcd.stop();
      }
    });
  }
});

/** The string in field 2 of a response. */
function field2(answer: Buffer): string {
  const reader = new Reader(answer);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 2) return reader.string();
    reader.skip();
  }
  throw new Error('no field 2');
}
