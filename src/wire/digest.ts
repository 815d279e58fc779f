/** SHA-256 of texts and bytes in one call. Streams use `createHash`. Texts are hashed as UTF-8. */
import { hash } from 'node:crypto';

export function sha256Hex(content: string | Uint8Array): string {
  return hash('sha256', content, 'hex');
}

export function sha256Base64(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64');
}

export function sha256Base64url(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url');
}

/** Digest in the form that names images and releases: `sha256:` and 64 hexadecimal digits. Source: OCI image-spec. */
export function contentDigest(content: string | Uint8Array): string {
  return `sha256:${sha256Hex(content)}`;
}
