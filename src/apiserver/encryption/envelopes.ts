/**
 * Envelope encryption with a KMS plug-in: this server generates a seed, the plug-in encrypts it, and each value is
 * stored with the encrypted seed. Source: k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2; KEP-3299.
 */

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { BoundedMap } from '../../base/bounded-map.ts';
import { Reader, Writer } from '../../wire/protobuf/protobuf.ts';
import { aesGcm, type Cipher, derivedAesGcm } from './ciphers.ts';
import type { KmsEncrypted, KmsPlugin } from './kms-port.ts';

const SEED_BYTES = 32;
const MAX_SEED_SOURCE = 1024;
const MAX_SEEDS = 1000;
/** Interval of the check whether the plug-in has rotated its key. */
const STATUS_MS = 60_000;
const FIELD = { data: 1, keyId: 2, source: 3, annotations: 4, sourceType: 5 } as const;
const DERIVED_SEED = 1;

interface Envelope extends KmsEncrypted {
  readonly data: Uint8Array;
  /** Type of the encrypted secret. 0: an AES-GCM key; 1: a seed from which keys are derived. */
  readonly sourceType: number;
}

interface Writing {
  readonly cipher: Cipher;
  readonly source: KmsEncrypted;
  checkedMs: number;
}

export class Envelopes {
  readonly #plugin: KmsPlugin;
  readonly #nowMs: () => number;
  readonly #known = new BoundedMap<string, Cipher>(MAX_SEEDS);
  readonly #pending = new Map<string, Promise<Cipher>>();
  #writing: Writing | undefined;
  #renewing: Promise<Writing> | undefined;

  constructor(plugin: KmsPlugin, nowMs: () => number) {
    this.#plugin = plugin;
    this.#nowMs = nowMs;
  }

  /** ID of the current key. Undefined before the first encryption. */
  get keyId(): string | undefined {
    return this.#writing?.source.keyId;
  }

  seal(plain: Uint8Array, authenticated: string): Buffer | Promise<Buffer> {
    const writing = this.#writing;
    if (writing !== undefined && this.#nowMs() - writing.checkedMs < STATUS_MS)
      return sealWith(writing, plain, authenticated);
    return this.ready().then((fresh) => sealWith(fresh, plain, authenticated));
  }

  /** The current seed. It changes when the plug-in rotates its key. */
  ready(): Promise<Writing> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renew(): Promise<Writing> {
    const { keyId, healthz, version } = await this.#plugin.status();
    if (healthz !== 'ok') throw new Error(`the KMS plug-in is unhealthy: ${healthz}`);
    if (version !== 'v2' && version !== 'v2beta1')
      throw new Error(`the KMS plug-in has API version ${version}; v2 is required`);
    const current = this.#writing;
    if (current !== undefined && current.source.keyId === keyId) {
      current.checkedMs = this.#nowMs();
      return current;
    }
    const seed = randomBytes(SEED_BYTES);
    const source = await this.#plugin.encrypt(seed, randomUUID());
    if (source.keyId === '') throw new Error('the KMS plug-in returned no key ID');
    if (source.ciphertext.length === 0 || source.ciphertext.length > MAX_SEED_SOURCE)
      throw new Error(`the KMS plug-in returned ${source.ciphertext.length} bytes; the maximum is ${MAX_SEED_SOURCE}`);
    const writing = { cipher: derivedAesGcm(seed), source, checkedMs: this.#nowMs() };
    this.#known.set(cacheKey({ ...source, sourceType: DERIVED_SEED }), writing.cipher);
    this.#writing = writing;
    return writing;
  }

  open(sealed: Uint8Array, authenticated: string): { plain: Buffer | Promise<Buffer>; keyId: string } {
    const envelope = decode(sealed);
    const key = cacheKey(envelope);
    const cipher = this.#known.get(key);
    if (cipher !== undefined) return { plain: cipher.open(envelope.data, authenticated), keyId: envelope.keyId };
    const plain = this.#decryptKey(key, envelope).then((fresh) => fresh.open(envelope.data, authenticated));
    return { plain, keyId: envelope.keyId };
  }

  /** Decrypts a seed or key. All values with the same seed share one request to the plug-in. */
  #decryptKey(key: string, envelope: Envelope): Promise<Cipher> {
    let pendingKey = this.#pending.get(key);
    if (pendingKey === undefined) {
      pendingKey = this.#plugin
        .decrypt(envelope, randomUUID())
        .then((secret) => {
          const cipher = envelope.sourceType === DERIVED_SEED ? derivedAesGcm(secret) : aesGcm(secret);
          this.#known.set(key, cipher);
          return cipher;
        })
        .finally(() => this.#pending.delete(key));
      this.#pending.set(key, pendingKey);
    }
    return pendingKey;
  }
}

function sealWith({ cipher, source }: Writing, plain: Uint8Array, authenticated: string): Buffer {
  const writer = new Writer(plain.length + 512);
  writer.bytes(FIELD.data, cipher.seal(plain, authenticated));
  writer.string(FIELD.keyId, source.keyId);
  writer.bytes(FIELD.source, source.ciphertext);
  for (const [name, value] of source.annotations) {
    writer.message(FIELD.annotations, new Writer(64).string(1, name).bytes(2, value).finish());
  }
  writer.int(FIELD.sourceType, DERIVED_SEED);
  return writer.finish();
}

function decode(sealed: Uint8Array): Envelope {
  const reader = new Reader(sealed);
  let data: Uint8Array = Buffer.alloc(0);
  let ciphertext: Uint8Array = Buffer.alloc(0);
  let keyId = '';
  let sourceType = 0;
  const annotations = new Map<string, Uint8Array>();
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === FIELD.data) data = reader.bytes();
    else if (field === FIELD.keyId) keyId = reader.string();
    else if (field === FIELD.source) ciphertext = reader.bytes();
    else if (field === FIELD.annotations) annotations.set(...annotation(reader.bytes()));
    else if (field === FIELD.sourceType) sourceType = reader.int();
    else reader.skip();
  }
  if (data.length === 0 || ciphertext.length === 0 || keyId === '' || sourceType > DERIVED_SEED)
    throw new Error('the stored envelope is not complete');
  return { data, ciphertext, keyId, annotations, sourceType };
}

function annotation(bytes: Uint8Array): [string, Uint8Array] {
  const reader = new Reader(bytes);
  let name = '';
  let value: Uint8Array = Buffer.alloc(0);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.string();
    else if (field === 2) value = reader.bytes();
    else reader.skip();
  }
  return [name, value];
}

function cacheKey({ ciphertext, keyId, annotations, sourceType }: Omit<Envelope, 'data'>): string {
  const hash = createHash('sha256');
  const add = (bytes: Uint8Array | string): void => {
    hash.update(`${bytes.length}:`).update(bytes);
  };
  add(String(sourceType));
  add(ciphertext);
  add(keyId);
  for (const name of [...annotations.keys()].sort()) {
    add(name);
    add(annotations.get(name) ?? '');
  }
  return hash.digest('base64');
}
