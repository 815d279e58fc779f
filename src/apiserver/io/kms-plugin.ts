/** A client of a KMS plug-in. Source: k8s.io/kms/apis/v2 (api.proto). */

import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { fields, openChannel } from '../../wire/grpc/plugin-calls.ts';
import { Writer } from '../../wire/protobuf/protobuf.ts';
import type { KmsEncrypted, KmsPlugin } from '../encryption/kms-port.ts';

export interface KmsPluginOptions {
  readonly socket: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

const SERVICE = '/v2.KeyManagementService/';

/** Connects on first use and reconnects by itself. */
export function createKmsPlugin({ socket, timeoutMs, clock, log }: KmsPluginOptions): KmsPlugin {
  const channel = openChannel(socket, clock, log);
  const call = (method: string, message: Buffer): Promise<Buffer> =>
    channel.unary(`${SERVICE}${method}`, message, timeoutMs);
  return {
    async status() {
      const answer = read(await call('Status', Buffer.alloc(0)));
      return { version: text(answer.get(1)), healthz: text(answer.get(2)), keyId: text(answer.get(3)) };
    },
    async encrypt(plaintext, uid) {
      const answer = await call('Encrypt', new Writer(256).bytes(1, plaintext).string(2, uid).finish());
      let ciphertext: Uint8Array = Buffer.alloc(0);
      let keyId = '';
      const annotations = new Map<string, Uint8Array>();
      fields(answer, (field, reader) => {
        if (field === 1) ciphertext = reader.bytes();
        else if (field === 2) keyId = reader.string();
        else if (field === 3) {
          const entry = read(reader.bytes());
          annotations.set(text(entry.get(1)), entry.get(2) ?? Buffer.alloc(0));
        } else reader.skip();
      });
      return { ciphertext, keyId, annotations };
    },
    async decrypt({ ciphertext, keyId, annotations }: KmsEncrypted, uid) {
      const writer = new Writer(1024).bytes(1, ciphertext).string(2, uid).string(3, keyId);
      for (const [name, value] of annotations) {
        writer.message(4, new Writer(64).string(1, name).bytes(2, value).finish());
      }
      return read(await call('Decrypt', writer.finish())).get(1) ?? Buffer.alloc(0);
    },
    close: () => channel.close(),
  };
}

const text = (bytes: Buffer | undefined): string => bytes?.toString('utf8') ?? '';

/** Reads a message that has only byte fields, by field number. */
function read(message: Uint8Array): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  fields(message, (field, reader) => found.set(field, reader.bytes()));
  return found;
}
