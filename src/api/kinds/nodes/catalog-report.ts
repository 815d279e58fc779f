/** Which catalogs of operators a master has, and shall have, in annotations of its Node. */
import type { KubeObject } from '../../meta/object.ts';

/** JSON: names of directories below the host's directory of catalogs, with digests of their content. By the host. */
export const CATALOGS_ANNOTATION = 'hyperedge.dev/catalogs';
/** JSON: by name, the version of the copy and its ancestors, newest first, separated by spaces. By the host. */
export const CATALOG_VERSIONS_ANNOTATION = 'hyperedge.dev/catalog-versions';
/** JSON: by name, digest, version and ancestors of what the host shall take. By the operator lifecycle manager. */
export const CATALOGS_WANTED_ANNOTATION = 'hyperedge.dev/catalogs-wanted';
/** Where API servers serve the catalogs of their host; followed by the SHA-256 of the content in hex. */
export const CATALOG_PATH = '/hyperedge/catalogs/sha256/';
/** Nodes cannot set it on themselves, so reports of other hosts do not count. Source: NodeRestriction. */
const MASTER_LABEL = 'node-role.kubernetes.io/master';

/** A version of a catalog's directory. */
export interface CatalogCopy {
  readonly digest: string;
  readonly version: string;
  /** Versions that it was made from. */
  readonly ancestors: readonly string[];
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;
const VERSIONS = /^[0-9a-z]{1,64}( [0-9a-z]{1,64}){0,64}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/;

/** Other directories are read, but not copied between masters. */
export const isCatalogName = (name: string): boolean => NAME.test(name);

/** Undefined: the Node is no master's, or reports no catalogs. Copies of older releases have no version. */
export function reportedCatalogs(
  node: KubeObject,
): ReadonlyMap<string, { readonly digest: string; readonly copy: CatalogCopy | undefined }> | undefined {
  if (node.metadata?.labels?.[MASTER_LABEL] === undefined) return undefined;
  const digests = stringsOf(node, CATALOGS_ANNOTATION);
  if (digests === undefined) return undefined;
  const versions = new Map(stringsOf(node, CATALOG_VERSIONS_ANNOTATION) ?? []);
  return new Map(
    digests.flatMap(([name, digest]) =>
      DIGEST.test(digest) ? [[name, { digest, copy: copyOf(digest, versions.get(name) ?? '') }] as const] : [],
    ),
  );
}

/** By name. Empty: nothing, or not of this form. */
export function wantedCatalogs(node: KubeObject): Map<string, CatalogCopy> {
  const wanted = new Map<string, CatalogCopy>();
  for (const [name, text] of stringsOf(node, CATALOGS_WANTED_ANNOTATION) ?? []) {
    const [digest = '', ...versions] = text.split(' ');
    const copy = DIGEST.test(digest) && isCatalogName(name) ? copyOf(digest, versions.join(' ')) : undefined;
    if (copy !== undefined) wanted.set(name, copy);
  }
  return wanted;
}

/** Values of the annotations. */
export const versionsText = ({ version, ancestors }: CatalogCopy): string => [version, ...ancestors].join(' ');
export const wantedText = (copies: ReadonlyMap<string, CatalogCopy>): string =>
  JSON.stringify(Object.fromEntries([...copies].map(([name, copy]) => [name, `${copy.digest} ${versionsText(copy)}`])));

function copyOf(digest: string, versions: string): CatalogCopy | undefined {
  if (!VERSIONS.test(versions)) return undefined;
  const [version = '', ...ancestors] = versions.split(' ');
  return { digest, version, ancestors };
}

/** Undefined: absent, or no object of JSON. */
function stringsOf(node: KubeObject, annotation: string): [string, string][] | undefined {
  try {
    const value: unknown = JSON.parse(node.metadata?.annotations?.[annotation] ?? '');
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return Object.entries(value).filter((each): each is [string, string] => typeof each[1] === 'string');
  } catch {
    return undefined;
  }
}
