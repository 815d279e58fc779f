/** Stores as processes (hyperedge etcd and Debian's etcd), and the commands that use them. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { MAIN } from '../support/main-program.ts';
import { freePort } from '../support/ports.ts';

/** Programs that are started from source share a compile cache. */
const ENVIRONMENT = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] };

const running = new Map<ChildProcess, Promise<void>>();

/** Kills the processes that a test has started and not stopped. */
export async function killAll(): Promise<void> {
  for (const child of running.keys()) child.kill('SIGKILL');
  await Promise.all(running.values());
  running.clear();
}

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export function run(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { timeout: 30_000, maxBuffer: 64 << 20, env: { ...ENVIRONMENT, ...env } };
    execFile(file, [...args], options, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err });
    });
  });
}

/** Runs `hyperedge …` with an empty root. */
export function hyperedge(...args: readonly string[]): Promise<Outcome> {
  return run(process.execPath, [MAIN, ...args]);
}

export async function done(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await hyperedge(...args);
  assert.equal(code, 0, `hyperedge ${args.join(' ')}: ${err}${out}`);
  return out;
}

export async function etcdctl(endpoint: string, ...args: readonly string[]): Promise<string> {
  const { code, out, err } = await run('/usr/bin/etcdctl', ['--endpoints', endpoint, ...args], { ETCDCTL_API: '3' });
  assert.equal(code, 0, `etcdctl ${args.join(' ')}: ${err}`);
  return out;
}

export interface Store {
  readonly endpoint: string;
  readonly peer: string;
  /** Output of the process so far. */
  log(): string;
  stop(): Promise<void>;
  kill(): Promise<void>;
}

interface Start {
  readonly name: string;
  readonly data: string;
  readonly args?: readonly string[];
  readonly ports?: readonly [client: number, peer: number];
}

/** Starts hyperedge etcd or Debian's etcd on plain addresses. */
export async function start(whose: 'ours' | 'debian', { name, data, args = [], ports }: Start): Promise<Store> {
  const [clientPort, peerPort] = ports ?? [await freePort(), await freePort()];
  const endpoint = `http://127.0.0.1:${clientPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const flags = [
    ...['--name', name, '--data-dir', data, '--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `${name}=${peer}`],
    ...args,
  ];
  const command = whose === 'ours' ? [process.execPath, MAIN, 'etcd'] : ['/usr/bin/etcd'];
  const { child, exited, log } = await spawnReady(command, flags);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await exited;
    running.delete(child);
  };
  return {
    endpoint,
    peer,
    log,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

/** Starts the stores of hosts below these roots with the configuration that `hyperedge run` has written. */
export function startHosts(
  roots: readonly string[],
): Promise<Array<{ readonly exited: Promise<void>; stop(): Promise<void> }>> {
  return Promise.all(
    roots.map(async (root) => {
      const { child, exited } = await spawnReady([process.execPath, MAIN, 'etcd'], ['--root', root]);
      const stop = async (): Promise<void> => {
        child.kill('SIGTERM');
        await exited;
      };
      return { exited, stop };
    }),
  );
}

async function spawnReady(
  command: readonly string[],
  args: readonly string[],
): Promise<{ readonly child: ChildProcess; readonly exited: Promise<void>; log(): string }> {
  const child = spawn(command[0] as string, [...command.slice(1), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: ENVIRONMENT,
  });
  let log = '';
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  running.set(child, exited);
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk) => {
      log += chunk;
      if (log.includes('ready to serve client requests')) resolve();
    });
    void exited.then(() => reject(new Error(`${command.join(' ')} ended: ${log}`)));
  });
  return { child, exited, log: () => log };
}
