/**
 * Automatic recovery. When the store is damaged or has lost acknowledged data, its file is quarantined and the member
 * rejoins its cluster without data under a new ID; see replacement.ts. A single member falls back to its last snapshot.
 * Without a fallback, the store of a single member is left unchanged and the error contains the fix. Data that this
 * build cannot read because an update of this host was rolled back are handled in the same way.
 */
import { CodedError, messageOf } from '../../base/errors.ts';
import type { PeerUrls } from '../disk/port.ts';
import type { Member } from '../membership/cluster.ts';
import type { EtcdServer, EtcdServerDeps, Fallback, FallbackResult } from '../server/server-port.ts';

/** Errors after which a member with peers rejoins. A single member needs a fallback. */
const DAMAGE: ReadonlySet<string> = new Set(['corrupt', 'LogLost', 'Diverged', 'wiped', 'dissents']);
/**
 * Errors of a build that is older than the data. They stop the store, unless an update of this host was rolled back.
 */
const TOO_NEW: ReadonlySet<string> = new Set(['schema-too-new', 'too-old']);
/** More recoveries than this in the window indicate a failing disk or machine. */
const MAX_RECOVERIES = 3;
const RECOVERY_WINDOW_MS = 3600_000;

/** One run of the store. After `stop`, another run may start with the same log and listeners. */
export interface StoreServer extends EtcdServer {
  /** Known members, also available after `start` has failed. */
  readonly members: readonly Member[];
  /** Last revision that may have been visible, or 0. */
  readonly revision: number;
}

type Begin = (
  deps: EtcdServerDeps,
  replaces: PeerUrls | undefined,
  damage: () => CodedError | undefined,
) => StoreServer;

export class RecoveringServer implements EtcdServer {
  readonly #deps: EtcdServerDeps;
  readonly #begin: Begin;
  #server: StoreServer | undefined;
  #recovering: Promise<void> | undefined;
  #recoveries: number[] = [];
  #stopped = false;

  constructor(deps: EtcdServerDeps, begin: Begin) {
    this.#deps = deps;
    this.#begin = begin;
  }

  async start(): Promise<{ readonly host: string; readonly port: number }> {
    for (let replaces: PeerUrls | undefined; ; ) {
      try {
        return await this.#start(replaces);
      } catch (error) {
        if (!(error instanceof CodedError) || this.#stopped) throw error;
        replaces = await this.#quarantine(error);
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#server?.stop();
    await this.#recovering;
    await this.#deps.gossip?.close();
  }

  #start(replaces: PeerUrls | undefined): Promise<{ readonly host: string; readonly port: number }> {
    const { gossip } = this.#deps;
    let starting = true;
    let damage: CodedError | undefined;
    const server = this.#begin(
      {
        ...this.#deps,
        // One run of the store must not close gossip, which is closed once, after the last run.
        ...(gossip === undefined ? {} : { gossip: { ...gossip, close: async () => {} } }),
        // Errors during the start are thrown as well.
        onFatal: (error) => {
          if (!starting || !isDamage(error)) this.#failed(server, error);
          else damage ??= error;
        },
      },
      replaces,
      () => damage,
    );
    this.#server = server;
    // A store that failed to start is stopped: further errors of it are ignored.
    return server.start().then((address) => {
      starting = false;
      if (damage !== undefined) this.#failed(server, damage);
      return address;
    });
  }

  #failed(server: StoreServer, error: Error): void {
    if (server !== this.#server || this.#stopped || this.#recovering !== undefined) return;
    if (!isDamage(error)) {
      this.#deps.onFatal(error);
      return;
    }
    this.#recovering = this.#recover(server, error).catch((failure: unknown) => {
      if (!this.#stopped) this.#deps.onFatal(failure instanceof Error ? failure : new Error(messageOf(failure)));
    });
  }

  async #recover(server: StoreServer, damage: CodedError): Promise<void> {
    await server.stop();
    try {
      for (let found: CodedError | undefined = damage; found !== undefined; ) {
        const replaces = await this.#quarantine(found);
        if (this.#stopped) return;
        // The store may be damaged again before it has started.
        found = await this.#start(replaces).then(
          () => undefined,
          (error: unknown) => {
            if (error instanceof CodedError && isDamage(error) && !this.#stopped) return error;
            throw error;
          },
        );
      }
    } finally {
      this.#recovering = undefined;
    }
  }

  /**
   * Resolves with the peer URLs of the other members, or undefined when the store was restored from a snapshot. Throws
   * the damage with the fix if it cannot be recovered.
   */
  async #quarantine(damage: CodedError): Promise<PeerUrls | undefined> {
    const { storage, log, clock, name } = this.#deps;
    const beforeUpdate = TOO_NEW.has(damage.code) ? await this.#deps.beforeUpdate?.() : undefined;
    if (!isDamage(damage) && beforeUpdate === undefined) throw damage;
    const others = await this.#otherPeers();
    // The other members' logs also contain the entries that this build does not support.
    if (damage.code === 'too-old' && others.length > 0) throw damage;
    const now = clock.monotonicMs();
    this.#recoveries = [...this.#recoveries.filter((at) => now - at < RECOVERY_WINDOW_MS), now];
    if (this.#recoveries.length > MAX_RECOVERIES)
      throw new CodedError(
        'io',
        `the store was rebuilt ${MAX_RECOVERIES} times within an hour; check the disk: ${damage.message}`,
      );
    if (others.length === 0) {
      await this.#restoreSnapshot(
        damage,
        beforeUpdate ?? (damage.code === 'corrupt' ? this.#deps.fallback : undefined),
      );
      return undefined;
    }
    const kept = await storage.quarantine();
    log.error('data quarantined; rebuilding this member from its peers under a new id', {
      name,
      cause: damage.message,
      kept,
    });
    return others;
  }

  /** Called when no other member has the data. */
  async #restoreSnapshot(damage: CodedError, fallback: Fallback | undefined): Promise<void> {
    const { forceNewCluster, log, name } = this.#deps;
    // With force-new-cluster an operator handles the store.
    if (fallback === undefined || forceNewCluster !== undefined) throw beyondRepair(damage);
    let back: FallbackResult;
    try {
      back = await fallback.fallBack(this.#server?.revision ?? 0);
    } catch (error) {
      throw beyondRepair(damage, messageOf(error));
    }
    const { kept, snapshot, from, to, revision } = back;
    log.error('data quarantined and no peers exist; store restored from its last snapshot; later writes are lost', {
      name,
      cause: damage.message,
      kept,
      snapshot,
      lost: lostOf(from, to),
      revision,
    });
  }

  async #otherPeers(): Promise<PeerUrls> {
    const { initialCluster, peerUrls = [], peers, forceNewCluster, storage } = this.#deps;
    // A forced new cluster has no other members.
    if (peers === undefined || forceNewCluster !== undefined) return [];
    const isOther = (urls: readonly string[]): boolean =>
      urls.length > 0 && !urls.some((url) => peerUrls.includes(url));
    const known = [...(this.#server?.members ?? []), ...(initialCluster?.members ?? [])]
      .map((member) => member.peerUrls)
      .filter(isOther);
    const noted = await storage.savedPeers().catch((error: unknown) => {
      // The members that are known otherwise suffice to rebuild this member.
      if (known.length === 0) throw error;
      return undefined;
    });
    // The saved peers are newer than the initial cluster.
    if (noted?.length === 0) return [];
    return [...new Map([...known, ...(noted ?? []).filter(isOther)].map((urls) => [urls.join(), urls])).values()];
  }
}

function isDamage(error: Error): error is CodedError {
  return error instanceof CodedError && DAMAGE.has(error.code);
}

function beyondRepair(damage: CodedError, why?: string): CodedError {
  const also = why === undefined ? '' : ` and restoring a scheduled snapshot failed (${why})`;
  return new CodedError(
    damage.code,
    `${damage.message}; there is no other member from which this member can be rebuilt${also}: move the data directory aside and restore a snapshot (hyperedge snapshot restore)`,
    { cause: damage },
  );
}

/** Describes the lost part of the history. */
export function lostOf(from: number, to: number | undefined): string {
  if (to === undefined) return `everything after revision ${from}; the last lost revision is unknown`;
  return to > from ? `revisions ${from + 1} to ${to}` : 'no known revision';
}
