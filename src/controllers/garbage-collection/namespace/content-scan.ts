/**
 * Finds the kinds that have objects in terminating namespaces. Namespaces that wait at the same time share one
 * discovery and, if they are many, one list of each kind over all namespaces instead of one per namespace and kind.
 * No object can be created in a terminating namespace, so a result remains complete: later changes only remove objects.
 */

import { Slots } from '../../../base/concurrency/slots.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { AnyKind } from '../../framework/capabilities.ts';
import type { DiscoveredKind, Discovery } from '../../framework/discovery.ts';

/** Content of one namespace. */
export interface Found {
  /** Kinds that may have objects: those that were found, and those whose list failed. */
  readonly kinds: ReadonlySet<DiscoveredKind>;
  /** One line for each group version whose discovery failed. */
  readonly discoveryErrors: readonly string[];
}

export interface ContentScanDeps {
  readonly discover: (signal?: AbortSignal) => Promise<Discovery>;
  readonly client: AnyKind['client'];
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Maximum number of concurrent lists. */
const PARALLEL = 8;
/** Minimum time between the starts of two scans. Namespaces that arrive in this time share the next scan. */
const INTERVAL_MS = 500;
const PAGE = 500;
/** Number of namespaces from which one list over all namespaces costs less than one list per namespace. */
const MANY = 8;
/** Cost of a full page of a list over all namespaces. The unit is the cost of a list in one namespace. */
const PAGE_COST = 4;

interface Batch {
  readonly namespaces: Set<string>;
  readonly result: PromiseWithResolvers<ReadonlyMap<string, Found>>;
}

export class ContentScan {
  readonly #deps: ContentScanDeps;
  readonly #slots = new Slots(PARALLEL);
  #next: Batch | undefined;
  #running = false;
  #startedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: ContentScanDeps) {
    this.#deps = deps;
  }

  /** Content of a terminating namespace, from a scan that starts after the call. */
  async find(namespace: string): Promise<Found> {
    this.#next ??= { namespaces: new Set(), result: Promise.withResolvers() };
    const { namespaces, result } = this.#next;
    namespaces.add(namespace);
    if (!this.#running) void this.#run();
    return (await result.promise).get(namespace) as Found;
  }

  async #run(): Promise<void> {
    this.#running = true;
    // Namespaces that are added in the same turn of the event loop share the first scan.
    await Promise.resolve();
    while (this.#next !== undefined) {
      await this.#pause();
      const { namespaces, result } = this.#next;
      this.#next = undefined;
      this.#startedMs = this.#deps.clock.monotonicMs();
      try {
        this.#deps.signal.throwIfAborted();
        result.resolve(await this.#scan([...namespaces]));
      } catch (error) {
        result.reject(error);
      }
    }
    this.#running = false;
  }

  /** Waits for the end of the interval or of the controller. */
  async #pause(): Promise<void> {
    const { clock, signal } = this.#deps;
    const waitMs = this.#startedMs + INTERVAL_MS - clock.monotonicMs();
    if (waitMs <= 0 || signal.aborted) return;
    const over = Promise.withResolvers<void>();
    const timer = clock.setTimer(waitMs, () => over.resolve());
    const stop = (): void => over.resolve();
    signal.addEventListener('abort', stop, { once: true });
    await over.promise;
    timer.cancel();
    signal.removeEventListener('abort', stop);
  }

  async #scan(namespaces: readonly string[]): Promise<ReadonlyMap<string, Found>> {
    const { kinds, errors } = await this.#deps.discover(this.#deps.signal);
    const found = new Map(namespaces.map((name) => [name, new Set<DiscoveredKind>()]));
    await Promise.all(
      kinds.filter(isContent).map(async (kind) => {
        for (const name of await this.#namespacesWith(kind, namespaces)) found.get(name)?.add(kind);
      }),
    );
    // After the end of the term, lists fail because they are aborted. Such failures must not lead to deletions, so no
    // result is returned.
    this.#deps.signal.throwIfAborted();
    return new Map([...found].map(([name, present]) => [name, { kinds: present, discoveryErrors: errors }]));
  }

  /** Namespaces of the batch that may have objects of the kind. */
  async #namespacesWith(kind: DiscoveredKind, namespaces: readonly string[]): Promise<ReadonlySet<string>> {
    const present = new Set<string>();
    if (namespaces.length >= MANY && (await this.#listAll(kind, namespaces.length, present))) return present;
    await Promise.all(
      namespaces
        .filter((name) => !present.has(name))
        .map((name) =>
          this.#slots.run(async () => {
            if (!(await this.#isEmpty(kind, name))) present.add(name);
          }),
        ),
    );
    return present;
  }

  /**
   * Adds the namespaces of all objects to `present`. Returns false if the list failed or is too long, so that
   * namespaces are missing.
   */
  async #listAll(kind: DiscoveredKind, batch: number, present: Set<string>): Promise<boolean> {
    const objects = this.#deps.client(kind);
    const options = { limit: PAGE, metadataOnly: true, signal: this.#deps.signal };
    let token: string | undefined;
    do {
      const from = token === undefined ? {} : { continue: token };
      const page = await this.#slots.run(() => objects.list({ ...options, ...from })).catch(() => undefined);
      if (page === undefined) return false;
      for (const { metadata } of page.items) present.add(metadata?.namespace ?? '');
      token = page.metadata.continue === '' ? undefined : page.metadata.continue;
      const left = page.metadata.remainingItemCount ?? Number.POSITIVE_INFINITY;
      if (token !== undefined && (left / PAGE) * PAGE_COST > batch) return false;
    } while (token !== undefined);
    return true;
  }

  /**
   * Whether the namespace has no object of the kind. False if the list failed; the later deletion then reports the
   * error.
   */
  async #isEmpty(kind: DiscoveredKind, namespace: string): Promise<boolean> {
    try {
      const options = { namespace, limit: 1, metadataOnly: true, signal: this.#deps.signal };
      return (await this.#deps.client(kind).list(options)).items.length === 0;
    } catch {
      return false;
    }
  }
}

function isContent(kind: DiscoveredKind): boolean {
  // Both event groups serve the same objects, so only the core group's events are used.
  if (kind.plural === 'events' && kind.group === 'events.k8s.io') return false;
  return kind.namespaced && kind.verbs.has('list') && kind.verbs.has('delete');
}
