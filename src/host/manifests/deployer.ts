/**
 * Synchronizes the cluster with the files of the deploy directory. It applies files at start and after a change, and
 * deletes the objects of deleted files and documents. Masters take turns: a Lease is held for each change, and writes
 * fail when the Lease is lost.
 */

import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { countText } from '../../base/text/count-text.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { isConnectionError } from '../../client/errors.ts';
import type { ApiClient, EventRecorder } from '../../client/types.ts';
import { Applier, type FileIdentity } from './apply.ts';
import { readDocuments } from './documents.ts';
import type { ManifestDirectory, ManifestFile } from './port.ts';

export interface DeployerOptions {
  readonly directory: ManifestDirectory;
  /** Name of this node. A parent ConfigMap records the host that was the last to apply the file. */
  readonly host: string;
  /**
   * Runs `work` while this host holds the Lease. The client's writes fail when the Lease is lost; then the call
   * rejects.
   */
  readonly exclusively: (work: (client: ApiClient, signal: AbortSignal) => Promise<void>) => Promise<void>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
}

const POLL_MS = 10_000;
/** A changed file is applied after it has not changed for this time. */
const SETTLE_MS = 300;
/**
 * Objects are deleted only after their file has been missing or unchanged for this time. An editor may replace a file
 * in two steps, and a copy that is interrupted leaves a valid file with fewer documents.
 */
const PRUNE_AFTER_MS = 5_000;
const FIRST_RETRY_MS = 5_000;
const LAST_RETRY_MS = 300_000;
const MAX_FILE_BYTES = 8 * 1024 * 1024;
const SKIP = '.skip';

export class ManifestDeployer {
  readonly #options: DeployerOptions;
  /** Stamp of each file at the time when it was applied or reported as unreadable. */
  readonly #done = new Map<string, string>();
  /** Files that may have objects in the cluster, also if they were applied only in part. */
  readonly #attempted = new Set<string>();
  readonly #retryMs = new Map<string, { readonly stamp: string; readonly afterMs: number; readonly delayMs: number }>();
  #pending = new Map<string, string>();
  /** Monotonic time since which each file has its current stamp. */
  readonly #unchanged = new Map<string, { readonly stamp: string; readonly sinceMs: number }>();
  /** Monotonic time since which each applied file is missing. */
  readonly #missingSinceMs = new Map<string, number>();
  #timer: Timer | undefined;
  #watcher: { close(): void } | undefined;
  #running: Promise<void> | undefined;
  #looked = false;
  #isStopped = false;

  constructor(options: DeployerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#schedule(0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#watcher?.close();
    await this.#running;
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(delayMs, () => {
      this.#running = this.#round().then((nextMs) => {
        this.#running = undefined;
        this.#schedule(nextMs);
      });
    });
  }

  /** Applies changed files and removes the objects of deleted files. Returns the milliseconds until the next round. */
  async #round(): Promise<number> {
    const { directory, log } = this.#options;
    try {
      const listed = await directory.list();
      if (listed === undefined) {
        this.#watcher?.close();
        this.#watcher = undefined;
        return POLL_MS;
      }
      this.#watcher ??= directory.watch(() => {
        if (this.#running === undefined) this.#schedule(SETTLE_MS);
      });
      const files = new Map(listed.map((file) => [file.name, file]));
      this.#observe(files);
      const changed = this.#changed(files);
      const settled = changed.filter(({ name, stamp }) => this.#pending.get(name) === stamp || !this.#looked);
      this.#pending = new Map(changed.map(({ name, stamp }) => [name, stamp]));
      const gone = [...this.#missingSinceMs.keys()].some((name) => this.#isGone(name));
      if (settled.length > 0 || gone || !this.#looked) await this.#bringUpToDate(files, settled);
      return changed.length > settled.length ? SETTLE_MS : this.#nextRetryMs();
    } catch (error) {
      log.warn('manifests not applied; retrying', { error: messageOf(error) });
      return FIRST_RETRY_MS;
    }
  }

  #observe(files: ReadonlyMap<string, ManifestFile>): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const { name, stamp } of files.values())
      if (this.#unchanged.get(name)?.stamp !== stamp) this.#unchanged.set(name, { stamp, sinceMs: nowMs });
    for (const name of this.#unchanged.keys()) if (!files.has(name)) this.#unchanged.delete(name);
    for (const name of this.#missingSinceMs.keys()) if (files.has(name)) this.#missingSinceMs.delete(name);
    for (const name of this.#attempted) if (!files.has(name)) this.#isGone(name);
  }

  /** Whether a file that is missing now has been missing for long enough to delete its objects. */
  #isGone(name: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    const sinceMs = this.#missingSinceMs.get(name) ?? nowMs;
    this.#missingSinceMs.set(name, sinceMs);
    return nowMs - sinceMs >= PRUNE_AFTER_MS;
  }

  #changed(files: ReadonlyMap<string, ManifestFile>): ManifestFile[] {
    const nowMs = this.#options.clock.monotonicMs();
    return [...files.values()].filter(({ name, stamp }) => {
      if (name.endsWith(SKIP) || files.has(`${name}${SKIP}`) || this.#done.get(name) === stamp) return false;
      const retry = this.#retryMs.get(name);
      return retry === undefined || retry.stamp !== stamp || retry.afterMs <= nowMs;
    });
  }

  #nextRetryMs(): number {
    const nowMs = this.#options.clock.monotonicMs();
    const retries = [...this.#retryMs.values()].map(({ afterMs }) => afterMs);
    const removals = [...this.#missingSinceMs.values()].map((sinceMs) => sinceMs + PRUNE_AFTER_MS);
    return Math.min(POLL_MS, ...[...retries, ...removals].map((dueMs) => Math.max(SETTLE_MS, dueMs - nowMs)));
  }

  async #bringUpToDate(files: ReadonlyMap<string, ManifestFile>, changed: readonly ManifestFile[]): Promise<void> {
    const { directory, host, exclusively, clock, log } = this.#options;
    await exclusively(async (client, signal) => {
      const applier = new Applier(client, (text) => directory.hash(text), pauseWith(clock));
      const remaining = new Set<string>();
      for (const parent of await applier.ownParents(host)) {
        const file = parent.data?.['file'] ?? '';
        if (signal.aborted || this.#isStopped) return;
        if (file === '' || files.has(file) || files.has(`${file}${SKIP}`)) continue;
        if (!this.#isGone(file)) {
          remaining.add(file);
          continue;
        }
        try {
          await this.#removeObjects(applier, file, parent);
        } catch (error) {
          if (!isResponse(error)) throw error;
          remaining.add(file);
          log.error('manifest not removed', { file, error: messageOf(error) });
        }
      }
      for (const name of new Set([...this.#attempted, ...this.#missingSinceMs.keys()])) {
        if (files.has(name) || remaining.has(name)) continue;
        this.#attempted.delete(name);
        this.#missingSinceMs.delete(name);
        this.#done.delete(name);
        this.#retryMs.delete(name);
      }
      for (const file of changed) {
        if (signal.aborted || this.#isStopped) return;
        this.#attempted.add(file.name);
        try {
          await this.#applyFile(applier, file);
        } catch (error) {
          if (!isResponse(error)) throw error;
          this.#retryLater(file);
          log.error('manifest not applied', { file: file.name, error: messageOf(error) });
        }
      }
      this.#looked = true;
    });
  }

  async #removeObjects(applier: Applier, file: string, parent: ConfigMap): Promise<void> {
    const pruned = await applier.remove(parent);
    this.#options.log.info('manifest removed', { file, pruned: pruned.length });
    const message = `Deleted ${countText(pruned.length, 'object')} of ${file}`;
    this.#options.recorder.event(about(parent), 'Normal', 'DeletedManifest', message);
  }

  async #applyFile(applier: Applier, file: ManifestFile): Promise<void> {
    const { directory, host, clock, log, recorder } = this.#options;
    const identity: FileIdentity = { file: file.name, host };
    let objects: Awaited<ReturnType<typeof readDocuments>>;
    try {
      if (file.sizeBytes > MAX_FILE_BYTES) throw new Error(`larger than ${MAX_FILE_BYTES} bytes; split it`);
      objects = await readDocuments(await directory.read(file.name), () => pauseWith(clock)(0));
    } catch (error) {
      const message = `${file.name}: ${messageOf(error)}`;
      log.error('manifest not read', { file: file.name, error: messageOf(error) });
      recorder.event(about(await applier.fail(identity, message)), 'Warning', 'ParseManifestFailed', message);
      // A file that cannot be parsed has to change first. A failed read can succeed later.
      if ((error as NodeJS.ErrnoException).code === undefined) this.#done.set(file.name, file.stamp);
      else this.#retryLater(file);
      return;
    }
    const nowMs = clock.monotonicMs();
    const { sinceMs } = this.#unchanged.get(file.name) ?? { sinceMs: nowMs };
    const outcome = await applier.apply(identity, objects, nowMs - sinceMs >= PRUNE_AFTER_MS ? 'now' : 'later');
    if (outcome.errors.length === 0 && outcome.toPrune > 0) {
      const { name, stamp } = file;
      this.#retryMs.set(name, { stamp, afterMs: sinceMs + PRUNE_AFTER_MS, delayMs: FIRST_RETRY_MS });
      log.info('manifest applied; other objects deleted later', { file: name, objects: outcome.toPrune });
      return;
    }
    if (outcome.errors.length === 0) {
      this.#done.set(file.name, file.stamp);
      this.#retryMs.delete(file.name);
      log.info('manifest applied', { file: file.name, objects: outcome.applied, pruned: outcome.pruned.length });
      const message = `Applied ${outcome.applied} objects of ${file.name}`;
      recorder.event(about(outcome.parent), 'Normal', 'AppliedManifest', message);
      return;
    }
    this.#retryLater(file);
    const [first = ''] = outcome.errors;
    log.error('manifest not applied', { file: file.name, errors: outcome.errors.length, error: first });
    recorder.event(about(outcome.parent), 'Warning', 'ApplyManifestFailed', `${file.name}: ${first}`);
  }

  #retryLater({ name, stamp }: ManifestFile): void {
    const before = this.#retryMs.get(name);
    const delayMs = before?.stamp === stamp ? Math.min(LAST_RETRY_MS, before.delayMs * 2) : FIRST_RETRY_MS;
    this.#retryMs.set(name, { stamp, afterMs: this.#options.clock.monotonicMs() + delayMs, delayMs });
  }
}

/** Whether the server has answered with an error. It concerns one file, so the other files are still applied. */
const isResponse = (error: unknown): boolean => isApiError(error) && !isConnectionError(error);

/** The parent with kind and apiVersion, which events need and typed lists omit. */
const about = (parent: ConfigMap): ConfigMap => ({ ...parent, apiVersion: 'v1', kind: 'ConfigMap' });

const pauseWith =
  (clock: Clock) =>
  (ms: number): Promise<void> =>
    new Promise((resolve) => {
      clock.setTimer(ms, resolve);
    });
