/**
 * Copies of operator catalogs on this master. The master reports its catalogs in annotations of its Node. It also
 * copies from other masters the catalogs that the operator lifecycle manager lists in these annotations.
 */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CATALOG_PATH,
  CATALOG_VERSIONS_ANNOTATION,
  CATALOGS_ANNOTATION,
  type CatalogCopy,
  isCatalogName,
  versionsText,
  wantedCatalogs,
} from '../../api/kinds/nodes/nodes/catalog-report.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';
import { editedVersion, firstVersion, missingPart } from '../../openshift/operators/olm/core/index.ts';
import { CatalogCopies } from '../../openshift/operators/olm/io/index.ts';
import { fromMasters, type Masters } from '../../openshift/updates/io/index.ts';

/** The interval is short, because a check needs only a few file system calls and writes only changes. */
const POLL_MS = 15_000;

export interface CatalogHost {
  readonly directory: string;
  readonly nodeName: NodeName;
  readonly client: ApiClient;
  readonly informers: InformerFactory;
  readonly masters: Masters;
  readonly log: Log;
  /** Interval of checks in milliseconds. Default: 15 s. */
  readonly pollMs?: number;
}

/** Follows the catalogs until the returned function is called. */
export async function followCatalogs(host: CatalogHost): Promise<() => void> {
  const copies = new CatalogCopies(host.directory);
  await copies
    .recover()
    .catch((error: unknown) => host.log.warn('catalogs not recovered', { error: messageOf(error) }));
  const nodes = host.informers.informer(resources.nodes, { fieldSelector: `metadata.name=${host.nodeName}` });
  nodes.start();
  const follower = new CatalogFollower(host, copies, () => {
    const node = nodes.get(host.nodeName);
    return node === undefined ? new Map() : wantedCatalogs(node);
  });
  const timer = setInterval(() => follower.poll(), host.pollMs ?? POLL_MS).unref();
  return () => clearInterval(timer);
}

class CatalogFollower {
  readonly #host: CatalogHost;
  readonly #copies: CatalogCopies;
  readonly #wanted: () => ReadonlyMap<string, CatalogCopy>;
  #versions: Map<string, CatalogCopy> | undefined;
  /**
   * Digests that the previous check found. A catalog is reported only if two checks find the same digest, so that a
   * catalog is not reported while it is edited.
   */
  #seen: Readonly<Record<string, string>> = {};
  #written = '';
  #isBusy = false;

  constructor(host: CatalogHost, copies: CatalogCopies, wanted: () => ReadonlyMap<string, CatalogCopy>) {
    this.#host = host;
    this.#copies = copies;
    this.#wanted = wanted;
  }

  poll(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#poll()
      .catch((error: unknown) => this.#host.log.v(2, 'catalogs not reported; retrying', { error: messageOf(error) }))
      .finally(() => {
        this.#isBusy = false;
      });
  }

  async #poll(): Promise<void> {
    this.#versions ??= await this.#copies.versions();
    const digests = await this.#copies.digests();
    const versions = new Map<string, CatalogCopy>();
    for (const [name, digest] of Object.entries(digests)) {
      const known = this.#versions.get(name);
      if (known?.digest === digest) versions.set(name, known);
      else if (this.#seen[name] === digest)
        versions.set(name, known === undefined ? firstVersion(digest) : editedVersion(known, digest));
      else if (known !== undefined) versions.set(name, known);
    }
    this.#seen = digests;
    await this.#keep(versions);
    await this.#report();
    for (const [name, newest] of this.#wanted()) await this.#take(name, newest);
  }

  async #keep(versions: Map<string, CatalogCopy>): Promise<void> {
    const isSame = JSON.stringify([...versions]) === JSON.stringify([...(this.#versions ?? [])]);
    if (!isSame) await this.#copies.writeVersions(versions);
    this.#versions = versions;
  }

  async #report(): Promise<void> {
    const { client, nodeName } = this.#host;
    const copies = [...(this.#versions ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
    const annotations = {
      [CATALOGS_ANNOTATION]: JSON.stringify(Object.fromEntries(copies.map(([name, { digest }]) => [name, digest]))),
      [CATALOG_VERSIONS_ANNOTATION]: JSON.stringify(
        Object.fromEntries(copies.map(([name, copy]) => [name, versionsText(copy)])),
      ),
    };
    const text = JSON.stringify(annotations);
    if (text === this.#written) return;
    await client.resource(resources.nodes).patch(nodeName, undefined, 'merge', { metadata: { annotations } });
    this.#written = text;
  }

  async #take(name: string, newest: CatalogCopy): Promise<void> {
    const { directory, log, masters } = this.#host;
    const versions = this.#versions ?? new Map<string, CatalogCopy>();
    const own = versions.get(name);
    const missing = missingPart(own, newest);
    // A catalog that is being edited is not replaced, nor is an entry that is not a catalog.
    const isSettled = own === undefined ? await isAbsent(join(directory, name)) : this.#seen[name] === own.digest;
    if (missing === undefined || !isCatalogName(name) || !isSettled) return;
    try {
      if (missing === 'content') {
        const hex = newest.digest.slice('sha256:'.length);
        await fromMasters(`catalog ${name}`, CATALOG_PATH + hex, masters, (content) =>
          this.#copies.replace(name, own?.digest, newest.digest, content),
        );
        log.info('catalog copied from another master', { catalog: name, digest: newest.digest });
      }
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      log.warn('catalog not copied; retrying', { catalog: name, error: messageOf(error) });
      return;
    }
    this.#seen = { ...this.#seen, [name]: newest.digest };
    await this.#keep(new Map(versions).set(name, newest));
    await this.#report();
  }
}

/** Whether the path does not exist or is an empty directory. */
const isAbsent = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return true;
  return found.isDirectory() && (await readdir(path)).length === 0;
};
