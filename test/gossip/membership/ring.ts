/** Members on loopback with real sockets and real time, for tests. */
import { randomBytes, randomUUID } from 'node:crypto';
import { type Log, silentLog } from '../../../src/base/log.ts';
import type { Clock, RandomSource } from '../../../src/base/time/clock.ts';
import { type GossipConfig, promptConfig } from '../../../src/gossip/core/index.ts';
import { createMemberlistTransport, encodeMessage, Keyring, serfCodec } from '../../../src/gossip/memberlist/index.ts';
import type { Membership, RingMember } from '../../../src/gossip/membership/deps.ts';
import { createMembership } from '../../../src/gossip/membership/membership.ts';

export const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

export const random: RandomSource = {
  random: Math.random,
  uuid: randomUUID,
  bytes: (length) => randomBytes(length),
};

export interface RingOptions {
  readonly key?: Uint8Array;
  readonly label?: string;
  /** Port of the member. Default: a free port. */
  readonly port?: number;
  readonly gossip?: Partial<GossipConfig>;
  readonly log?: Log;
}

export function ringMember(name: string, options: RingOptions = {}): Membership {
  const { key, label = '', port = 0, gossip, log = silentLog } = options;
  return createMembership({
    clock,
    random,
    log,
    encode: encodeMessage,
    serf: serfCodec,
    transport: createMemberlistTransport({
      bind: { ip: '127.0.0.1', port },
      keyring: key === undefined ? undefined : new Keyring([key]),
      label,
      log: silentLog,
    }),
    config: {
      name,
      metadata: { roles: ['etcd', 'api'], addresses: new Map([['peer', '127.0.0.1:2380']]), version: 'v1.36.0' },
      gossip: { ...promptConfig, ...gossip },
      metadataIntervalMs: 100,
      farewellTimeoutMs: 2000,
      exchangeTimeoutMs: 3000,
      queryTimeoutMs: 3000,
    },
  });
}

/** Waits until `ask` returns a value other than undefined or false. */
export async function eventually<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs = 15_000,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`did not happen within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function stateOf(member: Membership, name: string): RingMember['state'] | undefined {
  return member.member(name)?.state;
}
