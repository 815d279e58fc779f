/** Client interface of a KMS plug-in, API version v2. Implemented by `src/apiserver/io`. Source: k8s.io/kms/apis/v2. */

export interface KmsEncrypted {
  readonly ciphertext: Uint8Array;
  readonly keyId: string;
  readonly annotations: ReadonlyMap<string, Uint8Array>;
}

/** Methods of the plug-in. They reject with an Error if the plug-in does not respond in time or returns an error. */
export interface KmsPlugin {
  status(): Promise<{ readonly version: string; readonly healthz: string; readonly keyId: string }>;
  encrypt(plaintext: Uint8Array, uid: string): Promise<KmsEncrypted>;
  decrypt(encrypted: KmsEncrypted, uid: string): Promise<Uint8Array>;
  close(): void;
}
