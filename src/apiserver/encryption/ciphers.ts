/**
 * Ciphers of stored values, byte-compatible with kube-apiserver. Source: k8s.io/apiserver/pkg/storage/value/encrypt
 * (aes, secretbox).
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js';

/** Encrypts and decrypts values. `authenticated` is the store key of the value, so that values cannot be swapped. */
export interface Cipher {
  seal(plain: Uint8Array, authenticated: string): Buffer;
  /** Decrypts a value. Throws if the value was encrypted with another key or for another store key, or is damaged. */
  open(sealed: Uint8Array, authenticated: string): Buffer;
}

const GCM_NONCE = 12;
const GCM_TAG = 16;
const BLOCK = 16;
const BOX_NONCE = 24;
const INFO = 32;

const tooShort = (): Error => new Error('the stored data was shorter than the required size');
const gcmName = (key: Uint8Array) => `aes-${(key.length * 8) as 128 | 192 | 256}-gcm` as const;

/** Layout: nonce(12) · ciphertext · tag(16). */
export function aesGcm(key: Uint8Array): Cipher {
  return {
    seal(plain, authenticated) {
      const nonce = randomBytes(GCM_NONCE);
      const cipher = createCipheriv(gcmName(key), key, nonce).setAAD(Buffer.from(authenticated));
      return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    open(sealed, authenticated) {
      if (sealed.length < GCM_NONCE + GCM_TAG) throw tooShort();
      const decipher = createDecipheriv(gcmName(key), key, sealed.subarray(0, GCM_NONCE), { authTagLength: GCM_TAG });
      decipher.setAAD(Buffer.from(authenticated));
      decipher.setAuthTag(sealed.subarray(sealed.length - GCM_TAG));
      const plain = decipher.update(sealed.subarray(GCM_NONCE, sealed.length - GCM_TAG));
      return Buffer.concat([plain, decipher.final()]);
    },
  };
}

/** Layout: iv(16) · ciphertext with PKCS #7 padding. Not authenticated; only for stores that already use it. */
export function aesCbc(key: Uint8Array): Cipher {
  const name = `aes-${key.length * 8}-cbc`;
  return {
    seal(plain) {
      const iv = randomBytes(BLOCK);
      const cipher = createCipheriv(name, key, iv);
      return Buffer.concat([iv, cipher.update(plain), cipher.final()]);
    },
    open(sealed) {
      if (sealed.length < 2 * BLOCK) throw tooShort();
      const decipher = createDecipheriv(name, key, sealed.subarray(0, BLOCK));
      return Buffer.concat([decipher.update(sealed.subarray(BLOCK)), decipher.final()]);
    },
  };
}

/** NaCl's secretbox. Layout: nonce(24) · tag(16) · ciphertext. */
export function secretBox(key: Uint8Array): Cipher {
  return {
    seal(plain) {
      const nonce = randomBytes(BOX_NONCE);
      return Buffer.concat([nonce, xsalsa20poly1305(key, nonce).encrypt(plain)]);
    },
    open(sealed) {
      if (sealed.length < BOX_NONCE + GCM_TAG) throw tooShort();
      return Buffer.from(xsalsa20poly1305(key, sealed.subarray(0, BOX_NONCE)).decrypt(sealed.subarray(BOX_NONCE)));
    },
  };
}

/** AES-GCM with a key per value: HKDF-Expand-SHA256(seed, info). Layout: info(32) · output of AES-GCM. */
export function derivedAesGcm(seed: Uint8Array): Cipher {
  const keyOf = (info: Uint8Array): Buffer => createHmac('sha256', seed).update(info).update(Uint8Array.of(1)).digest();
  return {
    seal(plain, authenticated) {
      const info = randomBytes(INFO);
      return Buffer.concat([info, aesGcm(keyOf(info)).seal(plain, authenticated)]);
    },
    open(sealed, authenticated) {
      if (sealed.length < INFO) throw tooShort();
      return aesGcm(keyOf(sealed.subarray(0, INFO))).open(sealed.subarray(INFO), authenticated);
    },
  };
}
