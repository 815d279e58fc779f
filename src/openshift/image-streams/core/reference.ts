/**
 * Parses names of images and names of image stream tags. Source: distribution's reference grammar; openshift/library-go
 * pkg/image/reference.
 */

export interface PullSpec {
  /** Complete name of the repository, for example `docker.io/library/x`. */
  readonly repository: string;
  readonly tag: string;
  readonly digest: string | undefined;
  /** Complete name with tag or digest, as hosts report their images. */
  readonly name: string;
}

const REPOSITORY = /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$/;
const DOMAIN = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d{1,5})?$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MAX_LENGTH = 400;

/** Parses an image name; undefined if it is invalid. */
export function parsePullSpec(text: string): PullSpec | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const plain = text.replace(/^docker:\/\//, '');
  const [named = '', digest, ...more] = plain.split('@');
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return undefined;
  const colon = named.lastIndexOf(':');
  const hasTag = colon > named.lastIndexOf('/');
  const tag = hasTag ? named.slice(colon + 1) : 'latest';
  const path = hasTag ? named.slice(0, colon) : named;
  const slash = path.indexOf('/');
  const first = slash < 0 ? '' : path.slice(0, slash);
  const hasDomain = first !== '' && (/[.:]/.test(first) || first === 'localhost');
  const domain = hasDomain ? first : 'docker.io';
  const rest = hasDomain ? path.slice(slash + 1) : path;
  const repository = domain === 'docker.io' && !rest.includes('/') ? `library/${rest}` : rest;
  if (!TAG.test(tag) || !DOMAIN.test(domain) || !REPOSITORY.test(repository)) return undefined;
  const whole = `${domain}/${repository}`;
  return { repository: whole, tag, digest, name: digest === undefined ? `${whole}:${tag}` : `${whole}@${digest}` };
}

/** Parses `stream:tag`. The tag may be omitted if `defaultTag` is set. Undefined if the name is invalid. */
export function splitTagName(
  name: string,
  defaultTag?: string,
): { readonly stream: string; readonly tag: string } | undefined {
  const [stream = '', tag = defaultTag ?? '', ...more] = name.split(':');
  return more.length > 0 || stream === '' || !TAG.test(tag) ? undefined : { stream, tag };
}
