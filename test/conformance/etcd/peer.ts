/** Starts Debian's etcd as a single member without TLS, with additional flags. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { DEBIAN_ETCD } from '../../store/harness.ts';
import { freePorts } from '../../support/ports.ts';
import { EtcdClient } from './client.ts';

export interface Peer {
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** Resolves when it responds. */
export async function startPeerEtcd(directory: string, more: readonly string[] = []): Promise<Peer> {
  const [client, peer] = await freePorts(2);
  const endpoint = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const flags = {
    name: 'test',
    'data-dir': join(directory, 'peer'),
    'listen-client-urls': endpoint,
    'advertise-client-urls': endpoint,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `test=${peerUrl}`,
    'log-level': 'error',
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const child = spawn(DEBIAN_ETCD, [...args, ...more], { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
  });
  const deadline = performance.now() + 15_000;
  for (;;) {
    const probe = new EtcdClient(endpoint);
    try {
      await probe.range({ key: 'health' });
      break;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    } finally {
      probe.close();
    }
  }
  return {
    endpoint,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
