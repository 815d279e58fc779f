/** The part of an API server that kubectl needs for exec, attach and port-forward, over real TLS. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { silentLog } from '../../../../src/base/log.ts';
import type { Clock } from '../../../../src/base/time/clock.ts';
import { createStreamingServer } from '../../../../src/kubelet/io/streaming/server.ts';
import type { AttachOptions } from '../../../../src/runtime/port.ts';
import { createAuthority } from '../../../client/certificates.ts';
import { openSocket, type SpawnedProcess, spawnProcess } from './processes.ts';

export const realClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

export interface PodServer {
  readonly url: string;
  readonly port: number;
  readonly processes: SpawnedProcess[];
  /** `spdy` or `websocket` with its subprotocol, in the order of requests. */
  readonly upgrades: string[];
  stop(): Promise<void>;
}

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'default', uid: 'u' },
  spec: { containers: [{ name: 'main', image: 'i', stdin: true, ports: [{ containerPort: 80 }] }] },
  status: { phase: 'Running' },
};

const ANSWERS: Readonly<Record<string, object>> = {
  '/version': { major: '1', minor: '32', gitVersion: 'v1.32.0' },
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': {
    kind: 'APIResourceList',
    groupVersion: 'v1',
    resources: [{ name: 'pods', singularName: '', namespaced: true, kind: 'Pod', verbs: ['get', 'list'] }],
  },
  '/api/v1/namespaces/default/pods/p': POD,
};

export async function startPodServer(): Promise<PodServer> {
  const authority = createAuthority('streaming test');
  const server = createServer(authority.issue('127.0.0.1', { server: true }), (request, response) => {
    const answer = ANSWERS[(request.url ?? '').split('?')[0] ?? ''];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify(answer ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }),
    );
  });
  const streaming = createStreamingServer({ clock: realClock, log: silentLog });
  const processes: SpawnedProcess[] = [];
  const upgrades: string[] = [];
  server.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url ?? '', 'https://pod');
    upgrades.push(`${request.headers.upgrade} ${request.headers['sec-websocket-protocol'] ?? ''}`.trim().toLowerCase());
    const flag = (name: string): boolean => ['true', '1'].includes(url.searchParams.get(name) ?? '');
    if (url.pathname.endsWith('/portforward')) {
      void streaming.handlePortForward(request, socket, head, openSocket);
      return;
    }
    const wanted = { stdin: flag('stdin'), stdout: flag('stdout'), stderr: flag('stderr'), tty: flag('tty') };
    void streaming.handleRemoteCommand(request, socket, head, wanted, (streams: AttachOptions) => {
      const command = url.searchParams.getAll('command');
      if (command[0] === 'missing') return Promise.reject(new Error('exec: "missing": not found'));
      const process = spawnProcess(command, streams);
      processes.push(process);
      return Promise.resolve(process);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}`,
    port,
    processes,
    upgrades,
    stop: async () => {
      await streaming.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
