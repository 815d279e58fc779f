/** Certificate signing requests are validated before they are stored. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createSigningRequest } from '../../../src/pki/index.ts';
import { startServer, type TestServer } from '../harness.ts';

const AT = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

interface Refusal {
  readonly reason: string;
  readonly details: { readonly causes: readonly { readonly field: string; readonly message: string }[] };
}

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const pem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
const derOf = (text: string): Buffer => Buffer.from(text.replaceAll(/-----.*-----|\s/g, ''), 'base64');
const requestFor = (key: KeyObject): string => createSigningRequest(key, { commonName: 'somebody' });

const post = (text: string, signerName = 'example.com/any', at = AT) =>
  server.call<Refusal>('POST', at, {
    body: {
      metadata: { generateName: 'r-' },
      spec: { request: Buffer.from(text).toString('base64'), signerName, usages: ['client auth'] },
    },
  });

test('stores a certificate request that is signed by its own key', async () => {
  for (const { privateKey } of [
    generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ]) {
    const { code, text } = await post(requestFor(privateKey));
    assert.equal(code, 201, text);
  }
});

test('rejects invalid certificate requests and requests with unsupported keys', async () => {
  const good = requestFor(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);
  const forged = derOf(good);
  forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1;
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  const unusual = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey;
  const before_ = (await server.call<{ items: object[] }>('GET', AT)).body.items.length;
  for (const [text, why] of [
    [pem(Buffer.from('no request at all')), /DER/],
    [pem(Buffer.alloc(20_000, Buffer.from([0x30, 0x80]))), /DER/],
    [
      pem(
        Buffer.concat(Array.from({ length: 100 }, (_, depth) => Buffer.from([0x30, 200 - depth * 2 - 1].slice(0, 2)))),
      ),
      /DER/,
    ],
    [pem(derOf(good).subarray(0, -3)), /DER/],
    [pem(Buffer.alloc(50_000, 0x30)), /larger than 65536 bytes|DER/],
    [pem(forged), /signature/],
    [requestFor(small), /1024 bits; 2048 to 8192 are accepted/],
    [requestFor(unusual), /curve "secp256k1" is not accepted/],
  ] as const) {
    const { code, body, text: answer } = await post(text);
    assert.equal(code, 422, answer);
    assert.equal(body.reason, 'Invalid');
    const [cause, ...more] = body.details.causes;
    assert.deepEqual([cause?.field, more.length], ['spec.request', 0]);
    assert.match(cause?.message ?? '', why);
  }
  assert.equal((await server.call<{ items: object[] }>('GET', AT)).body.items.length, before_);
  const older = await post(pem(forged), '', AT.replace('/v1/', '/v1beta1/'));
  assert.equal(older.code, 422, older.text);
});
