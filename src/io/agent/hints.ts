/** Gossip for the store's process, over `agent.sock`; there when the host process is, and back by itself when that comes back. */
import type { Clock, Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { GossipFacts, GossipHints, GossipMember } from '../../components/etcd/gossip-port.ts';
import type { AgentEvent, AgentMember, StoreFacts } from '../../components/membership/agent-port.ts';
import { AgentConnection } from './client.ts';

export interface GossipHintsOptions {
  readonly socket: string;
  readonly clock: Clock;
  readonly log: Log;
  /** A leader heard from within this time counts as heard. Longer than a few heartbeats, shorter than an election. */
  readonly heardWithinMs?: number;
}

const HEARD_WITHIN_MS = 500;
const PUBLISH_INTERVAL_MS = 1000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2000;
/** When the host process is slow to read the hints. */
const RETRY_MS = 50;
const FAREWELL_MS = 500;
/** A host process that does not read is sent nothing more. */
const MAX_UNSENT_BYTES = 64 * 1024;

interface Known {
  readonly member: AgentMember;
  readonly atMs: number;
}

/** Begins to connect at once. */
export function createGossipHints(options: GossipHintsOptions): GossipHints {
  const { socket, clock, log, heardWithinMs = HEARD_WITHIN_MS } = options;
  const listeners = new Set<(members: readonly GossipMember[]) => void>();
  const ring = new Map<string, Known>();
  let connection: AgentConnection | undefined;
  let retry: Timer | undefined;
  let retryMs = FIRST_RETRY_MS;
  let closed = false;
  let latest: { readonly facts: GossipFacts; readonly heardAtMs: number } | undefined;
  let sent: StoreFacts | undefined;
  let sentMs = Number.NEGATIVE_INFINITY;
  let next: Timer | undefined;

  const connect = async (): Promise<void> => {
    try {
      const opened = await AgentConnection.open(socket, { events: take, closed: lost });
      opened.unref();
      if (closed) {
        opened.close();
        return;
      }
      connection = opened;
      await opened.ask('subscribe');
      retryMs = FIRST_RETRY_MS;
      log.v(2, 'gossip is there', { socket });
      tell();
    } catch (error) {
      log.v(4, 'no gossip', { error: messageOf(error) });
      if (connection === undefined) again();
      else connection.close();
    }
  };

  const again = (): void => {
    if (closed) return;
    retry = clock.setTimer(retryMs, () => void connect());
    retryMs = Math.min(LAST_RETRY_MS, retryMs * 2);
  };

  const lost = (): void => {
    if (connection === undefined) return;
    connection = undefined;
    sent = undefined;
    ring.clear();
    if (closed) return;
    log.v(2, 'gossip is gone; the store goes on without it', { socket });
    emit();
    again();
  };

  const take = (events: readonly unknown[]): void => {
    const atMs = clock.monotonicMs();
    for (const event of events as readonly AgentEvent[]) {
      if (event.kind === 'members') {
        ring.clear();
        for (const member of event.members) ring.set(member.name, { member, atMs });
      } else if (event.kind === 'forgotten') ring.delete(event.member.name);
      else if (event.kind !== 'user-event') ring.set(event.member.name, { member: event.member, atMs });
    }
    emit();
  };

  const emit = (): void => {
    if (listeners.size === 0) return;
    const members = storesOf(ring.values(), clock.monotonicMs(), heardWithinMs);
    for (const listener of listeners) listener(members);
  };

  /** Tells what is new, now or when its time has come. */
  const tell = (): void => {
    next?.cancel();
    if (latest === undefined || connection === undefined || closed) return;
    const nowMs = clock.monotonicMs();
    const { facts, heardAtMs } = latest;
    const silentInMs = heardAtMs + heardWithinMs - nowMs;
    const heard = facts.leader !== undefined && silentInMs > 0;
    const current: StoreFacts = {
      memberId: facts.memberId,
      ...(heard && facts.leader !== undefined ? { leader: facts.leader } : {}),
      appliedIndex: facts.appliedIndex,
      fsyncMs: facts.fsyncMs,
    };
    const change = changeOf(sent, current);
    const dueInMs = change === 'urgent' ? 0 : sentMs + PUBLISH_INTERVAL_MS - nowMs;
    const due = change !== 'none' && dueInMs <= 0 && connection.unsent < MAX_UNSENT_BYTES;
    if (due) {
      sent = current;
      sentMs = nowMs;
      connection.ask('publish', current).catch((error: unknown) => log.v(2, 'gossip', { error: messageOf(error) }));
    }
    const waits = heard ? [silentInMs] : [];
    if (change !== 'none' && !due) waits.push(Math.max(dueInMs, RETRY_MS));
    if (waits.length > 0) next = clock.setTimer(Math.max(1, Math.ceil(Math.min(...waits))), tell);
  };

  void connect();
  return {
    subscribe(listener) {
      listeners.add(listener);
      if (ring.size > 0) listener(storesOf(ring.values(), clock.monotonicMs(), heardWithinMs));
      return () => listeners.delete(listener);
    },
    publish(facts) {
      latest = { facts, heardAtMs: clock.monotonicMs() - facts.leaderHeardAgoMs };
      tell();
    },
    async close() {
      closed = true;
      retry?.cancel();
      next?.cancel();
      const open = connection;
      if (open === undefined) return;
      let limit: Timer | undefined;
      const late = new Promise<void>((resolve) => {
        limit = clock.setTimer(FAREWELL_MS, resolve);
      });
      await Promise.race([open.ask('retract').catch(() => {}), late]);
      limit?.cancel();
      open.close();
    },
  };
}

function changeOf(before: StoreFacts | undefined, now: StoreFacts): 'urgent' | 'minor' | 'none' {
  if (before === undefined || before.memberId !== now.memberId || before.leader !== now.leader) return 'urgent';
  return before.appliedIndex === now.appliedIndex && before.fsyncMs === now.fsyncMs ? 'none' : 'minor';
}

/** One entry per store; where two hosts claim to have it, the living one is believed. */
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

/** Coarse on purpose: among those that are about equally well the one that is furthest along is to be first. */
function healthOf({ health = 0, fsyncMicros = 0 }: AgentMember): number {
  const slowDisk = Math.max(0, Math.floor(Math.log2(Math.max(1, fsyncMicros) / SLOW_FSYNC_MICROS)) + 1);
  return Math.floor(health / 2) + Math.min(4, slowDisk);
}

/** From here each doubling of a durable write's time counts as one step worse. */
const SLOW_FSYNC_MICROS = 50_000;
