import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { CodedError } from '../../base/errors.ts';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION_PADDED = 0;
const VERSION_PLAIN = 1;
const BLOCK_BYTES = 16;
/** Maximum number of keys. Each key causes one decryption attempt per packet of another ring. */
const MAX_KEYS = 8;

/** Bytes that encryption adds: version byte, nonce and tag. */
export const ENCRYPTION_OVERHEAD = 1 + NONCE_BYTES + TAG_BYTES;

/**
 * The ring's shared secrets: keys of 16, 24 or 32 bytes for AES-GCM (memberlist/security.go, keyring.go). The first key
 * encrypts, and all keys decrypt. Rotation: `install` the new key on every member, then `use` it on every member, then
 * `remove` the old key.
 */
export class Keyring {
  #keys: readonly Buffer[];

  constructor(keys: readonly Uint8Array[]) {
    if (keys.length === 0 || keys.length > MAX_KEYS)
      throw new CodedError('keyring-size', `a keyring holds 1 to ${MAX_KEYS} keys, not ${keys.length}`);
    this.#keys = keys.map(checked);
  }

  get size(): number {
    return this.#keys.length;
  }

  /** All keys. The first key encrypts. */
  keys(): readonly Uint8Array[] {
    return this.#keys;
  }

  /** Reverts a change. `keys`: an earlier result of {@link keys}. */
  restore(keys: readonly Uint8Array[]): void {
    this.#keys = keys.map(checked);
  }

  /** Adds a key for decryption. */
  install(key: Uint8Array): void {
    const added = checked(key);
    if (this.#keys.some((each) => each.equals(added))) return;
    if (this.#keys.length >= MAX_KEYS)
      throw new CodedError('keyring-size', `the keyring is full: remove one of its ${MAX_KEYS} keys first`);
    this.#keys = [...this.#keys, added];
  }

  /** Makes an installed key the key that encrypts. */
  use(key: Uint8Array): void {
    const wanted = this.#keys.find((each) => each.equals(key));
    if (wanted === undefined) throw new CodedError('key-unknown', 'the key is not in the keyring: install it first');
    this.#keys = [wanted, ...this.#keys.filter((each) => each !== wanted)];
  }

  remove(key: Uint8Array): void {
    const [primary] = this.#keys;
    if (primary?.equals(key) === true)
      throw new CodedError('key-in-use', 'the key is the encryption key: use another key first');
    this.#keys = this.#keys.filter((each) => !each.equals(key));
  }

  /**
   * Encrypts a message. Returns version byte, nonce, ciphertext and tag. The tag also covers `authenticated`, which is
   * not part of the result.
   */
  encrypt(plain: Uint8Array, authenticated: Uint8Array): Buffer {
    const [key] = this.#keys;
    if (key === undefined) throw new Error('the keyring is empty');
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(algorithm(key), key, nonce);
    if (authenticated.length > 0) cipher.setAAD(authenticated);
    const body = cipher.update(plain);
    cipher.final();
    return Buffer.concat([Buffer.from([VERSION_PLAIN]), nonce, body, cipher.getAuthTag()]);
  }

  /** Decrypts a message. Returns undefined if no key fits or the data was changed. */
  decrypt(sealed: Uint8Array, authenticated: Uint8Array): Buffer | undefined {
    const version = sealed[0];
    if (version !== VERSION_PADDED && version !== VERSION_PLAIN) return undefined;
    if (sealed.length < ENCRYPTION_OVERHEAD) return undefined;
    const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
    const body = sealed.subarray(1 + NONCE_BYTES, sealed.length - TAG_BYTES);
    const tag = sealed.subarray(sealed.length - TAG_BYTES);
    for (const key of this.#keys) {
      const decipher = createDecipheriv(algorithm(key), key, nonce, { authTagLength: TAG_BYTES });
      if (authenticated.length > 0) decipher.setAAD(authenticated);
      decipher.setAuthTag(tag);
      const plain = decipher.update(body);
      try {
        decipher.final();
      } catch {
        continue;
      }
      return version === VERSION_PADDED ? unpadded(plain) : plain;
    }
    return undefined;
  }
}

function checked(key: Uint8Array): Buffer {
  if (key.length !== 16 && key.length !== 24 && key.length !== 32)
    throw new CodedError('key-length', `a gossip key has 16, 24 or 32 bytes, not ${key.length}`);
  return Buffer.from(key);
}

function algorithm(key: Buffer): 'aes-128-gcm' | 'aes-192-gcm' | 'aes-256-gcm' {
  if (key.length === 16) return 'aes-128-gcm';
  return key.length === 24 ? 'aes-192-gcm' : 'aes-256-gcm';
}

/** Removes PKCS #7 padding, which protocol version 1 uses. */
function unpadded(plain: Buffer): Buffer | undefined {
  const count = plain.at(-1) ?? 0;
  if (count === 0 || count > BLOCK_BYTES || count > plain.length) return undefined;
  return plain.subarray(0, plain.length - count);
}
