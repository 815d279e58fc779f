/** Configuration of encryption at rest. Source: apiserver.config.k8s.io/v1 EncryptionConfiguration. */
import type { Reloads } from '../config/server-config.ts';
import type { KmsPlugin } from './kms-port.ts';

export interface EncryptionKey {
  /** Name of the key, which is stored in the prefix of each value. */
  readonly name: string;
  readonly secret: Uint8Array;
}

export type EncryptionProvider =
  | { readonly type: 'identity' }
  | { readonly type: 'aesgcm' | 'aescbc' | 'secretbox'; readonly keys: readonly EncryptionKey[] }
  | { readonly type: 'kms'; readonly name: string; readonly plugin: KmsPlugin };

export interface EncryptedResources {
  /**
   * Patterns: `secrets`, `widgets.example.com`, `*.` (the core group), `*.apps`, `*.*`. The first configuration entry
   * that covers a kind applies.
   */
  readonly resources: readonly string[];
  /** The first provider encrypts new values. All providers decrypt. */
  readonly providers: readonly EncryptionProvider[];
}

export interface EncryptionConfiguration {
  readonly resources: readonly EncryptedResources[];
}

export interface EncryptionSource {
  /** Returns a new object after each change. */
  readonly current: EncryptionConfiguration;
  readonly reloads?: Reloads;
  /** Checks for a newer configuration now. Never rejects. */
  refresh(): Promise<void>;
}

export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

/** Reports whether an entry of `resources` covers this kind. */
export function coversResource(pattern: string, { group, resource }: GroupResource): boolean {
  const dot = pattern.indexOf('.');
  const [name, within] = dot < 0 ? [pattern, ''] : [pattern.slice(0, dot), pattern.slice(dot + 1)];
  if (name === '*') return within === '*' || within === group;
  return name === resource && within === group;
}
