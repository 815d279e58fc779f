/**
 * Joins configured addresses until each of them is a member: at start, because the other hosts may not run yet, and
 * whenever one is missing. The ring itself reconnects to members that are still in its table.
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import type { PeerAddress } from '../core/port.ts';
import type { Membership } from './deps.ts';

export interface JoiningDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly membership: Membership;
  /** Name of this host, which is not joined. */
  readonly self: string;
  /** Peers as `host:port`. Names are resolved again for every attempt. */
  readonly peers: readonly string[];
  readonly resolve: (peer: string) => Promise<PeerAddress>;
}

export interface Joining {
  /**
   * Replaces the peers of the last call; configured peers are kept. `others` are tried only while no other member is
   * alive, a few at a time: the addresses of all peers may have changed.
   */
  setPeers(peers: readonly string[], others: readonly string[]): void;
  stop(): void;
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;
/** Interval of checks while all peers are members. */
const CHECK_MS = 30_000;
const OTHERS_AT_ONCE = 4;

export function keepJoined(deps: JoiningDeps): Joining {
  const { clock, random, log, membership } = deps;
  let peers = deps.peers;
  let others: readonly string[] = [];
  let timer: Timer | undefined;
  let stopped = false;
  let retryMs = FIRST_RETRY_MS;
  let reported = false;
  let running = false;

  const round = async (): Promise<void> => {
    running = true;
    const missing: PeerAddress[] = [];
    let problem: string | undefined;
    const more = isAlone() ? someOf(others, random) : [];
    for (const peer of new Set([...peers, ...more])) {
      try {
        const address = await deps.resolve(peer);
        if (!present(address)) missing.push(address);
      } catch (error) {
        problem = messageOf(error);
      }
    }
    if (missing.length > 0 && !stopped) {
      try {
        const joined = await membership.join(missing);
        if (joined < missing.length) problem ??= `${missing.length - joined} of ${missing.length} did not answer`;
      } catch (error) {
        problem = messageOf(error);
      }
    }
    running = false;
    if (stopped) return;
    // A problem is logged as a warning only once, not for every attempt.
    if (problem !== undefined && !reported)
      log.warn('cannot join all members of the gossip ring; retrying', { error: problem });
    else if (problem !== undefined)
      log.v(4, 'cannot join all members of the gossip ring; retrying', { error: problem });
    reported = problem !== undefined;
    again(problem === undefined ? CHECK_MS : retryMs);
    retryMs = problem === undefined ? FIRST_RETRY_MS : Math.min(LAST_RETRY_MS, retryMs * 2);
  };

  const isAlone = (): boolean =>
    !membership.members().some(({ name, state }) => name !== deps.self && state === 'alive');

  const present = (address: PeerAddress): boolean =>
    membership
      .members()
      .some(
        (member) =>
          (member.state === 'alive' || member.state === 'suspect') &&
          member.address.ip === address.ip &&
          member.address.port === address.port,
      );

  /** Schedules the next attempt with jitter, so that hosts that start together do not all connect at the same time. */
  const again = (ms: number): void => {
    timer?.cancel();
    timer = clock.setTimer(ms * (0.75 + random.random() / 2), () => void round());
  };

  // After a member has failed or left, the next attempt follows soon, and then with back-off.
  const unsubscribe = membership.subscribe((event) => {
    if (stopped || (event.kind !== 'failed' && event.kind !== 'left') || event.member.name === deps.self) return;
    retryMs = FIRST_RETRY_MS;
    if (!running) again(FIRST_RETRY_MS);
  });
  void round();
  return {
    setPeers(learnt, fallback) {
      peers = [...new Set([...deps.peers, ...learnt])];
      others = fallback;
      retryMs = FIRST_RETRY_MS;
      if (!running && !stopped) void round();
    },
    stop() {
      stopped = true;
      timer?.cancel();
      unsubscribe();
    },
  };
}

/** Selects peers for one attempt, beginning at a random position. */
function someOf(peers: readonly string[], random: RandomSource): readonly string[] {
  const first = Math.floor(random.random() * peers.length);
  return [...peers.slice(first), ...peers.slice(0, first)].slice(0, OTHERS_AT_ONCE);
}
