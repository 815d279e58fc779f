import type { ProtocolVersions } from './port.ts';

/** Settings of a ring. All durations are in milliseconds. Members of one ring should share the timing settings. */
export interface GossipConfig {
  readonly probeIntervalMs: number;
  /** Timeout of a direct probe, after which indirect probes start. At most half the probe interval. */
  readonly probeTimeoutMs: number;
  /** Number of members that are requested to probe a silent member. */
  readonly indirectChecks: number;
  /** Interval between rounds of gossip, in which queued broadcasts are sent. */
  readonly gossipIntervalMs: number;
  /** Number of members that receive each round of gossip. */
  readonly gossipNodes: number;
  /** Each broadcast is sent `retransmitMult × log10(members + 1)` times. */
  readonly retransmitMult: number;
  /**
   * Time for which dead members still receive gossip, so that a member that was declared dead by mistake can refute it.
   */
  readonly gossipToTheDeadMs: number;
  /** Interval of full table exchanges with a random member. It grows in rings of more than 32 members. */
  readonly pushPullIntervalMs: number;
  /**
   * Interval of table exchanges with a random dead member, so that the two sides of a healed partition find each other.
   */
  readonly reconnectIntervalMs: number;
  /** Factor of the shortest suspicion timeout, which is `suspicionMult × max(1, log10(members)) × probeIntervalMs`. */
  readonly suspicionMult: number;
  /** Factor of the longest suspicion timeout, relative to the shortest one. */
  readonly suspicionMaxMult: number;
  /** Exclusive upper limit of the local health score. */
  readonly awarenessLimit: number;
  /** Time after a member's death at which another address may take its name. */
  readonly deadReclaimMs: number;
  /**
   * Time after a member left at which another address may take its name. Any holder of the key can forge a leave, so a
   * present member needs this time to refute it. It must be longer than several rounds of gossip.
   */
  readonly leftReclaimMs: number;
  /** Time after a death or leave at which the member's row is deleted from the table. */
  readonly reapAfterMs: number;
  /** Delay of a wake-up from which this member counts as paused. */
  readonly stallMs: number;
  /** Bytes for messages in one datagram, after encryption, checksum and label. */
  readonly packetBytes: number;
  readonly maxMembers: number;
  readonly maxQueuedBroadcasts: number;
  readonly maxQueuedBytes: number;
  /** Maximum number of concurrent probes on behalf of other members. */
  readonly maxRelays: number;
  readonly versions: ProtocolVersions;
}

/**
 * memberlist's `DefaultLANConfig`, so that stock agents and this implementation declare a member dead after the same
 * time.
 */
export const lanConfig: GossipConfig = {
  probeIntervalMs: 1000,
  probeTimeoutMs: 500,
  indirectChecks: 3,
  gossipIntervalMs: 200,
  gossipNodes: 3,
  retransmitMult: 4,
  gossipToTheDeadMs: 30_000,
  pushPullIntervalMs: 30_000,
  reconnectIntervalMs: 10_000,
  suspicionMult: 4,
  suspicionMaxMult: 6,
  awarenessLimit: 8,
  deadReclaimMs: 30_000,
  leftReclaimMs: 2_000,
  reapAfterMs: 24 * 3_600_000,
  stallMs: 1000,
  packetBytes: 1300,
  maxMembers: 4096,
  maxQueuedBroadcasts: 8192,
  maxQueuedBytes: 2 * 1024 * 1024,
  maxRelays: 256,
  versions: [1, 5, 2, 2, 5, 4],
};

/** Settings for members within one machine or one switch: a failure is confirmed within about a second. */
export const promptConfig: GossipConfig = {
  ...lanConfig,
  probeIntervalMs: 250,
  probeTimeoutMs: 100,
  gossipIntervalMs: 50,
  pushPullIntervalMs: 10_000,
  reconnectIntervalMs: 3000,
  suspicionMult: 3,
  stallMs: 300,
};

/**
 * Settings of a host, for rings of a few hosts at one site. The probe interval is half of that in `lanConfig`, and the
 * shortest suspicion lasts three intervals. A killed member is declared dead after two to three seconds. A member that
 * is paused for one and a half seconds, for example by a slow disk, still has time to refute the suspicion.
 */
export const edgeConfig: GossipConfig = {
  ...lanConfig,
  probeIntervalMs: 500,
  probeTimeoutMs: 200,
  gossipIntervalMs: 100,
  pushPullIntervalMs: 15_000,
  reconnectIntervalMs: 3000,
  suspicionMult: 3,
  stallMs: 500,
};
