/**
 * Image names (distribution/reference grammar): `[domain/]path[:tag][@digest]`, completed with Docker Hub's defaults:
 * `busybox` means `docker.io/library/busybox:latest`.
 */
import { RuntimeError } from '../port.ts';

export interface ImageReference {
  /** For example `docker.io` or `registry.example:5000`. */
  readonly domain: string;
  /** For example `library/busybox`. */
  readonly path: string;
  readonly tag: string | undefined;
  /** `sha256:…` */
  readonly digest: string | undefined;
  /** The normalized name: `domain/path@digest` with a digest, otherwise `domain/path:tag`. */
  readonly name: string;
}

const COMPONENT = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const DOMAIN =
  /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_NAME_LENGTH = 255;

export const isDigest = (text: string): boolean => DIGEST.test(text);

/** Throws RuntimeError 'image-invalid-name'. */
export function parseReference(image: string): ImageReference {
  const invalid = (why: string): RuntimeError =>
    new RuntimeError('image-invalid-name', `invalid image name ${JSON.stringify(image.slice(0, 300))}: ${why}`);
  if (image.length === 0 || image.length > 2 * MAX_NAME_LENGTH + 200) throw invalid('the name is empty or too long');
  let rest = image;
  let digest: string | undefined;
  const at = rest.indexOf('@');
  if (at >= 0) {
    digest = rest.slice(at + 1);
    rest = rest.slice(0, at);
    if (!DIGEST.test(digest)) throw invalid('the digest is not sha256:<64 hex digits>');
  }
  let tag: string | undefined;
  const colon = rest.lastIndexOf(':');
  if (colon > rest.lastIndexOf('/')) {
    tag = rest.slice(colon + 1);
    rest = rest.slice(0, colon);
    if (!TAG.test(tag)) throw invalid('the tag must be letters, digits, _ . and -, at most 128 of them');
  }
  const slash = rest.indexOf('/');
  const first = slash < 0 ? '' : rest.slice(0, slash);
  const named = first !== '' && (/[.:[]/.test(first) || first === 'localhost' || first !== first.toLowerCase());
  let domain = named ? first : 'docker.io';
  let path = named ? rest.slice(slash + 1) : rest;
  if (domain === 'index.docker.io') domain = 'docker.io';
  if (domain === 'docker.io' && !path.includes('/')) path = `library/${path}`;
  if (!DOMAIN.test(domain)) throw invalid('the registry must be a host name with an optional port');
  if (domain.length + path.length > MAX_NAME_LENGTH) throw invalid('the name is too long');
  if (!path.split('/').every((component) => COMPONENT.test(component)))
    throw invalid('the repository must be lower case letters, digits and separators');
  if (digest === undefined) tag ??= 'latest';
  const name = digest === undefined ? `${domain}/${path}:${tag}` : `${domain}/${path}@${digest}`;
  return { domain, path, tag, digest, name };
}
