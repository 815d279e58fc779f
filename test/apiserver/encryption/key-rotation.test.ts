/** Key rotation of encryption at rest, and rewriting of all values. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { parseEncryption } from '../../../src/apiserver/config/encryption.ts';
import * as first from '../../../src/apiserver/encryption/first-configuration.ts';
import * as rotation from '../../../src/apiserver/encryption/key-rotation.ts';
import { scanEncryption } from '../../../src/apiserver/index.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createMemoryStore } from '../../conformance/memory-store.ts';

const secret = (): string => randomBytes(32).toString('base64');
const firstEncryptionFile = (provider: 'secretbox' | 'aesgcm', nowMs: number): string =>
  first.firstEncryptionFile(provider, nowMs, secret());
const withNewKey = (text: string, file: string, prepare: boolean, nowMs: number) =>
  rotation.withNewKey(text, file, prepare, { name: first.newKeyName(nowMs), secret: secret() });
const noPlugin = (): never => assert.fail('no plug-in is configured');
const parsed = (text: string) => parseEncryption(text, 'f.yaml', noPlugin);
const names = (text: string): string[] => {
  const [provider] = parsed(text).resources[0]?.providers ?? [];
  return provider !== undefined && 'keys' in provider ? provider.keys.map(({ name }) => name) : [];
};

test('adds an encryption key as the first key, or as the second key for a later promotion, and keeps comments', () => {
  const original = firstEncryptionFile('secretbox', 0);
  const [key0] = names(original);
  const rotated = withNewKey(original, 'f.yaml', false, 1000);
  assert.deepEqual(names(rotated.text), [rotated.key, key0]);
  assert.match(rotated.text, /^# Encryption of API objects in the store/);
  const prepared = withNewKey(rotated.text, 'f.yaml', true, 2000);
  assert.deepEqual(names(prepared.text), [rotated.key, prepared.key, key0]);
  const promoted = withNewKey(prepared.text, 'f.yaml', false, 3000);
  assert.deepEqual(names(promoted.text), [prepared.key, rotated.key, key0]);
  assert.equal(promoted.key, prepared.key);
  // The second key is older now, so the next rotation creates a new one.
  const next = withNewKey(promoted.text, 'f.yaml', false, 4000);
  assert.deepEqual(names(next.text), [next.key, prepared.key, rotated.key, key0]);
});

test('rewrites each encrypted value once, and leaves unencrypted values unchanged', async () => {
  const store = createMemoryStore();
  const put = (key: string, kind: string) =>
    store.commit({ guards: [], puts: [{ key, value: Buffer.from(`{"kind":"${kind}","metadata":{"name":"x"}}`) }] });
  for (let at = 0; at < 450; at++) await put(`/registry/secrets/default/s${at}`, 'Secret');
  await put('/registry/configmaps/default/c', 'ConfigMap');
  await put('/registry/example.com/widgets/default/w', 'Widget');
  await put('/registry/events/default/e', 'Event');
  const text = firstEncryptionFile('aesgcm', 0).replace(
    '- secrets',
    '- secrets\n      - "*.example.com"\n      - events',
  );
  const at = (configuration: string) => ({
    store,
    source: { current: parsed(configuration), async refresh() {} },
    log: silentLog,
    nowMs: () => performance.now(),
  });
  const before = await scanEncryption(at(text), false);
  assert.deepEqual(before.forms, [
    { resource: 'widgets.example.com', form: '', current: false, objects: 1 },
    { resource: 'secrets', form: '', current: false, objects: 450 },
  ]);
  const { rewritten } = await scanEncryption(at(text), true);
  assert.equal(rewritten, 451);
  assert.equal((await scanEncryption(at(text), true)).rewritten, 0);
  const { kv } = await store.get('/registry/events/default/e');
  assert.match(Buffer.from(kv?.value ?? []).toString(), /^\{"kind":"Event"/);
  const rotated = withNewKey(text, 'f.yaml', false, 1000).text;
  const stale = await scanEncryption(at(rotated), false);
  assert.deepEqual(
    stale.forms.map(({ current }) => current),
    [false, false],
  );
  assert.equal((await scanEncryption(at(rotated), true)).rewritten, 451);
  const strange = await scanEncryption(at(firstEncryptionFile('aesgcm', 9)), false);
  assert.equal(strange.unreadable.length, 451);
});

test('rejects an invalid encryption configuration with one line that contains no key', () => {
  const good = firstEncryptionFile('secretbox', 0);
  const cases: [string, RegExp][] = [
    [good.replace(/secret: .*/, 'secret: c2hvcnQ='), /f\.yaml:\d+: .*secret: is 5 bytes long; it must be 32/],
    [good.replace(/secret: .*/, 'secret: "%%%"'), /secret: is not base64/],
    [good.replace('- secrets', '- "secrets/*"'), /give resources such as/],
    [good.replace(/name: key/, 'name: "a:b" #'), /a key name has no colon/],
    [good.replace('- identity: {}', '- identity: {}\n        aescbc: {keys: []}'), /one provider an entry of its own/],
    [good.replace('secretbox', 'rot13'), /unknown field/],
    [good.replace('kind: EncryptionConfiguration', 'kind: Other'), /kind: must be one of/],
  ];
  for (const [text, message] of cases) assert.throws(() => parsed(text), message);
});
