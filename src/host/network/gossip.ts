/** Gossip in the host process: opens the keyring, runs the agent and serves its socket. */
import { rm, symlink } from 'node:fs/promises';
import { basename, dirname, relative } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { serveAgent } from '../../gossip/agent/index.ts';
import { edgeConfig } from '../../gossip/core/index.ts';
import {
  createKeyring,
  createMemberlistTransport,
  encodeMessage,
  type OpenedKeyring,
  openKeyring,
  resolvePeer,
  serfCodec,
} from '../../gossip/memberlist/index.ts';
import { type Agent, type AgentDeps, createAgent } from '../../gossip/membership/agent.ts';
import type { AgentMember } from '../../gossip/membership/agent-port.ts';
import { answerKeyQueries } from '../../gossip/membership/keys.ts';
import { createMembership } from '../../gossip/membership/membership.ts';
import type { KeyStore } from '../../gossip/membership/port.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

export interface HostGossip {
  /** Note for the progress output, such as the reason why gossip is disabled. */
  readonly note: string | undefined;
  /**
   * Milliseconds by which this host's clock is ahead of the median clock of the ring; undefined if there is no other
   * member.
   */
  clockOffsetMs(): number | undefined;
  /**
   * Calls `changed` with the API servers of the ring's masters: immediately with the current ones and after each
   * change.
   */
  followMasters(changed: (masters: RingMasters) => void): void;
  /** Calls `changed` with the names of members that the ring has declared dead, after each change. */
  followFailed(changed: (names: ReadonlySet<string>) => void): void;
  /** Calls `changed` immediately and after every change of this host's keyring; undefined if gossip is disabled. */
  readonly followKeys: ((changed: () => void) => void) | undefined;
  /** Replaces the keys of this host. The first key encrypts. */
  adoptKeys(keys: readonly Uint8Array[]): Promise<void>;
  /**
   * Sets more members to join, as `host` or `host:port`, and replaces those of the last call. The agent contacts
   * `others` only while no other member is alive.
   */
  setPeers(peers: readonly string[], others: readonly string[]): void;
  /** Announces a new address of this host. */
  readvertise(ip: string): Promise<void>;
  /** Sends a leave message and stops the agent. Repeated calls wait for the first stop. */
  stop(): Promise<void>;
}

export interface RingMasters {
  /** `host:port` of the API servers of members that have not left the ring. */
  readonly targets: readonly string[];
  /** `host:port` of the API server of the member that has just failed. */
  readonly failed: string | undefined;
}

type GossipSettings = Pick<
  Settings,
  'bootstrapFile' | 'gossip' | 'joined' | 'nodeName' | 'paths' | 'ports' | 'roles' | 'storage'
>;

const METADATA_INTERVAL_MS = 5000;
const FAREWELL_TIMEOUT_MS = 1500;
const EXCHANGE_TIMEOUT_MS = 5000;
const QUERY_TIMEOUT_MS = 2000;

/**
 * Starts gossip. Throws CodedErrors with the file or port and a fix. If the port is in use and the bootstrap file does
 * not configure gossip, gossip is disabled with a note, because a single host does not need it.
 */
export async function startGossip(settings: GossipSettings, log: Log): Promise<HostGossip> {
  const { gossip } = settings;
  const off: HostGossip = {
    note: undefined,
    clockOffsetMs: () => undefined,
    followMasters: () => {},
    followFailed: () => {},
    followKeys: undefined,
    adoptKeys: async () => {},
    setPeers: () => {},
    readvertise: async () => {},
    stop: async () => {},
  };
  if (!gossip.enabled) return off;
  const keyring = await keyringOf(settings);
  if (keyring === undefined) return { ...off, note: `${gossip.keyringFile} does not exist; gossip is disabled` };
  let changed = (): void => {};
  const store = notifying(keyring.store, () => changed());
  const { agent, readvertise } = agentOf(settings, { ...keyring, store }, log);
  try {
    const { ip, port } = await agent.start();
    log.v(2, 'gossip started', { name: settings.nodeName, address: ip, port, join: gossip.join.join(',') });
  } catch (error) {
    if (!(error instanceof CodedError) || error.code !== 'address-in-use') throw error;
    const problem = `port ${gossip.port} for gossip is in use; free it, or set gossip.port in bootstrap.yaml`;
    if (gossip.configured) throw new CodedError('address-in-use', problem, { cause: error });
    log.v(2, 'gossip disabled', { error: messageOf(error) });
    return { ...off, note: `${problem} (or gossip.enabled: false); gossip is disabled` };
  }
  try {
    const server = await serveAgent({ socket: settings.paths.agentSocket, service: agent, log });
    await linkSocket(settings);
    let stopping: Promise<void> | undefined;
    return {
      note: undefined,
      clockOffsetMs: () => agent.clockOffsetMs,
      followMasters: (changed) => followMasters(agent, changed),
      followFailed: (changed) => followFailed(agent, changed),
      followKeys: (listener) => {
        changed = listener;
        listener();
      },
      adoptKeys: (keys) => adoptKeys(keyring.store, keys).then(() => changed()),
      setPeers: (peers, others) => agent.setPeers(peers, others),
      readvertise,
      stop: () => {
        stopping ??= agent.stop().then(() => server.stop());
        return stopping;
      },
    };
  } catch (error) {
    await agent.stop();
    throw error;
  }
}

async function adoptKeys(store: KeyStore, keys: readonly Uint8Array[]): Promise<void> {
  const [first] = keys;
  if (first === undefined) return;
  const isSame = (left: Uint8Array, right: Uint8Array): boolean => Buffer.from(left).equals(right);
  for (const key of keys) await store.install(key);
  await store.use(first);
  for (const old of store.keys()) if (!keys.some((key) => isSame(key, old))) await store.remove(old);
}

function notifying(store: KeyStore, changed: () => void): KeyStore {
  return {
    keys: () => store.keys(),
    install: (key) => store.install(key).then(changed),
    use: (key) => store.use(key).then(changed),
    remove: (key) => store.remove(key).then(changed),
  };
}

/** Opens the keyring or creates it. Returns undefined if this host has joined a cluster without a ring. */
async function keyringOf({ gossip, bootstrapFile, joined }: GossipSettings): Promise<OpenedKeyring | undefined> {
  const found = await openKeyring(gossip.keyringFile);
  if (found !== undefined) return found;
  if (joined && !gossip.configured) return undefined;
  // A new keyring would be useless, because the members to join do not have its key.
  if (gossip.join.length > 0)
    throw new CodedError(
      'bad-config',
      `${bootstrapFile}: gossip.join: ${gossip.keyringFile} does not exist; copy it from a member of the ring, or create one for all members with hyperedge gossip keygen`,
    );
  await createKeyring(gossip.keyringFile);
  const made = await openKeyring(gossip.keyringFile);
  if (made === undefined)
    throw new CodedError('bad-keyring', `${gossip.keyringFile}: deleted right after it was created; start again`);
  return made;
}

function agentOf(
  settings: GossipSettings,
  keyring: OpenedKeyring,
  log: Log,
): { readonly agent: Agent; readvertise(ip: string): Promise<void> } {
  const { gossip, nodeName, ports, roles } = settings;
  let { advertiseAddress } = gossip;
  const at = (port: number): string =>
    advertiseAddress.includes(':') ? `[${advertiseAddress}]:${port}` : `${advertiseAddress}:${port}`;
  const ownStore = roles.has('etcd') && settings.storage === undefined;
  const about = (): AgentDeps['about'] => ({
    roles: [...roles],
    addresses: new Map<string, string>([
      ...(roles.has('master') ? [['api', at(ports.api)] as const] : []),
      ...(ownStore ? [['etcd', at(ports.etcd)] as const, ['peer', at(ports.etcdPeer)] as const] : []),
    ]),
    version: PRODUCT_VERSION,
  });
  const agent = createAgent({
    clock,
    random,
    log,
    name: nodeName,
    about: about(),
    peers: gossip.join,
    resolve: (peer) => resolvePeer(peer, gossip.port, gossip.bindAddress),
    keys: keyring.store,
    serf: serfCodec,
    newMembership: (metadata) =>
      createMembership({
        clock,
        random,
        log,
        encode: encodeMessage,
        serf: serfCodec,
        answerQuery: answerKeyQueries(keyring.store, serfCodec),
        transport: createMemberlistTransport({
          bind: { ip: gossip.bindAddress, port: gossip.port },
          keyring: keyring.keyring,
          label: '',
          log,
        }),
        config: {
          name: nodeName,
          advertiseIp: advertiseAddress,
          metadata,
          gossip: edgeConfig,
          metadataIntervalMs: METADATA_INTERVAL_MS,
          farewellTimeoutMs: FAREWELL_TIMEOUT_MS,
          exchangeTimeoutMs: EXCHANGE_TIMEOUT_MS,
          queryTimeoutMs: QUERY_TIMEOUT_MS,
        },
      }),
  });
  return {
    agent,
    readvertise: async (ip) => {
      if (ip === advertiseAddress) return;
      advertiseAddress = ip;
      await agent.readvertise(about());
    },
  };
}

function followMasters(agent: Agent, changed: (masters: RingMasters) => void): void {
  followMembers(agent, (members, failed) => {
    const targets = [...members.values()]
      .filter(({ roles, state }) => roles.includes('master') && state !== 'left')
      .flatMap(({ addresses }) => addresses['api'] ?? []);
    changed({ targets, failed: failed?.addresses['api'] });
  });
}

/**
 * Reports dead members. While all of several other members appear dead, none is reported, because then this host itself
 * is disconnected.
 */
function followFailed(agent: Agent, changed: (names: ReadonlySet<string>) => void): void {
  followMembers(agent, (members) => {
    const others = [...members.values()].filter(({ self, state }) => !self && state !== 'left');
    const dead = others.filter(({ state }) => state === 'dead').map(({ name }) => name);
    changed(new Set(dead.length > 1 && dead.length === others.length ? [] : dead));
  });
}

type OnMembers = (members: ReadonlyMap<string, AgentMember>, failed: AgentMember | undefined) => void;

function followMembers(agent: Agent, changed: OnMembers): void {
  const members = new Map<string, AgentMember>();
  // The session has the same lifetime as the agent, so it is not closed.
  void agent.open().request('subscribe', {}, (event) => {
    if (event.kind === 'user-event') return;
    if (event.kind === 'members') for (const member of event.members) members.set(member.name, member);
    else if (event.kind === 'forgotten') members.delete(event.member.name);
    else members.set(event.member.name, event.member);
    changed(members, event.kind === 'failed' ? event.member : undefined);
  });
}

/** Creates a link to the agent socket at the path that clients use. */
async function linkSocket({ paths }: GossipSettings): Promise<void> {
  await rm(paths.agentLink, { force: true });
  await symlink(
    `${relative(dirname(paths.agentLink), dirname(paths.agentSocket))}/${basename(paths.agentSocket)}`,
    paths.agentLink,
  );
}
