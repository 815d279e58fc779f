/** Several members in this process, each with its own data directory and real connections that can be interrupted. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLog } from '../../src/base/log.ts';
import { createPeerDialer } from '../../src/store/client/peer-dialer.ts';
import { createSqliteLog } from '../../src/store/disk/index.ts';
import type { DialPeer } from '../../src/store/disk/port.ts';
import { createEtcdServer, type EtcdServer, type EtcdServerDeps } from '../../src/store/index.ts';
import { NEWEST_LEVEL } from '../../src/store/replication/maintenance/log-level.ts';
import { createRpcListener } from '../../src/wire/grpc/index.ts';
import { freePort } from '../support/ports.ts';
import { clock, remove, temporaryDirectory } from './harness.ts';

export interface ClusterMember {
  readonly name: string;
  readonly directory: string;
  readonly peerUrl: string;
  readonly endpoint: string;
  readonly fatal: Error[];
  server: EtcdServer | undefined;
  /** Whether all outgoing messages are dropped. */
  mute: boolean;
  start(existing?: boolean, overrides?: Partial<EtcdServerDeps>): Promise<void>;
  stop(): Promise<void>;
}

/** Creates members with a common configuration without starting them. */
export async function cluster(directory: string, count: number): Promise<ClusterMember[]> {
  const members: ClusterMember[] = [];
  for (let i = 0; i < count; i += 1) members.push(await member(directory, `m${i}`, members));
  return members;
}

export async function member(directory: string, name: string, all: readonly ClusterMember[]): Promise<ClusterMember> {
  const [clientPort, peerPort] = [await freePort(), await freePort()];
  const own = join(directory, name);
  await mkdir(own, { recursive: true });
  const created: ClusterMember = {
    name,
    directory: own,
    peerUrl: `http://127.0.0.1:${peerPort}`,
    endpoint: `http://127.0.0.1:${clientPort}`,
    fatal: [],
    server: undefined,
    mute: false,
    start: async (existing = false, overrides = {}) => {
      const known = all.some((each) => each === created) ? all : [...all, created];
      const server = createEtcdServer({
        storage: createSqliteLog({ directory: own, log: silentLog }),
        listener: createRpcListener({ host: '127.0.0.1', port: clientPort, log: silentLog }),
        peers: {
          listener: createRpcListener({ host: '127.0.0.1', port: peerPort, log: silentLog, maxMessageBytes: 16 << 20 }),
          dial: mutable(createPeerDialer({ log: silentLog, clock }), () => created.mute),
        },
        initialCluster: {
          members: known.map((each) => ({ name: each.name, peerUrls: [each.peerUrl] })),
          token: 'test',
          existing,
        },
        timing: { heartbeatMs: 50, electionMs: 500 },
        clock,
        log: silentLog,
        name,
        clientUrls: [created.endpoint],
        peerUrls: [created.peerUrl],
        onFatal: (error) => created.fatal.push(error),
        ...overrides,
      });
      created.server = server;
      await server.start();
    },
    stop: async () => {
      await created.server?.stop();
      created.server = undefined;
    },
  };
  return created;
}

/** Resolves when `members` have agreed that all of them support the features of this build. */
export async function levelReached(members: readonly ClusterMember[]): Promise<void> {
  for (const { endpoint } of members) {
    for (let level = 0; level < NEWEST_LEVEL; ) {
      const text = await (await fetch(`${endpoint}/metrics`)).text();
      level = Number(/^hyperedge_etcd_log_level (\d+)$/m.exec(text)?.[1] ?? 0);
      if (level < NEWEST_LEVEL) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Starts `count` members. The returned function stops them and removes their data. */
export async function runningCluster(
  count: number,
): Promise<{ readonly directory: string; readonly members: ClusterMember[]; remove(): Promise<void> }> {
  const directory = await temporaryDirectory();
  const members = await cluster(directory, count);
  await Promise.all(members.map((each) => each.start()));
  return {
    directory,
    members,
    remove: async () => {
      await Promise.all(members.map((each) => each.stop()));
      await remove(directory);
    },
  };
}

function mutable(dial: DialPeer, isMute: () => boolean): DialPeer {
  return (urls, refused) => {
    const channel = dial(urls, refused);
    return {
      get connected() {
        return channel.connected;
      },
      unary: (path, message, timeoutMs) =>
        isMute() ? Promise.reject(new Error('mute')) : channel.unary(path, message, timeoutMs),
      stream: (path, events) => {
        const stream = channel.stream(path, events);
        return {
          send: (message) => {
            if (!isMute()) stream.send(message);
          },
          cancel: () => stream.cancel(),
        };
      },
      close: () => channel.close(),
    };
  };
}
