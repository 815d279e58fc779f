import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { offerKeys, removeOfferKeys } from '../../../src/host/join/offer-keys.ts';
import { openJoin, sealJoin } from '../../../src/host/join/sealed-join.ts';
import { offerText } from '../../../src/openshift/machines/kinds/machine-types.ts';

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-offer-'));
});
after(() => rm(root, { recursive: true, force: true }));

const DETAILS = { server: 'https://10.0.0.5:8443', token: 'abcdef.0123456789abcdef', caHash: 'sha256:00' };

test('creates private keys once, and signs offers with the keys', async () => {
  const keys = await offerKeys(root);
  const again = await offerKeys(root);
  assert.deepEqual([again.signingKey, again.sealingKey], [keys.signingKey, keys.sealingKey]);
  assert.match(keys.fingerprint, /^SHA256:[A-Za-z0-9+/]{43}$/);
  const file = join(root, 'var/lib/hyperedge-offer/keys.json');
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const text = offerText({ name: 'h', hardware: { cpu: { count: 2, arch: 'x86_64' } } });
  assert.equal(text, offerText({ name: 'h', hardware: { cpu: { arch: 'x86_64', count: 2 } } }), 'order of keys');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: keys.signingKey }, format: 'jwk' });
  assert.ok(verify(undefined, Buffer.from(text), key, Buffer.from(keys.sign(text), 'base64url')));
  await writeFile(file, '{}');
  await assert.rejects(offerKeys(root), {
    code: 'bad-config',
    message: /keys\.json: contains no keys; delete the file/,
  });
  await removeOfferKeys(root);
  assert.deepEqual(await readdir(join(root, 'var/lib')), []);
});

test('only the intended host can decrypt the join settings, and decryption detects every changed byte', async () => {
  const keys = await offerKeys(root);
  const sealed = sealJoin(DETAILS, keys.sealingKey);
  assert.deepEqual(openJoin(sealed, keys.sealing), DETAILS);
  assert.notEqual(sealJoin(DETAILS, keys.sealingKey), sealed);
  await removeOfferKeys(root);
  const other = await offerKeys(root);
  assert.throws(() => openJoin(sealed, other.sealing), { code: 'bad-offer' });
  const bytes = Buffer.from(sealed, 'base64');
  for (let index = 0; index < bytes.length; index += 1) {
    const changed = Buffer.from(bytes);
    changed[index] = (changed[index] ?? 0) ^ 1;
    assert.throws(() => openJoin(changed.toString('base64'), keys.sealing), { code: 'bad-offer' });
  }
  assert.throws(() => openJoin('', keys.sealing), { code: 'bad-offer' });
});
