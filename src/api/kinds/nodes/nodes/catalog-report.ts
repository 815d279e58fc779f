/** Annotations of a master's Node that list the operator catalogs that the host has and those that it should have. */
import type { KubeObject } from '../../../meta/object.ts';

/** Names of the catalog directories on the host, with digests of their content, as JSON. Written by the host. */
export const CATALOGS_ANNOTATION = 'hyperedge.dev/catalogs';
/**
 * JSON object, written by the host: for each catalog name, the version of the host's copy and then the versions that it
 * was derived from, newest first, separated by spaces.
 */
export const CATALOG_VERSIONS_ANNOTATION = 'hyperedge.dev/catalog-versions';
/**
 * JSON object, written by the operator lifecycle manager: for each catalog name, the digest, version and ancestors of
 * the copy that the host should fetch, separated by spaces.
 */
export const CATALOGS_WANTED_ANNOTATION = 'hyperedge.dev/catalogs-wanted';
/** Path prefix under which API servers serve the catalogs of their host. The hex SHA-256 of the content follows. */
export const CATALOG_PATH = '/hyperedge/catalogs/sha256/';
/**
 * Label of a master. Reports of other Nodes are ignored; NodeRestriction prevents a node from setting the label on
 * itself.
 */
const MASTER_LABEL = 'node-role.kubernetes.io/master';

/** One version of a catalog directory. */
export interface CatalogCopy {
  readonly digest: string;
  readonly version: string;
  /** Versions that this version was derived from. */
  readonly ancestors: readonly string[];
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;
const VERSIONS = /^[0-9a-z]{1,64}( [0-9a-z]{1,64}){0,64}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/;

/** Whether masters copy the catalog from each other. Catalogs with other directory names are only read. */
export const isCatalogName = (name: string): boolean => NAME.test(name);

/**
 * Catalogs of a master. Undefined if the Node is not a master or reports no catalogs. `copy` is undefined if the host's
 * release does not report versions of catalogs.
 */
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

/** Wanted catalogs by name. Empty if the annotation is absent or malformed. */
export function wantedCatalogs(node: KubeObject): Map<string, CatalogCopy> {
  const wanted = new Map<string, CatalogCopy>();
  for (const [name, text] of stringsOf(node, CATALOGS_WANTED_ANNOTATION) ?? []) {
    const [digest = '', ...versions] = text.split(' ');
    const copy = DIGEST.test(digest) && isCatalogName(name) ? copyOf(digest, versions.join(' ')) : undefined;
    if (copy !== undefined) wanted.set(name, copy);
  }
  return wanted;
}

export const versionsText = ({ version, ancestors }: CatalogCopy): string => [version, ...ancestors].join(' ');
export const wantedText = (copies: ReadonlyMap<string, CatalogCopy>): string =>
  JSON.stringify(Object.fromEntries([...copies].map(([name, copy]) => [name, `${copy.digest} ${versionsText(copy)}`])));

function copyOf(digest: string, versions: string): CatalogCopy | undefined {
  if (!VERSIONS.test(versions)) return undefined;
  const [version = '', ...ancestors] = versions.split(' ');
  return { digest, version, ancestors };
}

/** Entries of an annotation with a JSON object of strings; undefined if it is absent or malformed. */
function stringsOf(node: KubeObject, annotation: string): [string, string][] | undefined {
  try {
    const value: unknown = JSON.parse(node.metadata?.annotations?.[annotation] ?? '');
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return Object.entries(value).filter((each): each is [string, string] => typeof each[1] === 'string');
  } catch {
    return undefined;
  }
}
