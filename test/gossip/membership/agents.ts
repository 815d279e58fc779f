/** Complete agents on loopback: ring, keyring file and agent socket, each in a separate directory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../../src/base/log.ts';
import { type AgentServer, serveAgent } from '../../../src/gossip/agent/index.ts';
import { promptConfig } from '../../../src/gossip/core/index.ts';
import type { PeerAddress } from '../../../src/gossip/core/port.ts';
import {
  createMemberlistTransport,
  encodeMessage,
  type OpenedKeyring,
  openKeyring,
  serfCodec,
} from '../../../src/gossip/memberlist/index.ts';
import { type Agent, createAgent } from '../../../src/gossip/membership/agent.ts';
import { answerKeyQueries } from '../../../src/gossip/membership/keys.ts';
import { createMembership } from '../../../src/gossip/membership/membership.ts';
import { clock, random } from './ring.ts';

export interface TestAgent extends AsyncDisposable {
  readonly name: string;
  readonly agent: Agent;
  readonly address: PeerAddress;
  readonly socket: string;
  readonly keyring: OpenedKeyring | undefined;
  /** Simulates `kill -9` of the host process, without a leave message. */
  kill(): Promise<void>;
}

export async function directory(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'he-agent-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

export async function startAgent(
  name: string,
  options: {
    readonly directory: string;
    readonly port?: number;
    readonly peers?: readonly string[];
    readonly keys?: string;
  },
): Promise<TestAgent> {
  const keyring = options.keys === undefined ? undefined : await openKeyring(options.keys);
  const stops: (() => Promise<void>)[] = [];
  const agent = createAgent({
    // A killed agent cancels no timers, which must not delay the end of the test.
    clock: { ...clock, setTimer: (delayMs, callback) => unreferenced(setTimeout(callback, delayMs)) },
    random,
    log: silentLog,
    name,
    about: { roles: ['etcd'], addresses: new Map([['etcd', '127.0.0.1:2379']]), version: 'v1' },
    peers: options.peers ?? [],
    resolve: async (peer) => {
      const [ip = '', port] = peer.split(':');
      if (isIP(ip) === 0) throw new Error(`${peer} is no address`);
      return { ip, port: Number(port) };
    },
    keys: keyring?.store,
    serf: serfCodec,
    newMembership: (metadata) => {
      const membership = createMembership({
        clock,
        random,
        log: silentLog,
        encode: encodeMessage,
        serf: serfCodec,
        answerQuery: answerKeyQueries(keyring?.store, serfCodec),
        transport: createMemberlistTransport({
          bind: { ip: '127.0.0.1', port: options.port ?? 0 },
          keyring: keyring?.keyring,
          label: '',
          log: silentLog,
        }),
        config: {
          name,
          metadata,
          gossip: promptConfig,
          metadataIntervalMs: 5000,
          farewellTimeoutMs: 1000,
          exchangeTimeoutMs: 2000,
          queryTimeoutMs: 2000,
        },
      });
      stops.push(() => membership.stop());
      return membership;
    },
  });
  const socket = join(options.directory, `${name}.sock`);
  const server: AgentServer = await serveAgent({ socket, service: agent, log: silentLog });
  const address = await agent.start();
  const kill = async (): Promise<void> => {
    await Promise.all(stops.map((stop) => stop()));
    await server.stop();
  };
  return {
    name,
    agent,
    address,
    socket,
    keyring,
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

function unreferenced(timer: NodeJS.Timeout): { cancel(): void } {
  timer.unref();
  return { cancel: () => clearTimeout(timer) };
}
