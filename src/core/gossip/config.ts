import type { ProtocolVersions } from './port.ts';

/** How a ring behaves. All durations in milliseconds. Members of one ring should share the timing settings. */
export interface GossipConfig {
  /** One member is probed this often. */
  readonly probeIntervalMs: number;
  /** How long a direct probe may take before others are asked to try; at most half the interval. */
  readonly probeTimeoutMs: number;
  /** How many others are asked to probe a silent member. */
  readonly indirectChecks: number;
  /** Broadcasts waiting are sent this often … */
  readonly gossipIntervalMs: number;
  /** … to this many members … */
  readonly gossipNodes: number;
  /** … each `retransmitMult × log10(members + 1)` times. */
  readonly retransmitMult: number;
  /** The dead hear gossip for this long, so that one declared dead by mistake learns of it and can object. */
  readonly gossipToTheDeadMs: number;
  /** Whole tables are exchanged with a random member this often, less often in rings of more than 32. */
  readonly pushPullIntervalMs: number;
  /**
   * A random dead member is asked for its table this often, so that the halves of a healed partition find each other.
   */
  readonly reconnectIntervalMs: number;
  /** Shortest suspicion is `suspicionMult × max(1, log10(members)) × probeIntervalMs` … */
  readonly suspicionMult: number;
  /** … and the longest this many times that. */
  readonly suspicionMaxMult: number;
  /** One more than the highest local health score. */
  readonly awarenessLimit: number;
  /** A dead member's name may be taken by another address after this; one that left may be taken at once. */
  readonly deadReclaimMs: number;
  /** Dead and departed members are forgotten after this. */
  readonly reapAfterMs: number;
  /** Waking this much later than asked means that it was this member that stood still. */
  readonly stallMs: number;
  /** Room for messages in one datagram, after encryption, checksum and label. */
  readonly packetBytes: number;
  readonly maxMembers: number;
  readonly maxQueuedBroadcasts: number;
  readonly maxQueuedBytes: number;
  /** Probes under way on behalf of others. */
  readonly maxRelays: number;
  readonly versions: ProtocolVersions;
}

/** What memberlist calls `DefaultLANConfig`, so that stock agents and ours agree on when somebody is dead. */
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
  reapAfterMs: 24 * 3_600_000,
  stallMs: 1000,
  packetBytes: 1300,
  maxMembers: 4096,
  maxQueuedBroadcasts: 8192,
  maxQueuedBytes: 2 * 1024 * 1024,
  maxRelays: 256,
  versions: [1, 5, 2, 2, 5, 4],
};

/** Members within one machine or one switch: a failure is settled within about a second. */
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
 * What a host runs with: rings of a few hosts in one site. Half of `lanConfig`'s probe interval, and three of them as
 * the shortest suspicion: a killed member is confirmed dead after two to three seconds, and one that stands still for a
 * second and a half (a slow card, a starved process) still has the time to object.
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
