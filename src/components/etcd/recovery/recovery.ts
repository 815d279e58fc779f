/**
 * A store that mends itself: when its file is damaged or has lost what was acknowledged, the file is put aside and the member comes back to its cluster with
 * nothing, under a new id; see `replacement`. A member without others goes back to the last snapshot that it was given as a fallback; without one it is left as it
 * is, with a word about what to do.
 */
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { EtcdServer, EtcdServerDeps, WentBack } from '../index.ts';
import type { PeerUrls } from '../port.ts';
import type { StoreServer } from '../server.ts';

/** What the data of a member that is alone cannot be mended from; for others, what makes them begin anew. */
const DAMAGE: ReadonlySet<string> = new Set(['corrupt', 'LogLost', 'Diverged', 'wiped', 'dissents']);
/** More often than this it is not the data: the disk, or the machine. */
const MOST_MENDS = 3;
const MENDS_WITHIN_MS = 3600_000;

type Begin = (
  deps: EtcdServerDeps,
  replaces: PeerUrls | undefined,
  damage: () => CodedError | undefined,
) => StoreServer;

export class MendingServer implements EtcdServer {
  readonly #deps: EtcdServerDeps;
  readonly #begin: Begin;
  #server: StoreServer | undefined;
  #mending: Promise<void> | undefined;
  #mends: number[] = [];
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
        replaces = await this.#putAside(error);
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#server?.stop();
    await this.#mending;
    await this.#deps.gossip?.close();
  }

  #start(replaces: PeerUrls | undefined): Promise<{ readonly host: string; readonly port: number }> {
    const { gossip } = this.#deps;
    let starting = true;
    let damage: CodedError | undefined;
    const server = this.#begin(
      {
        ...this.#deps,
        // It says that it has gone once, at the end.
        ...(gossip === undefined ? {} : { gossip: { ...gossip, close: async () => {} } }),
        // While it starts, whatever is wrong is thrown as well.
        onFatal: (error) => {
          if (!starting || !isDamage(error)) this.#failed(server, error);
          else damage ??= error;
        },
      },
      replaces,
      () => damage,
    );
    this.#server = server;
    // One that has not come up is over: what else it says about its damage is known.
    return server.start().then((address) => {
      starting = false;
      if (damage !== undefined) this.#failed(server, damage);
      return address;
    });
  }

  #failed(server: StoreServer, error: Error): void {
    if (server !== this.#server || this.#stopped || this.#mending !== undefined) return;
    if (!isDamage(error)) {
      this.#deps.onFatal(error);
      return;
    }
    this.#mending = this.#mend(server, error).catch((failure: unknown) => {
      if (!this.#stopped) this.#deps.onFatal(failure instanceof Error ? failure : new Error(messageOf(failure)));
    });
  }

  async #mend(server: StoreServer, damage: CodedError): Promise<void> {
    await server.stop();
    try {
      for (let found: CodedError | undefined = damage; found !== undefined; ) {
        const replaces = await this.#putAside(found);
        if (this.#stopped) return;
        // It may be damaged again before it has come up.
        found = await this.#start(replaces).then(
          () => undefined,
          (error: unknown) => {
            if (error instanceof CodedError && isDamage(error) && !this.#stopped) return error;
            throw error;
          },
        );
      }
    } finally {
      this.#mending = undefined;
    }
  }

  /** Resolves with where the others are, undefined when the store has gone back to a snapshot. Throws what cannot be mended, with what to do about it. */
  async #putAside(damage: CodedError): Promise<PeerUrls | undefined> {
    const { storage, log, clock, name } = this.#deps;
    if (!isDamage(damage)) throw damage;
    const others = await this.#others();
    const now = clock.monotonicMs();
    this.#mends = [...this.#mends.filter((at) => now - at < MENDS_WITHIN_MS), now];
    if (this.#mends.length > MOST_MENDS)
      throw new CodedError(
        'io',
        `the store was rebuilt ${MOST_MENDS} times within an hour; look at the disk: ${damage.message}`,
      );
    if (others.length === 0) {
      await this.#goBack(damage);
      return undefined;
    }
    const kept = await storage.quarantine();
    log.error(
      'the data of this member cannot be used: they are put aside and rebuilt from the others, under a new id',
      {
        name,
        cause: damage.message,
        kept,
      },
    );
    return others;
  }

  /** There is nobody else who has the data. */
  async #goBack(damage: CodedError): Promise<void> {
    const { fallback, forceNewCluster, log, name } = this.#deps;
    // Whoever forces a new cluster is at work on it.
    if (damage.code !== 'corrupt' || fallback === undefined || forceNewCluster !== undefined)
      throw beyondRepair(damage);
    let back: WentBack;
    try {
      back = await fallback.goBack(this.#server?.revision ?? 0);
    } catch (error) {
      throw beyondRepair(damage, messageOf(error));
    }
    const { kept, snapshot, from, to, revision } = back;
    log.error(
      'the data of this member cannot be used and there is no other member: they are put aside, and the store goes back to its last snapshot; what was written after it is lost',
      { name, cause: damage.message, kept, snapshot, lost: lostOf(from, to), revision },
    );
  }

  async #others(): Promise<PeerUrls> {
    const { initialCluster, peerUrls = [], peers, forceNewCluster, storage } = this.#deps;
    // One that is to go on alone has nobody.
    if (peers === undefined || forceNewCluster !== undefined) return [];
    const noted = await storage.notedOthers();
    // What the cluster began with is older than what was noted.
    if (noted?.length === 0) return [];
    const known = [
      ...[...(this.#server?.members ?? []), ...(initialCluster?.members ?? [])].map((member) => member.peerUrls),
      ...(noted ?? []),
    ].filter((urls) => urls.length > 0 && !urls.some((url) => peerUrls.includes(url)));
    return [...new Map(known.map((urls) => [urls.join(), urls])).values()];
  }
}

function isDamage(error: Error): error is CodedError {
  return error instanceof CodedError && DAMAGE.has(error.code);
}

function beyondRepair(damage: CodedError, why?: string): CodedError {
  const also = why === undefined ? '' : ` and it could not go back to a scheduled snapshot (${why})`;
  return new CodedError(
    damage.code,
    `${damage.message}; there is no other member to rebuild it from${also}: move the data directory aside and restore a snapshot (hyperedge snapshot restore)`,
    { cause: damage },
  );
}

/** What of the history is gone, in words. */
export function lostOf(from: number, to: number | undefined): string {
  if (to === undefined) return `everything after revision ${from}; up to where is not known`;
  return to > from ? `revisions ${from + 1} to ${to}` : 'nothing that is known of';
}
