/**
 * Compares the masters' copies of a catalog directory, and announces the newest copy in an annotation of the masters
 * that lack it. The host processes of these masters fetch the copy from the API servers of other masters.
 */
import type { Node } from '../../../../api/generated/core/v1.ts';
import type { Condition } from '../../../../api/generated/meta/v1.ts';
import {
  CATALOGS_WANTED_ANNOTATION,
  type CatalogCopy,
  isCatalogName,
  reportedCatalogs,
  wantedCatalogs,
  wantedText,
} from '../../../../api/kinds/nodes/nodes/catalog-report.ts';
import { resources } from '../../../../api/resources.ts';
import { CodedError } from '../../../../base/errors.ts';
import { copiesOf } from '../core/index.ts';
import type { CatalogSource } from '../kinds/types.ts';
import { placeOf } from './catalog-place.ts';
import type { CatalogDirectory } from './catalog-port.ts';
import type { Olm } from './context.ts';

const COPIES = 'CopiesEqual';

export class CatalogCopies {
  readonly #olm: Olm;

  constructor(olm: Olm) {
    this.#olm = olm;
  }

  /** Condition that reports whether all masters have the same copy. Undefined for catalogs that are not copied. */
  async compare(source: CatalogSource): Promise<Condition | undefined> {
    const { handle, now } = this.#olm;
    const own = await this.#directoryOf(source);
    if (own === undefined || own.name === '') return undefined;
    const reports = this.#masters().map(([node, reported]) => ({
      master: node.metadata?.name ?? '',
      found: reported.get(own.name),
    }));
    const { status, reason, message, wanted } = copiesOf(own.digest, reports);
    if (isCatalogName(own.name)) await this.#request(own.name, wanted);
    const before = source.status?.conditions?.find(({ type }) => type === COPIES);
    const isSame = before?.status === status;
    if ((!isSame || before.reason !== reason) && status === 'False')
      handle.recorder.event(source, reason === 'CopiesConflict' ? 'Warning' : 'Normal', reason, message);
    return { type: COPIES, status, reason, message, lastTransitionTime: isSame ? before.lastTransitionTime : now() };
  }

  /**
   * Removes unused catalogs from the annotations, so that masters fetch only catalogs that a CatalogSource references.
   */
  async forgetUnused(): Promise<void> {
    const used = new Set<string>();
    for (const source of this.#olm.informers.catalogSources.list())
      used.add((await this.#directoryOf(source))?.name ?? '');
    for (const [node] of this.#masters()) {
      const kept = new Map([...wantedCatalogs(node)].filter(([name]) => used.has(name)));
      await this.#write(node, kept);
    }
  }

  async #directoryOf(source: CatalogSource): Promise<CatalogDirectory | undefined> {
    if (source.spec?.sourceType !== 'grpc') return undefined;
    try {
      return await this.#olm.catalogs.copy(placeOf(source));
    } catch (error) {
      if (error instanceof CodedError) return undefined;
      throw error;
    }
  }

  #masters() {
    return this.#olm.informers.nodes.list().flatMap((node) => {
      const reported = reportedCatalogs(node);
      return reported === undefined ? [] : [[node, reported] as const];
    });
  }

  async #request(name: string, byMaster: ReadonlyMap<string, CatalogCopy>): Promise<void> {
    for (const [node] of this.#masters()) {
      const wanted = wantedCatalogs(node);
      const copy = byMaster.get(node.metadata?.name ?? '');
      if (copy === undefined) wanted.delete(name);
      else wanted.set(name, copy);
      await this.#write(node, wanted);
    }
  }

  async #write(node: Node, wanted: ReadonlyMap<string, CatalogCopy>): Promise<void> {
    const text = wanted.size === 0 ? null : wantedText(wanted);
    if ((node.metadata?.annotations?.[CATALOGS_WANTED_ANNOTATION] ?? null) === text) return;
    const annotations = { [CATALOGS_WANTED_ANNOTATION]: text };
    await this.#olm.handle
      .writer(resources.nodes)
      .patch(node.metadata?.name ?? '', undefined, 'merge', { metadata: { annotations } });
  }
}
