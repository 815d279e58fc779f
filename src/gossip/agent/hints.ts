/**
 * Gossip for the process of the store, over `agent.sock`. It is available while the host process runs; the connection
 * is restored automatically.
 */

import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { GossipFacts, GossipHints, GossipMember } from '../../store/gossip-port.ts';
import type { AgentEvent, AgentMember, StoreFacts } from '../membership/agent-port.ts';
import { AgentConnection } from './client.ts';

export interface GossipHintsOptions {
  readonly socket: string;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Time after its last message for which a leader counts as alive. It is longer than a few heartbeats and shorter than
   * an election.
   */
  readonly heardWithinMs?: number;
}

const HEARD_WITHIN_MS = 500;
const PUBLISH_INTERVAL_MS = 1000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2000;
/** Delay before facts are sent again, if the host process has not read the previous ones. */
const RETRY_MS = 50;
const FAREWELL_MS = 500;
/** Number of unread bytes above which no facts are sent to the host process. */
const MAX_UNSENT_BYTES = 64 * 1024;

interface Known {
  readonly member: AgentMember;
  readonly atMs: number;
}

/** Creates the hints and starts to connect to the agent. */
export function createGossipHints(options: GossipHintsOptions): GossipHints {
  return new AgentGossipHints(options);
}

class AgentGossipHints implements GossipHints {
  readonly #socket: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #heardWithinMs: number;
  readonly #listeners = new Set<(members: readonly GossipMember[]) => void>();
  readonly #ring = new Map<string, Known>();
  #connection: AgentConnection | undefined;
  #retry: Timer | undefined;
  #retryMs = FIRST_RETRY_MS;
  #closed = false;
  #latest: { readonly facts: GossipFacts; readonly heardAtMs: number } | undefined;
  #sent: StoreFacts | undefined;
  #sentMs = Number.NEGATIVE_INFINITY;
  #next: Timer | undefined;

  constructor(options: GossipHintsOptions) {
    this.#socket = options.socket;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#heardWithinMs = options.heardWithinMs ?? HEARD_WITHIN_MS;
    void this.#connect();
  }

  // These functions are properties instead of methods: the store copies this object with the spread operator, which
  // omits methods.
  readonly subscribe = (listener: (members: readonly GossipMember[]) => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#ring.size > 0) listener(storesOf(this.#ring.values(), this.#clock.monotonicMs(), this.#heardWithinMs));
    return () => this.#listeners.delete(listener);
  };

  readonly publish = (facts: GossipFacts): void => {
    this.#latest = { facts, heardAtMs: this.#clock.monotonicMs() - facts.leaderHeardAgoMs };
    this.#publish();
  };

  readonly close = async (): Promise<void> => {
    this.#closed = true;
    this.#retry?.cancel();
    this.#next?.cancel();
    const open = this.#connection;
    if (open === undefined) return;
    let limit: Timer | undefined;
    const late = new Promise<void>((resolve) => {
      limit = this.#clock.setTimer(FAREWELL_MS, resolve);
    });
    await Promise.race([
      open.request('retract').catch(ignore('the hint of a host that cannot retract it expires')),
      late,
    ]);
    limit?.cancel();
    open.close();
  };

  async #connect(): Promise<void> {
    try {
      const opened = await AgentConnection.open(this.#socket, { events: this.#take, closed: this.#lost });
      opened.unref();
      if (this.#closed) {
        opened.close();
        return;
      }
      this.#connection = opened;
      await opened.request('subscribe');
      this.#retryMs = FIRST_RETRY_MS;
      this.#log.v(2, 'gossip connected', { socket: this.#socket });
      this.#publish();
    } catch (error) {
      this.#log.v(4, 'gossip not connected', { error: messageOf(error) });
      if (this.#connection === undefined) this.#again();
      else this.#connection.close();
    }
  }

  #again(): void {
    if (this.#closed) return;
    this.#retry = this.#clock.setTimer(this.#retryMs, () => void this.#connect());
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
  }

  readonly #lost = (): void => {
    if (this.#connection === undefined) return;
    this.#connection = undefined;
    this.#sent = undefined;
    this.#ring.clear();
    if (this.#closed) return;
    this.#log.v(2, 'gossip disconnected; the store continues without it', { socket: this.#socket });
    this.#emit();
    this.#again();
  };

  readonly #take = (events: readonly unknown[]): void => {
    const atMs = this.#clock.monotonicMs();
    for (const event of events as readonly AgentEvent[]) {
      if (event.kind === 'members') {
        this.#ring.clear();
        for (const member of event.members) this.#ring.set(member.name, { member, atMs });
      } else if (event.kind === 'forgotten') this.#ring.delete(event.member.name);
      else if (event.kind !== 'user-event') this.#ring.set(event.member.name, { member: event.member, atMs });
    }
    this.#emit();
  };

  #emit(): void {
    if (this.#listeners.size === 0) return;
    const members = storesOf(this.#ring.values(), this.#clock.monotonicMs(), this.#heardWithinMs);
    for (const listener of this.#listeners) listener(members);
  }

  /** Sends changed facts immediately, or sets a timer for the next permitted time. */
  readonly #publish = (): void => {
    this.#next?.cancel();
    if (this.#latest === undefined || this.#connection === undefined || this.#closed) return;
    const nowMs = this.#clock.monotonicMs();
    const { facts, heardAtMs } = this.#latest;
    const silentInMs = heardAtMs + this.#heardWithinMs - nowMs;
    // A leader does not receive messages from itself, but it counts as alive.
    const leads = facts.leader !== undefined && facts.leader === facts.memberId;
    const heard = leads || (facts.leader !== undefined && silentInMs > 0);
    const current: StoreFacts = {
      memberId: facts.memberId,
      ...(heard && facts.leader !== undefined ? { leader: facts.leader } : {}),
      appliedIndex: facts.appliedIndex,
      fsyncMs: facts.fsyncMs,
    };
    const change = changeOf(this.#sent, current);
    const dueInMs = change === 'urgent' ? 0 : this.#sentMs + PUBLISH_INTERVAL_MS - nowMs;
    const due = change !== 'none' && dueInMs <= 0 && this.#connection.unsent < MAX_UNSENT_BYTES;
    if (due) {
      this.#sent = current;
      this.#sentMs = nowMs;
      this.#connection
        .request('publish', current)
        .catch((error: unknown) => this.#log.v(2, 'gossip message not sent', { error: messageOf(error) }));
    }
    const waits = heard && !leads ? [silentInMs] : [];
    if (change !== 'none' && !due) waits.push(Math.max(dueInMs, RETRY_MS));
    if (waits.length > 0) this.#next = this.#clock.setTimer(Math.max(1, Math.ceil(Math.min(...waits))), this.#publish);
  };
}

function changeOf(before: StoreFacts | undefined, now: StoreFacts): 'urgent' | 'minor' | 'none' {
  if (before === undefined || before.memberId !== now.memberId || before.leader !== now.leader) return 'urgent';
  return before.appliedIndex === now.appliedIndex && before.fsyncMs === now.fsyncMs ? 'none' : 'minor';
}

/** One entry per store. If two hosts claim the same store, the host that is alive is used. */
function storesOf(ring: Iterable<Known>, nowMs: number, heardWithinMs: number): GossipMember[] {
  const stores = new Map<string, { readonly rank: number; readonly member: GossipMember }>();
  for (const { member, atMs } of ring) {
    if (member.store === undefined) continue;
    const { memberId, state, leaderSeen } = member.store;
    const present = member.state === 'alive' || member.state === 'suspect';
    const rank = ['left', 'dead', 'suspect', 'alive'].indexOf(member.state);
    if ((stores.get(memberId)?.rank ?? -1) >= rank) continue;
    const seen = member.state === 'alive' && state === 'up' ? leaderSeen : undefined;
    stores.set(memberId, {
      rank,
      member: {
        memberId,
        alive: present && state === 'up',
        confirmedDead: member.state === 'dead' || (present && state === 'down'),
        appliedIndex: member.appliedIndex ?? 0,
        health: healthOf(member),
        ...(seen === undefined
          ? {}
          : { leaderSeen: { leader: seen, agoMs: Math.min(heardWithinMs, Math.round(nowMs - atMs)) } }),
      },
    });
  }
  return Array.from(stores.values(), ({ member }) => member);
}

/**
 * Combined health of a member and its disk; 0 is healthy. The scale is coarse, so that members of about equal health
 * are ordered by the length of their logs.
 */
function healthOf({ health = 0, fsyncMicros = 0 }: AgentMember): number {
  const slowDisk = Math.max(0, Math.floor(Math.log2(Math.max(1, fsyncMicros) / SLOW_FSYNC_MICROS)) + 1);
  return Math.floor(health / 2) + Math.min(4, slowDisk);
}

/** Duration of a durable write from which the disk counts as slow. Each doubling makes the health one step worse. */
const SLOW_FSYNC_MICROS = 50_000;
