/** The EncryptionConfiguration of a new host. */

/** Name for a key that is generated now. Generated names sort by time. */
export const newKeyName = (nowMs: number): string =>
  `key-${new Date(nowMs).toISOString().replaceAll(/\D/g, '').slice(0, 17)}`;

/**
 * Text of a configuration file with one generated key that encrypts Secrets. Plain values remain readable. `secret`: 32
 * random bytes in base64.
 */
export function firstEncryptionFile(
  provider: 'secretbox' | 'aesgcm' | 'aescbc',
  nowMs: number,
  secret: string,
): string {
  return `# Encryption of API objects in the store. hyperedge secrets-encrypt rotates the keys. Back up this file: without its keys
# the encrypted objects in the store and in its snapshots cannot be read.
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources:
      - secrets
    providers:
      - ${provider}:
          keys:
            - name: ${newKeyName(nowMs)}
              secret: ${secret}
      - identity: {}
`;
}
