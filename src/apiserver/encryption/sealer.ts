/**
 * Encrypts and decrypts stored values by their prefix, such as `k8s:enc:aesgcm:v1:key1:`. Source:
 * k8s.io/apiserver/pkg/storage/value (PrefixTransformers) and pkg/server/options/encryptionconfig.
 */
import { aesCbc, aesGcm, type Cipher, secretBox } from './ciphers.ts';
import {
  coversResource,
  type EncryptionConfiguration,
  type EncryptionProvider,
  type GroupResource,
} from './configuration.ts';
import { Envelopes } from './envelopes.ts';

/** Prefix of every encrypted value. */
const SEALED = Buffer.from('k8s:enc:');

/** Error for a value that no configured key decrypts. A retry helps only after the configuration has changed. */
export class UnreadableValue extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'UnreadableValue';
  }
}

interface Scheme {
  /** Prefix of the values of this scheme. Empty for the identity provider. */
  readonly prefix: Buffer;
  readonly cipher?: Cipher;
  readonly envelopes?: Envelopes;
}

export interface Opened {
  readonly plain: Buffer | Promise<Buffer>;
  /** Encryption scheme of the value: the prefix, followed by the ID of the key for KMS. */
  readonly scheme: string;
}

export class Sealer {
  readonly #entries: readonly { readonly resources: readonly string[]; readonly schemes: readonly Scheme[] }[];
  readonly #plugins: readonly Envelopes[];

  constructor(configuration: EncryptionConfiguration, nowMs: () => number) {
    const envelopes = new Map<string, Envelopes>();
    this.#entries = configuration.resources.map(({ resources, providers }) => ({
      resources,
      schemes: providers.flatMap((provider) => schemesOf(provider, envelopes, nowMs)),
    }));
    this.#plugins = [...envelopes.values()];
  }

  /** Checks the KMS plug-ins. Rejects if a plug-in does not respond. */
  async check(): Promise<void> {
    for (const plugin of this.#plugins) await plugin.ready();
  }

  #schemes(kind: GroupResource): readonly Scheme[] | undefined {
    return this.#entries.find(({ resources }) => resources.some((pattern) => coversResource(pattern, kind)))?.schemes;
  }

  /** Scheme of new values of this kind, in the form of `Opened.scheme`; '' for plain values. */
  writes(kind: GroupResource): string {
    const first = this.#schemes(kind)?.[0];
    if (first === undefined) return '';
    return schemeName(first, first.envelopes?.keyId ?? '');
  }

  /** The encrypted value. Undefined if values of this kind are stored plain. */
  seal(kind: GroupResource, plain: Uint8Array, authenticated: string): Buffer | Promise<Buffer> | undefined {
    const first = this.#schemes(kind)?.[0];
    if (first === undefined || first.prefix.length === 0) return undefined;
    if (first.cipher !== undefined) return Buffer.concat([first.prefix, first.cipher.seal(plain, authenticated)]);
    const sealed = first.envelopes?.seal(plain, authenticated);
    if (sealed instanceof Promise) return sealed.then((bytes) => Buffer.concat([first.prefix, bytes]));
    return sealed === undefined ? undefined : Buffer.concat([first.prefix, sealed]);
  }

  /** The decrypted value; undefined if the stored value is plain. Throws `UnreadableValue`. */
  open(kind: GroupResource, stored: Uint8Array, authenticated: string): Opened | undefined {
    const value = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
    const schemes = this.#schemes(kind);
    if (!value.subarray(0, SEALED.length).equals(SEALED)) {
      if (schemes === undefined || schemes.some(({ prefix }) => prefix.length === 0)) return undefined;
      throw new UnreadableValue('the value is not encrypted, and the configuration has no provider "identity" for it');
    }
    const scheme = schemes?.find(({ prefix }) => prefix.length > 0 && value.subarray(0, prefix.length).equals(prefix));
    if (scheme === undefined)
      throw new UnreadableValue(`no provider of the encryption configuration has the key of ${prefixOf(value)}`);
    const sealed = value.subarray(scheme.prefix.length);
    try {
      if (scheme.cipher !== undefined)
        return { plain: scheme.cipher.open(sealed, authenticated), scheme: scheme.prefix.toString() };
      const opened = (scheme.envelopes as Envelopes).open(sealed, authenticated);
      return { plain: opened.plain, scheme: schemeName(scheme, opened.keyId) };
    } catch (error) {
      throw new UnreadableValue(`${scheme.prefix.toString()} cannot be decrypted`, { cause: error });
    }
  }
}

const schemeName = ({ prefix }: Scheme, keyId: string): string => `${prefix.toString()}${keyId}`;

/** The prefix up to the name of the key, which is safe to log. */
const prefixOf = (value: Buffer): string =>
  /^k8s:enc:[a-z0-9]+:v\d[a-z0-9]*:[^:]{1,128}:/.exec(value.toString('latin1', 0, 256))?.[0] ?? 'k8s:enc:…';

function schemesOf(
  provider: EncryptionProvider,
  envelopes: Map<string, Envelopes>,
  nowMs: () => number,
): readonly Scheme[] {
  switch (provider.type) {
    case 'identity':
      return [{ prefix: Buffer.alloc(0) }];
    case 'kms': {
      let own = envelopes.get(provider.name);
      if (own === undefined) {
        own = new Envelopes(provider.plugin, nowMs);
        envelopes.set(provider.name, own);
      }
      return [{ prefix: Buffer.from(`k8s:enc:kms:v2:${provider.name}:`), envelopes: own }];
    }
    default: {
      const { type } = provider;
      const make = { aesgcm: aesGcm, aescbc: aesCbc, secretbox: secretBox }[type];
      return provider.keys.map(({ name, secret }) => ({
        prefix: Buffer.from(`k8s:enc:${type}:v1:${name}:`),
        cipher: make(secret),
      }));
    }
  }
}
