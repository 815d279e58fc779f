/** The encryption configuration that a host begins with. */
import { randomBytes } from 'node:crypto';

const KEY_BYTES = 32;

/** Sorts by time. */
export const newKeyName = (nowMs: number): string =>
  `key-${new Date(nowMs).toISOString().replaceAll(/\D/g, '').slice(0, 17)}`;

/** The file that a host begins with: a key of its own, and plain values are still read. */
export function firstEncryptionFile(provider: 'secretbox' | 'aesgcm' | 'aescbc', nowMs: number): string {
  return `# What the API server encrypts in the store. hyperedge secrets-encrypt rotates the keys. Keep a copy: without its keys
# the store, and every snapshot of it, cannot be read.
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources:
      - secrets
    providers:
      - ${provider}:
          keys:
            - name: ${newKeyName(nowMs)}
              secret: ${randomBytes(KEY_BYTES).toString('base64')}
      - identity: {}
`;
}
