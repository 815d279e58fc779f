/** The client of a KMS plug-in, with a server of k8s.io/kms/apis/v2 on a socket. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKmsPlugin } from '../../../src/apiserver/io/kms-plugin.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { RpcCode, type RpcService } from '../../../src/wire/grpc/port.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';

const fieldsOf = (message: Uint8Array): Map<number, Buffer> => {
  const reader = new Reader(message);
  const fields = new Map<number, Buffer>();
  for (let field = reader.field(); field !== 0; field = reader.field()) fields.set(field, reader.bytes());
  return fields;
};
const mirrored = (bytes: Uint8Array): Buffer => Buffer.from(bytes).reverse();

test('the KMS client queries status, encrypts and decrypts over a Unix socket, and reports a refusal or a missing plug-in', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'kms-'));
  const socket = join(directory, 'kms.sock');
  const entry = new Writer(64).string(1, 'region.example.com').bytes(2, Buffer.from('lab')).finish();
  let uid = '';
  const service: RpcService = {
    hasService: (name) => name === 'v2.KeyManagementService',
    unary: (path) => (message, call) => {
      const fields = fieldsOf(message);
      switch (path) {
        case '/v2.KeyManagementService/Status':
          return call.reply(new Writer(64).string(1, 'v2').string(2, 'ok').string(3, 'kek-9').finish());
        case '/v2.KeyManagementService/Encrypt':
          uid = fields.get(2)?.toString() ?? '';
          return call.reply(
            new Writer(256)
              .bytes(1, mirrored(fields.get(1) ?? Buffer.alloc(0)))
              .string(2, 'kek-9')
              .message(3, entry)
              .finish(),
          );
        case '/v2.KeyManagementService/Decrypt':
          if (fields.get(3)?.toString() !== 'kek-9') return call.fail(RpcCode.invalidArgument, 'no such key');
          assert.deepEqual(fields.get(4), entry);
          return call.reply(new Writer(64).bytes(1, mirrored(fields.get(1) ?? Buffer.alloc(0))).finish());
        default:
          return call.fail(RpcCode.unimplemented, path);
      }
    },
    stream: () => undefined,
    http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  };
  const listener = createRpcListener({ host: '127.0.0.1', port: 0, path: socket, log: silentLog });
  await listener.listen(service);
  const plugin = createKmsPlugin({ socket, timeoutMs: 2_000, clock: systemClock, log: silentLog });
  try {
    assert.deepEqual(await plugin.status(), { version: 'v2', healthz: 'ok', keyId: 'kek-9' });
    const plain = Buffer.from('a seed of thirty-two bytes, or so');
    const encrypted = await plugin.encrypt(plain, 'u-1');
    assert.equal(uid, 'u-1');
    assert.equal(encrypted.annotations.get('region.example.com')?.toString(), 'lab');
    assert.deepEqual(Buffer.from(await plugin.decrypt(encrypted, 'u-2')), plain);
    await assert.rejects(plugin.decrypt({ ...encrypted, keyId: 'other' }, 'u-3'), /no such key/);
    await listener.close(0);
    const beganMs = performance.now();
    await assert.rejects(plugin.status());
    assert.ok(performance.now() - beganMs < 4_000);
  } finally {
    plugin.close();
    await listener.close(0);
    await rm(directory, { recursive: true });
  }
});
