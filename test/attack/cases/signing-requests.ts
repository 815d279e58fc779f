/** Invalid and expensive certificate signing requests. */
import assert from 'node:assert/strict';
import { createPublicKey, randomBytes } from 'node:crypto';
import type { AttackCase } from '../port.ts';

const pem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;

/** `depth` nested sequences with lengths of four bytes. */
function nested(depth: number): Buffer {
  const headers = Buffer.alloc(depth * 6);
  for (let at = 0; at < depth; at++) {
    headers.set([0x30, 0x84], at * 6);
    headers.writeUInt32BE((depth - at - 1) * 6, at * 6 + 2);
  }
  return headers;
}

/** An element with a length of four bytes. */
function element(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const header = Buffer.from([tag, 0x84, 0, 0, 0, 0]);
  header.writeUInt32BE(body.length, 2);
  return Buffer.concat([header, body]);
}

/** A well-formed request with an RSA key whose verification takes seconds. */
function giantKey(bits: number): Buffer {
  const modulus = randomBytes(bits / 8);
  modulus[0] = 0xff;
  modulus[modulus.length - 1] = 1;
  const jwk = { kty: 'RSA', n: modulus.toString('base64url'), e: modulus.toString('base64url') };
  const spki = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'der' });
  const info = element(0x30, Buffer.from([2, 1, 0]), element(0x30), spki, element(0xa0));
  const sha256WithRsa = Buffer.from('300d06092a864886f70d01010b0500', 'hex');
  return element(0x30, info, sha256WithRsa, element(3, Buffer.alloc(bits / 8 + 1)));
}

export const cases: readonly AttackCase[] = [
  {
    finding: 20,
    title: 'invalid certificate signing requests are rejected and not stored',
    attack: async (lab) => {
      const tenant = await lab.tenant();
      const { namespace } = tenant;
      const account = `--serviceaccount=${namespace}:attacker`;
      const group = 'certificatesigningrequests.certificates.k8s.io';
      await lab.pods.kubectl('create', 'clusterrole', namespace, '--verb=create', `--resource=${group}`);
      await lab.pods.kubectl('create', 'clusterrolebinding', namespace, `--clusterrole=${namespace}`, account);
      for (const [what, request] of [
        ['garbage', pem(Buffer.from('certainly no request'))],
        ['nested 10,000 deep', pem(nested(10_000))],
        ['a giant key', pem(giantKey(65_536))],
      ] as const) {
        const answer = await lab.request(tenant, 'POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', {
          metadata: { name: `${namespace}-${what.length}` },
          spec: {
            request: Buffer.from(request).toString('base64'),
            signerName: 'example.com/any',
            usages: ['client auth'],
          },
        });
        assert.equal(answer.code, 422, `${what}: ${answer.code} ${answer.body.slice(0, 300)}`);
        const { details } = JSON.parse(answer.body) as { details: { causes: { field: string }[] } };
        assert.deepEqual(
          details.causes.map(({ field }) => field),
          ['spec.request'],
        );
      }
      await lab.pods.kubectl('delete', `clusterrolebinding/${namespace}`, `clusterrole/${namespace}`);
    },
  },
];
