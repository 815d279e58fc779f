/**
 * Updates of this host: executes the update that an annotation of its Node requests, in steps that survive power
 * failures. Masters also keep the files of all announced releases, for hosts of every architecture.
 */
import type { ConfigMap, Node } from '../../api/generated/core/v1.ts';
import {
  type HostUpdate,
  hostReportOf,
  hostUpdateOf,
  UPDATE_ANNOTATION,
  type WantedUpdate,
  wantedUpdateOf,
} from '../../api/kinds/nodes/nodes/host-report.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import { announcementOf, RELEASE_LABEL, RELEASE_NAMESPACE } from '../../api/releases/announcement.ts';
import {
  type Architecture,
  parseManifest,
  type ReleaseFile,
  type ReleaseManifest,
  storeLevelOf,
} from '../../api/releases/manifest.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { compareReleases } from '../../base/versions/release-version.ts';
import type { ApiClient, Informer, InformerFactory } from '../../client/types.ts';
import { nextSwitchStep, STABLE_MS, type SwitchRecord, snapshotAfterRollback } from './core/index.ts';
import { type DrainedHost, drainOwnNode, uncordonOwnNode } from './drain.ts';
import type { HostExecutables, ReleaseFiles } from './port.ts';
import type { VerifyRelease } from './releases-port.ts';

export interface UpdateAgentDeps {
  readonly nodeName: string;
  readonly running: string;
  readonly architecture: Architecture;
  readonly keepsReleases: boolean;
  /** Time within which a new executable must become healthy. */
  readonly timeoutMs: number;
  readonly client: ApiClient;
  readonly informers: InformerFactory;
  readonly executables: HostExecutables;
  readonly files: ReleaseFiles;
  readonly verify: VerifyRelease;
  /** Fault of the first failing probe of this host. Empty if all probes pass. */
  readonly fault: () => string;
  /** Text that changes after a restart of one of this host's components. */
  readonly runs: () => Promise<string>;
  /** Reason why other hosts cannot reach this host. Empty if they can reach it, or if no host probes it. */
  readonly unreached: (updateId: string) => string;
  /**
   * Saves the store before an update and resolves with the name of the snapshot. Undefined when this host has no store
   * member.
   */
  readonly saveStore: ((version: string) => Promise<string>) | undefined;
  /** Level of the store's log. Undefined when this host has no store member. */
  readonly storeLevel: (() => Promise<number>) | undefined;
  /** Highest level of the store's log that the running release reads. */
  readonly readableLevel: number;
  readonly clock: Clock;
  readonly log: Log;
}

const POLL_MS = 1_000;
const RETRY_MS = 5_000;
/** Number of failed fetches of an update after which the agent reports the update as failed. */
const MAX_FETCHES = 5;
/** Longest pause between attempts to keep the files of releases. */
const MAX_KEEP_RETRY_MS = 300_000;

export class UpdateAgent {
  readonly #deps: UpdateAgentDeps;
  readonly #node: Informer<Node>;
  readonly #releases: Informer<ConfigMap>;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;
  #again = false;
  #restarting = false;
  /** Number of fetch attempts for the update with this ID. */
  #fetches = { id: '', count: 0 };
  /** Start of the period in which all probes pass without a restart of a component. */
  #healthy: { readonly sinceMs: number; readonly runs: string } | undefined;
  /** Monotonic time at which the pending timer is due. */
  #dueMs = 0;
  /** Failed attempts in a row to keep the files of releases, and the monotonic time of the next attempt. */
  #keeping = { failures: 0, afterMs: 0 };
  /** Digests of the files of all releases that were announced since the start of this process. */
  readonly #announced = new Set<string>();

  constructor(deps: UpdateAgentDeps) {
    this.#deps = deps;
    this.#node = deps.informers.informer(resources.nodes, { fieldSelector: `metadata.name=${deps.nodeName}` });
    this.#releases = deps.informers.informer(resources.configMaps, {
      namespace: RELEASE_NAMESPACE,
      labelSelector: RELEASE_LABEL,
    });
  }

  start(): void {
    const wake = (): void => this.#wake();
    const onRelease = (): void => {
      this.#keeping = { failures: 0, afterMs: 0 };
      this.#wake();
    };
    this.#node.onChange({ added: wake, updated: wake });
    this.#releases.onChange({ added: onRelease, updated: onRelease, deleted: onRelease });
    this.#node.start();
    this.#releases.start();
    // The trial of an update continues even if no API server responds.
    wake();
  }

  get #host(): DrainedHost {
    const { nodeName, client, clock } = this.#deps;
    return { nodeName, client, clock, stopped: () => this.#stopped };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#running;
  }

  #wake(): void {
    if (this.#stopped || this.#restarting) return;
    if (this.#running !== undefined) {
      this.#again = true;
      return;
    }
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.setTimer(0, () => {
      this.#timer = undefined;
      this.#running = this.#run().finally(() => {
        this.#running = undefined;
        if (this.#again) {
          this.#again = false;
          this.#wake();
        }
      });
    });
  }

  async #run(): Promise<void> {
    try {
      await this.#step();
    } catch (error) {
      this.#deps.log.warn('update step failed; retrying', { error: messageOf(error) });
      this.#later(RETRY_MS);
    }
    if (this.#deps.keepsReleases && this.#releases.hasListed) await this.#keepReleasesWhenDue();
  }

  /** Wakes the agent after this time, or earlier if it is due earlier. */
  #later(delayMs: number): void {
    const { clock } = this.#deps;
    const dueMs = clock.monotonicMs() + delayMs;
    if (this.#timer !== undefined && this.#dueMs <= dueMs) return;
    this.#timer?.cancel();
    this.#dueMs = dueMs;
    this.#timer = clock.setTimer(delayMs, () => {
      this.#timer = undefined;
      this.#wake();
    });
  }

  async #step(): Promise<void> {
    const { executables, running, log } = this.#deps;
    const node = this.#node.get(this.#deps.nodeName);
    const wanted = node === undefined ? undefined : wantedUpdateOf(node);
    const record = await executables.record();
    const step = nextSwitchStep({ record, link: await executables.link(), running }, wanted);
    switch (step.step) {
      case 'none':
        if (record === undefined) return;
        if (snapshotAfterRollback(record, running) !== undefined) await this.#settle(record);
        await uncordonOwnNode(this.#host, node);
        return this.#report(node, reportOf(record));
      case 'stage':
        if (wanted !== undefined) await this.#stage(node, wanted);
        return;
      case 'write':
        log.info('update phase changed', { from: step.record.from, to: step.record.to, phase: step.record.phase });
        await executables.writeRecord(step.record);
        return this.#wakeSoon();
      case 'link':
        await executables.setLink(step.version);
        return this.#wakeSoon();
      case 'restart':
        return this.#restart(node, record);
      case 'confirm':
        return this.#confirm(node, step.record);
    }
  }

  #wakeSoon(): void {
    this.#again = true;
  }

  /** Restarts the host process after the link was switched. During a trial, the guard watches from now on. */
  async #restart(node: Node | undefined, record: SwitchRecord | undefined): Promise<void> {
    const { executables, log } = this.#deps;
    if (record !== undefined)
      await this.#report(node, reportOf(record)).catch((error: unknown) =>
        log.warn('update status not reported', { error: messageOf(error) }),
      );
    this.#restarting = true;
    log.info('restarting the host process for an update', { to: record?.to, phase: record?.phase });
    if (record?.phase === 'trying') await executables.startGuard();
    await executables.restart();
  }

  /**
   * Confirms an update. Conditions: by its own probes and those of other hosts, this host has been healthy for
   * STABLE_MS without a component restart, and its Node in the API shows the new version.
   */
  async #confirm(node: Node | undefined, record: SwitchRecord): Promise<void> {
    const { executables, unreached, running, log } = this.#deps;
    const unseen = node === undefined ? 'no API server answers' : notSeen(node, running) || unreached(record.id);
    const why = await this.#unstable(unseen);
    if (why !== '') {
      log.v(2, 'update is not confirmed yet', { reason: why });
      this.#later(POLL_MS);
      return;
    }
    await executables.writeRecord(record);
    await executables.prune([record.from, record.to]);
    log.info('update confirmed', { from: record.from, to: record.to });
    await this.#report(node, reportOf(record));
    this.#wakeSoon();
  }

  /**
   * Returns the reason why the host is not stable, or '' if it has been healthy for long enough. `otherFault`: a fault
   * that the probes do not detect; '' if there is none.
   */
  async #unstable(otherFault: string): Promise<string> {
    const { fault, runs, clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    const why = fault() || otherFault;
    const present = await runs();
    if (why !== '') {
      this.#healthy = undefined;
      return why;
    }
    const restarted = this.#healthy !== undefined && this.#healthy.runs !== present;
    if (this.#healthy === undefined || restarted) this.#healthy = { sinceMs: nowMs, runs: present };
    const healthyMs = nowMs - this.#healthy.sinceMs;
    if (restarted) return 'a component has restarted';
    return healthyMs >= STABLE_MS ? '' : `healthy for ${Math.floor(healthyMs / 1000)} s`;
  }

  /**
   * Removes the snapshot from the record once the former release is healthy after a rollback: its store is then kept.
   */
  async #settle({ snapshot: _, ...record }: SwitchRecord): Promise<void> {
    if ((await this.#unstable('')) !== '') return this.#later(POLL_MS);
    await this.#deps.executables.writeRecord(record);
  }

  async #stage(node: Node | undefined, wanted: WantedUpdate): Promise<void> {
    const { executables, running, timeoutMs, saveStore, readableLevel } = this.#deps;
    const { id, version } = wanted;
    let snapshot: string | undefined;
    await this.#report(node, { id, version, state: 'Fetching', message: '' });
    const record = { id, from: running, to: version, message: '', timeoutMs, readableLevel } as const;
    try {
      await executables.keepRunning(running);
      const manifest = this.#manifestOf(wanted);
      await this.#requireReadableStore(version, manifest);
      const file = this.#fileOf(version, manifest);
      if (!(await executables.has(version, file?.sha256))) {
        if (file === undefined) throw new CodedError('no-release', `no executable of ${version} exists on this host`);
        await executables.place(version, await this.#deps.files.fetch(file));
      }
      if (wanted.drain === true && node !== undefined) await drainOwnNode(this.#host, node);
      // The snapshot is taken last before the switch, so that a rollback loses little data.
      snapshot = await saveStore?.(running);
    } catch (error) {
      if (this.#fetches.id !== id) this.#fetches = { id, count: 0 };
      this.#fetches.count += 1;
      if (this.#fetches.count < MAX_FETCHES && !(error instanceof CodedError && error.code === 'refused')) throw error;
      const kept = snapshotAfterRollback(await executables.record(), running);
      await executables.writeRecord({
        ...record,
        phase: 'failed',
        message: messageOf(error),
        ...(kept === undefined ? {} : { snapshot: kept }),
      });
      return this.#wakeSoon();
    }
    if (this.#stopped) return;
    await executables.writeRecord({ ...record, phase: 'trying', ...(snapshot === undefined ? {} : { snapshot }) });
    this.#wakeSoon();
  }

  /** Rejects an update to an older release that cannot read the store, because the store's log level was raised. */
  async #requireReadableStore(version: string, manifest: ReleaseManifest | undefined): Promise<void> {
    const { running, storeLevel } = this.#deps;
    if (storeLevel === undefined || compareReleases(version, running) >= 0) return;
    const level = await storeLevel();
    const readable = storeLevelOf(manifest);
    if (level > readable)
      throw new CodedError(
        'refused',
        `release ${version} reads stores up to level ${readable}, and the store has level ${level}; stay at ${running} or update to a newer release`,
      );
  }

  /** Manifest of the wanted release; undefined for a version that this host has kept. Throws CodedError 'refused'. */
  #manifestOf({ version, manifest }: WantedUpdate): ReleaseManifest | undefined {
    if (manifest === '') return undefined;
    const found = this.#releases.list().map((map) => this.#deps.verify(announcementOf(map)));
    const release = found.find((each) => 'manifest' in each && each.digest === manifest);
    if (release === undefined || !('manifest' in release)) {
      const problem = found.map((each) => ('problem' in each ? each.problem : '')).find((each) => each !== '');
      throw new CodedError('no-release', problem ?? `release ${version} has no trusted signature`);
    }
    if (release.manifest.version !== version)
      throw new CodedError('refused', `the manifest is for version ${release.manifest.version}, not ${version}`);
    return release.manifest;
  }

  #fileOf(version: string, manifest: ReleaseManifest | undefined): ReleaseFile | undefined {
    if (manifest === undefined) return undefined;
    const { architecture } = this.#deps;
    const file = manifest.files.find((each) => each.architecture === architecture);
    if (file === undefined) throw new CodedError('refused', `release ${version} has no executable for ${architecture}`);
    return file;
  }

  /** Keeps the files of releases. After a failure the next attempt follows with exponential back-off. */
  async #keepReleasesWhenDue(): Promise<void> {
    const { clock, log } = this.#deps;
    const waitMs = this.#keeping.afterMs - clock.monotonicMs();
    if (waitMs > 0) return this.#later(waitMs);
    try {
      await this.#keepReleases();
      this.#keeping = { failures: 0, afterMs: 0 };
    } catch (error) {
      const delayMs = Math.min(RETRY_MS * 2 ** this.#keeping.failures, MAX_KEEP_RETRY_MS);
      this.#keeping = { failures: this.#keeping.failures + 1, afterMs: clock.monotonicMs() + delayMs };
      log.warn('release file not fetched; retrying', { seconds: delayMs / 1000, error: messageOf(error) });
      this.#later(delayMs);
    }
  }

  /**
   * Fetches files of announced releases from another master and removes files that belong to no release. Files of a
   * release that is not trusted are kept: after a start, its key may not have been read yet.
   */
  async #keepReleases(): Promise<void> {
    const { files, verify, log } = this.#deps;
    const announcements = this.#releases.list().map(announcementOf);
    const trusted = announcements.flatMap((announcement) => {
      const release = verify(announcement);
      return 'manifest' in release ? release.manifest.files : [];
    });
    for (const file of trusted) {
      if ((await files.pathOf(file.sha256)) !== undefined) continue;
      await files.fetch(file);
      log.info('release file fetched', { name: file.name, sha256: file.sha256 });
    }
    const manifests = announcements.map(({ text }) => parseManifest(text));
    // A manifest that the running release cannot parse may list more files, so no file is removed.
    if (manifests.some((manifest) => typeof manifest === 'string')) return;
    const kept = manifests.flatMap((manifest) =>
      typeof manifest === 'string' ? [] : manifest.files.map(({ sha256 }) => sha256),
    );
    for (const digest of kept) this.#announced.add(digest);
    await files.retain(kept, this.#announced);
  }

  async #report(node: Node | undefined, update: HostUpdate): Promise<void> {
    if (node === undefined) return;
    const { since: _, ...reported } = hostUpdateOf(node) ?? {};
    if (semanticEqual(reported, update)) return;
    const { client, nodeName, clock } = this.#deps;
    const annotations = { [UPDATE_ANNOTATION]: JSON.stringify({ ...update, since: timestamp(clock.nowMs()) }) };
    await client.resource(resources.nodes).patch(nodeName, undefined, 'merge', { metadata: { annotations } });
  }
}

function reportOf({ id, to, phase, message }: SwitchRecord): HostUpdate {
  const state = phase === 'done' ? 'Done' : phase === 'failed' ? 'Failed' : 'Restarting';
  return { id, version: to, state, message };
}

function notSeen(node: Node, running: string): string {
  if (hostReportOf(node)?.version !== running) return 'the report of this version is not written yet';
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  return ready === 'True' ? '' : 'the Node is not Ready';
}
