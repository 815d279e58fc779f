/** Passes hints from gossip to raft, and this store's state to gossip. Gossip only speeds up failure detection. */
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { GossipHints, GossipMember } from '../../gossip-port.ts';
import type { Engine } from '../engine.ts';

export interface GossipLinkDeps {
  readonly hints: GossipHints;
  readonly engine: Engine;
  readonly clock: Clock;
}

const PUBLISH_MS = 1000;
const SILENT_HEARTBEATS = 3;

/** Member IDs have 16 digits in gossip, but no leading zeros here. */
const onWire = (id: string): string => id.padStart(16, '0');
const here = (id: string): string => id.replace(/^0+(?=.)/, '');

export class GossipLink {
  readonly #deps: GossipLinkDeps;
  #unsubscribe: (() => void) | undefined;
  #timer: Timer | undefined;
  #members: readonly GossipMember[] = [];
  #stopped = false;

  constructor(deps: GossipLinkDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#unsubscribe = this.#deps.hints.subscribe((members) => {
      this.#members = members;
      this.#consider();
    });
    this.#publishAgain();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#unsubscribe?.();
    await this.#deps.hints.close();
  }

  /** Publishes this store's state when leadership has changed. */
  publish(): void {
    if (this.#stopped) return;
    const { replica } = this.#deps.engine;
    this.#deps.hints.publish({
      memberId: onWire(replica.id),
      leader: replica.leader === undefined ? undefined : onWire(replica.leader),
      leaderHeardAgoMs: replica.leaderHeardAgoMs,
      appliedIndex: replica.applied,
      fsyncMs: replica.writeMs,
    });
  }

  #publishAgain(): void {
    this.publish();
    if (this.#stopped) return;
    this.#consider();
    this.#timer = this.#deps.clock.setTimer(PUBLISH_MS, () => this.#publishAgain());
  }

  #consider(): void {
    const { engine } = this.#deps;
    const { replica } = engine;
    const known = this.#members.filter(({ memberId }) => engine.cluster.get(here(memberId)) !== undefined);
    replica.hint((raft) => {
      raft.setPeerHints(
        known.map(({ memberId, alive, appliedIndex, health }) => ({
          id: here(memberId),
          alive,
          lastIndex: appliedIndex,
          health,
        })),
      );
    });
    const { leader, electionMs } = replica;
    if (leader === undefined || leader === replica.id) return;
    if (known.some(({ memberId, confirmedDead }) => confirmedDead && here(memberId) === leader)) {
      // A killed host process looks like a dead host although its store may still lead. A leader with recent messages
      // is alive.
      if (replica.leaderHeardAgoMs > SILENT_HEARTBEATS * replica.heartbeatMs) {
        replica.hint((raft) => raft.leaderConfirmedDead(leader));
      }
      return;
    }
    const seen = known.some(
      ({ memberId, leaderSeen }) =>
        leaderSeen !== undefined &&
        here(memberId) !== leader &&
        here(memberId) !== replica.id &&
        here(leaderSeen.leader) === leader &&
        leaderSeen.agoMs < electionMs,
    );
    if (seen) replica.hint((raft) => raft.hintLeaderSeen(leader, replica.electionTicks));
  }
}
