/**
 * Function `image`. Sources: k8s.io/apiserver/pkg/cel/library/image.go, and the name package of go-containerregistry
 * for the syntax of references.
 */
import { declareFunction, type Overload } from '../functions.ts';
import { Opaque } from '../values.ts';
import { fail, of, reads } from './opaque.ts';

const IMAGE = 'kubernetes.Image';
const DEFAULT_REGISTRY = 'index.docker.io';

interface ImageReference {
  readonly registry: string;
  readonly repository: string;
  /** Tag of the image; empty if the image has a digest. The tag is `latest` if the text contains neither. */
  readonly tag: string;
  readonly digest: string;
}

const TAG = /^[A-Za-z0-9_.-]{1,128}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const REPOSITORY = /^[a-z0-9_.-]+(?:\/[a-z0-9_.-]+)*$/;
const REGISTRY = /^(?:[A-Za-z0-9_.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?$/;
const MAX_LENGTH = 1024;

function parseImage(text: string): ImageReference | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const [name = '', digest, ...more] = text.split('@');
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return undefined;
  // The text after the last colon is a tag, unless the colon precedes a port.
  const colon = name.lastIndexOf(':');
  const tagged = colon >= 0 && !name.includes('/', colon);
  const tag = tagged ? name.slice(colon + 1) : 'latest';
  const place = placeOf(tagged ? name.slice(0, colon) : name);
  if (place === undefined || !TAG.test(tag)) return undefined;
  return digest === undefined ? { ...place, tag, digest: '' } : { ...place, tag: '', digest };
}

function placeOf(name: string): { registry: string; repository: string } | undefined {
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  const named = /[.:]/.test(first) || first === 'localhost';
  const registry = !named || first === 'docker.io' ? DEFAULT_REGISTRY : first;
  const path = named ? name.slice(slash + 1) : name;
  if (path.length < 2 || path.length > 255 || !REPOSITORY.test(path) || !REGISTRY.test(registry)) return undefined;
  const official = registry === DEFAULT_REGISTRY && !path.includes('/');
  return { registry, repository: official ? `library/${path}` : path };
}

const part = (name: string, read: (image: ImageReference) => string): Overload =>
  declareFunction(`${IMAGE}.${name}(): string`, (value: Opaque) => read(of(value)), { size: () => MAX_LENGTH });

export const images: readonly Overload[] = [
  declareFunction(
    `image(string): ${IMAGE}`,
    (text: string) =>
      new Opaque(IMAGE, parseImage(text) ?? fail(`could not parse reference: ${text.slice(0, 256)}`), text),
    reads,
  ),
  declareFunction('isImage(string): bool', (text: string) => parseImage(text) !== undefined, reads),
  declareFunction(`${IMAGE}.containsDigest(): bool`, (value: Opaque) => of<ImageReference>(value).digest !== ''),
  part('registry', ({ registry }) => registry),
  part('repository', ({ repository }) => repository),
  part('tag', ({ tag }) => tag),
  part('digest', ({ digest }) => digest),
  part('identifier', ({ tag, digest }) => digest || tag),
];
