/**
 * Software bill of materials in CycloneDX 1.6 JSON: the npm packages of the lock file that are not for development
 * only, and the Debian programs in the executables. Source: cyclonedx.org/docs/1.6/json.
 */
import { createHash } from 'node:crypto';

export interface LockedPackages {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly name?: string;
        readonly version?: string;
        readonly license?: string;
        readonly integrity?: string;
        readonly dev?: boolean;
        readonly devOptional?: boolean;
      }
    >
  >;
}

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** Text of the Debian copyright file. */
  readonly text: string;
}

interface Component {
  readonly type: 'library' | 'application';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses: readonly unknown[];
  readonly hashes?: readonly unknown[];
}

export interface SbomInput {
  readonly version: string;
  /** Time of the document, in seconds since 1970. */
  readonly epoch: number;
  readonly lock: LockedPackages;
  /** Bundled packages by Debian architecture. */
  readonly bundled: ReadonlyMap<string, readonly BundledPackage[]>;
}

/** Text of the document. The text, including its serial number, depends on the input only. */
export function sbomText({ version, epoch, lock, bundled }: SbomInput): string {
  const components = [...npmComponents(lock)];
  for (const [architecture, packages] of bundled)
    for (const each of packages) if (each.version !== '') components.push(debianComponent(each, architecture));
  components.sort((left, right) => (left['bom-ref'] < right['bom-ref'] ? -1 : 1));
  const main = {
    type: 'application',
    'bom-ref': `pkg:generic/hyperedge@${version}`,
    name: 'hyperedge',
    version,
    purl: `pkg:generic/hyperedge@${version}`,
    licenses: [{ license: { id: 'Apache-2.0' } }],
  };
  const body = {
    version: 1,
    metadata: { timestamp: new Date(epoch * 1000).toISOString().replace('.000', ''), component: main },
    components,
    dependencies: [{ ref: main['bom-ref'], dependsOn: components.map((each) => each['bom-ref']) }],
  };
  const digest = createHash('sha256').update(JSON.stringify(body)).digest('hex');
  const serialNumber = `urn:uuid:${uuidFrom(digest)}`;
  return `${JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber, ...body }, undefined, 2)}\n`;
}

/** Creates a UUID of version 8 (RFC 9562) from a digest. */
function uuidFrom(hex: string): string {
  const text = `${hex.slice(0, 12)}8${hex.slice(13, 16)}8${hex.slice(17, 32)}`;
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join('-');
}

function npmComponents(lock: LockedPackages): Component[] {
  const found = new Map<string, Component>();
  for (const [path, each] of Object.entries(lock.packages)) {
    if (path === '' || each.dev === true || each.version === undefined) continue;
    const name = each.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const purl = `pkg:npm/${name.replace('@', '%40')}@${each.version}`;
    const [, algorithm = '', digest = ''] = /^sha(512|384|256)-(.+)$/.exec(each.integrity ?? '') ?? [];
    found.set(purl, {
      type: 'library',
      'bom-ref': purl,
      name,
      version: each.version,
      purl,
      licenses: [{ expression: spdx(each.license ?? 'NOASSERTION') }],
      ...(digest === ''
        ? {}
        : { hashes: [{ alg: `SHA-${algorithm}`, content: Buffer.from(digest, 'base64').toString('hex') }] }),
    });
  }
  return [...found.values()];
}

/** Replaces deprecated SPDX identifiers such as `GPL-2.0` by their equivalents with `-only`. */
const spdx = (expression: string): string =>
  expression.replace(/^\((.*)\)$/, '$1').replaceAll(/\b(L?GPL-\d\.\d)(?![\w.+-])/g, '$1-only');

function debianComponent({ name, version, text }: BundledPackage, architecture: string): Component {
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`;
  const licenses = debianLicenses(text).map((each) => ({ license: { name: each } }));
  return { type: 'application', 'bom-ref': purl, name, version, purl, licenses };
}

/**
 * Names of the licenses in a copyright file: the values of its fields `License`, or without such fields the common
 * licenses to which it refers. The names are Debian's (dep-team.pages.debian.net/deps/dep5), because many have no SPDX
 * identifier.
 */
export function debianLicenses(text: string): string[] {
  const stated = [...text.matchAll(/^License: *(\S.*)$/gm)].map(([, name = '']) => name.trim());
  const referred = [...text.matchAll(/common-licenses\/([A-Za-z]+(?:-[0-9.]*[0-9])?)/g)].map(([, name = '']) => name);
  const names = stated.length > 0 ? stated : referred;
  return names.length > 0 ? [...new Set(names)].sort() : ['see the copyright file'];
}
