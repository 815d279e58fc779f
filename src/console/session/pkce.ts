/** Proof key of an authorization request. Source: RFC 7636, sections 4.1 and 4.2. */

export interface ProofKey {
  readonly verifier: string;
  /** SHA-256 of the verifier, in base64url. */
  readonly challenge: string;
}

export function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

/** 32 random bytes in base64url. */
export const randomText = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));

export async function createProofKey(verifier = randomText()): Promise<ProofKey> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return { verifier, challenge: base64url(new Uint8Array(digest)) };
}
