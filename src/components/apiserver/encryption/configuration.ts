/** What is encrypted in the store, and with what. Source: apiserver.config.k8s.io/v1 EncryptionConfiguration. */
import type { Reloads } from '../config.ts';
import type { KmsPlugin } from './kms-port.ts';

export interface EncryptionKey {
  /** Part of what is stored. */
  readonly name: string;
  readonly secret: Uint8Array;
}

export type EncryptionProvider =
  | { readonly type: 'identity' }
  | { readonly type: 'aesgcm' | 'aescbc' | 'secretbox'; readonly keys: readonly EncryptionKey[] }
  | { readonly type: 'kms'; readonly name: string; readonly plugin: KmsPlugin };

export interface EncryptedResources {
  /**
   * `secrets`, `widgets.example.com`, `*.` (the core group), `*.apps`, `*.*`. The first entry of the configuration that
   * covers a kind counts.
   */
  readonly resources: readonly string[];
  /** The first writes, all read. */
  readonly providers: readonly EncryptionProvider[];
}

export interface EncryptionConfiguration {
  readonly resources: readonly EncryptedResources[];
}

/** Source of the encryption configuration and of its reloads. */
export interface EncryptionSource {
  /** Another object whenever it has changed. */
  readonly current: EncryptionConfiguration;
  readonly reloads?: Reloads;
  /** Looks at once whether there is a newer one. Never rejects. */
  refresh(): Promise<void>;
}

export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

/** Whether an entry of `resources` covers this kind. */
export function covers(pattern: string, { group, resource }: GroupResource): boolean {
  const dot = pattern.indexOf('.');
  const [name, within] = dot < 0 ? [pattern, ''] : [pattern.slice(0, dot), pattern.slice(dot + 1)];
  if (name === '*') return within === '*' || within === group;
  return name === resource && within === group;
}
