/** Encryption at rest: values in the store are encrypted in upstream's format; clients see plain ones. */
import assert from 'node:assert/strict';
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { EncryptionConfiguration } from '../../../src/apiserver/index.ts';
import { createLog } from '../../../src/base/log.ts';
import { createMemoryStore, type MemoryStore } from '../../conformance/memory-store.ts';
import { startServer, type TestServer } from '../harness.ts';

const KEY1 = Buffer.alloc(32, 1);
const KEY2 = Buffer.alloc(32, 2);
const BOX = Buffer.alloc(32, 3);
const SECRET = '/api/v1/namespaces/default/secrets';

const gcm = (...keys: { name: string; secret: Uint8Array }[]) => ({ type: 'aesgcm', keys }) as const;
const only = (...providers: EncryptionConfiguration['resources'][number]['providers']): EncryptionConfiguration => ({
  resources: [{ resources: ['secrets', '*.example.com'], providers }],
});

/** Decrypts a value as kube-apiserver would, written from the documentation of the format. */
function upstreamOpensGcm(value: Buffer, prefix: string, key: Buffer, path: string): string {
  assert.equal(value.subarray(0, prefix.length).toString(), prefix);
  const rest = value.subarray(prefix.length);
  const decipher = createDecipheriv('aes-256-gcm', key, rest.subarray(0, 12));
  decipher.setAAD(Buffer.from(path));
  decipher.setAuthTag(rest.subarray(-16));
  return Buffer.concat([decipher.update(rest.subarray(12, -16)), decipher.final()]).toString();
}

async function stored(store: MemoryStore, key: string): Promise<Buffer> {
  const { kv } = await store.get(key);
  return Buffer.from(kv?.value ?? []);
}

const secret = (name: string, text: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData: { password: text },
});

describe('encryption at rest', () => {
  const store = createMemoryStore();
  const source = { current: only(gcm({ name: 'key1', secret: KEY1 })), refreshed: 0, async refresh() {} };
  let server: TestServer;
  before(async () => {
    server = await startServer({ store, encryption: source });
  });
  after(() => server.stop());

  it('encrypts values with AES-GCM and their store key as authenticated data', async () => {
    assert.equal((await server.call('POST', SECRET, { body: secret('one', 'hunter2') })).code, 201);
    const value = await stored(store, '/registry/secrets/default/one');
    const plain = upstreamOpensGcm(value, 'k8s:enc:aesgcm:v1:key1:', KEY1, '/registry/secrets/default/one');
    assert.match(plain, /"password":"aHVudGVyMg=="/);
    const read = await server.call<{ data: { password: string } }>('GET', `${SECRET}/one`);
    assert.equal(read.body.data.password, 'aHVudGVyMg==');
    const config = await server.call('POST', '/api/v1/namespaces/default/configmaps', {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'plain' }, data: { a: 'b' } },
    });
    assert.equal(config.code, 201);
    assert.match((await stored(store, '/registry/configmaps/default/plain')).toString(), /^\{"apiVersion"/);
  });

  it('decrypts values of another API server, and rejects a value that was moved to another key', async () => {
    const path = '/registry/secrets/default/theirs';
    const object = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'theirs', namespace: 'default', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' },
      data: { k: 'dg==' },
    });
    const nonce = Buffer.alloc(12, 9);
    const cipher = createCipheriv('aes-256-gcm', KEY1, nonce).setAAD(Buffer.from(path));
    const value = Buffer.concat([
      Buffer.from('k8s:enc:aesgcm:v1:key1:'),
      nonce,
      cipher.update(object),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    await store.commit({ guards: [], puts: [{ key: path, value }] });
    await until(async () => (await server.call('GET', `${SECRET}/theirs`)).code === 200);
    await store.commit({ guards: [], puts: [{ key: '/registry/secrets/default/moved', value }] });
    await server.call('POST', SECRET, { body: secret('later', 'x') });
    assert.equal((await server.call('GET', `${SECRET}/moved`)).code, 404);
    const list = await server.call<{ items: { metadata: { name: string } }[] }>('GET', SECRET);
    assert.ok(!list.body.items.some(({ metadata }) => metadata.name === 'moved'));
  });

  it('adopts a new encryption key without a restart: reads with the old key and writes with the new key', async () => {
    source.current = only(gcm({ name: 'key2', secret: KEY2 }, { name: 'key1', secret: KEY1 }), { type: 'identity' });
    const read = await server.call('GET', `${SECRET}/one`);
    assert.equal(read.code, 200);
    assert.equal((await server.call('PUT', `${SECRET}/one`, { body: read.body })).code, 200);
    const value = await stored(store, '/registry/secrets/default/one');
    upstreamOpensGcm(value, 'k8s:enc:aesgcm:v1:key2:', KEY2, '/registry/secrets/default/one');
    // After the rewrite, an unchanged update causes no further write.
    const { body } = await server.call<{ metadata: { resourceVersion: string } }>('GET', `${SECRET}/one`);
    await server.call('PUT', `${SECRET}/one`, { body });
    const again = await server.call<typeof body>('GET', `${SECRET}/one`);
    assert.equal(again.body.metadata.resourceVersion, body.metadata.resourceVersion);
  });

  it('starts on an encrypted store with any provider as the first provider', async () => {
    source.current = only(
      { type: 'secretbox', keys: [{ name: 'box', secret: BOX }] },
      gcm({ name: 'key2', secret: KEY2 }, { name: 'key1', secret: KEY1 }),
      { type: 'aescbc', keys: [{ name: 'cbc', secret: KEY1 }] },
    );
    await server.call('POST', SECRET, { body: secret('boxed', 'nacl') });
    assert.equal(
      (await stored(store, '/registry/secrets/default/boxed')).toString('latin1', 0, 24),
      'k8s:enc:secretbox:v1:box',
    );
    const other = await startServer({ store, encryption: source });
    try {
      const list = await other.call<{ items: { metadata: { name: string } }[] }>('GET', SECRET);
      assert.deepEqual(
        list.body.items.map(({ metadata }) => metadata.name),
        ['boxed', 'later', 'one', 'theirs'],
      );
    } finally {
      await other.stop(true);
    }
  });

  it('reports a missing encryption key, and reloads the encryption configuration', async () => {
    const lines: string[] = [];
    const complete = source.current;
    const late = {
      current: only(gcm({ name: 'other', secret: KEY2 })),
      async refresh() {},
    };
    const log = createLog({
      component: 'test',
      level: 2,
      least: 'info',
      sink: { write: (line) => lines.push(line) },
      nowMs: () => 0,
    });
    const blind = await startServer({ store, encryption: late, log });
    try {
      assert.equal((await blind.call('GET', `${SECRET}/boxed`)).code, 404);
      assert.ok(lines.some((line) => line.includes('k8s:enc:secretbox:v1:box:')));
      assert.ok(!lines.some((line) => line.includes('bmFjbA')));
    } finally {
      await blind.stop(true);
    }
    const found = {
      ...late,
      async refresh() {
        this.current = complete;
      },
    };
    const seeing = await startServer({ store, encryption: found });
    try {
      assert.equal((await seeing.call('GET', `${SECRET}/boxed`)).code, 200);
    } finally {
      await seeing.stop(true);
    }
  });
});

describe('a KMS plug-in', () => {
  const store = createMemoryStore();
  const kms = {
    keyId: 'kek-1',
    decrypted: 0,
    down: false,
    async status() {
      if (this.down) throw new Error('no plug-in');
      return { version: 'v2', healthz: 'ok', keyId: this.keyId };
    },
    async encrypt(plaintext: Uint8Array) {
      const ciphertext = Buffer.concat([Buffer.from(this.keyId), plaintext.map((byte) => byte ^ 0x5a)]);
      return { ciphertext, keyId: this.keyId, annotations: new Map([['a.example.com', Buffer.from('note')]]) };
    },
    async decrypt({ ciphertext, keyId }: { ciphertext: Uint8Array; keyId: string }) {
      if (this.down) throw new Error('no plug-in');
      this.decrypted += 1;
      return Buffer.from(ciphertext.subarray(keyId.length).map((byte) => byte ^ 0x5a));
    },
    close() {},
  };
  const source = { current: only({ type: 'kms', name: 'plug', plugin: kms }), async refresh() {} };

  it('shares one encrypted seed between values, so that one KMS call decrypts all values', async () => {
    const server = await startServer({ store, encryption: source });
    for (let at = 0; at < 20; at++) await server.call('POST', SECRET, { body: secret(`s${at}`, `text ${at}`) });
    for (const [path, code] of [
      ['/healthz', 200],
      ['/readyz', 200],
      ['/livez', 404],
    ] as const)
      assert.equal((await server.call('GET', `${path}/kms-providers`)).code, code, path);
    await server.stop(true);
    const value = await stored(store, '/registry/secrets/default/s3');
    const prefix = 'k8s:enc:kms:v2:plug:';
    assert.equal(value.toString('latin1', 0, prefix.length), prefix);
    // EncryptedObject{encryptedData=1, keyID=2, encryptedDEKSource=3, annotations=4, encryptedDEKSourceType=5}
    const message = value.subarray(prefix.length);
    assert.equal(message[0], 0x0a);
    assert.deepEqual([...message.subarray(-2)], [0x28, 1]);
    const at = message.indexOf(Buffer.concat([Buffer.from([0x12, 5]), Buffer.from('kek-1'), Buffer.from([0x1a, 37])]));
    assert.ok(at > 0);
    const seed = message.subarray(at + 9 + 5, at + 9 + 37).map((byte) => byte ^ 0x5a);
    const length = message.readUInt8(1) >= 0x80 ? 2 : 1;
    const data = message.subarray(1 + length, at);
    const key = createHmac('sha256', seed)
      .update(data.subarray(0, 32))
      .update(Buffer.from([1]))
      .digest();
    const plain = upstreamOpensGcm(data.subarray(32), '', key, '/registry/secrets/default/s3');
    assert.match(plain, /"name":"s3"/);
    kms.decrypted = 0;
    const again = await startServer({
      store,
      encryption: { ...source, current: only({ type: 'kms', name: 'plug', plugin: kms }) },
    });
    const list = await again.call<{ items: unknown[] }>('GET', SECRET);
    assert.equal(list.body.items.length, 20);
    assert.equal(kms.decrypted, 1);
    await again.stop(true);
  });

  it('reads and writes wait while the KMS plug-in is unavailable', async () => {
    kms.down = true;
    const starting = startServer({
      store,
      encryption: { ...source, current: only({ type: 'kms', name: 'plug', plugin: kms }) },
    });
    const early = await Promise.race([starting, new Promise((resolve) => setTimeout(resolve, 600, 'waiting'))]);
    assert.equal(early, 'waiting');
    kms.down = false;
    const server = await starting;
    assert.equal((await server.call<{ items: unknown[] }>('GET', SECRET)).body.items.length, 20);
    await server.stop(true);
  });
});

async function until(check: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail('did not come true');
}
