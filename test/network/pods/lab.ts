/**
 * Hosts as network namespaces on two links with a router between them, and pods in separate namespaces. The router has
 * each link as a bridge. A host's end of its cable is `eth0`.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import type { Backend } from '../../../src/network/pods/core/index.ts';

const execute = promisify(execFile);
const child = fileURLToPath(new URL('host.child.ts', import.meta.url));
const ANSWER_MS = 20_000;

export interface HostOptions {
  readonly nodeName: string;
  readonly backend: Backend;
  readonly ipFamilies: ReadonlyArray<'IPv4' | 'IPv6'>;
  readonly clusterCidrs: readonly string[];
  readonly podCidrs: readonly string[];
  readonly stateDirectory: string;
}

interface Message {
  readonly id?: number;
  readonly value?: unknown;
  readonly error?: string;
  readonly addresses?: string[];
  readonly warning?: string;
}

export type HostRequest =
  | { readonly verb: 'forwarding' | 'start' | 'stop' }
  | { readonly verb: 'nodes'; readonly nodes: Node[] }
  | { readonly verb: 'attach'; readonly netns: string };

export const run = async (file: string, ...args: string[]): Promise<string> =>
  (await execute(file, args, { encoding: 'utf8', timeout: 30_000 })).stdout;

/** Waits until `holds` returns a value. */
export async function eventually<T>(what: string, holds: () => Promise<T | undefined>, withinMs = 10_000): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await holds();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export class Host {
  readonly name: string;
  readonly netns: string;
  readonly podCidrs: readonly string[];
  readonly warnings: string[] = [];
  addresses: readonly string[] = [];
  onAddresses: () => void = () => {};
  readonly #options: HostOptions;
  readonly #answers = new Map<number, (message: Message) => void>();
  #process: ChildProcess | undefined;
  #next = 0;

  constructor(netns: string, options: HostOptions) {
    this.name = options.nodeName;
    this.netns = netns;
    this.podCidrs = options.podCidrs;
    this.#options = options;
  }

  get node(): Node {
    return {
      metadata: { name: this.name },
      spec: { podCIDR: this.podCidrs[0] ?? '', podCIDRs: [...this.podCidrs] },
      status: { addresses: this.addresses.map((address) => ({ type: 'InternalIP', address })) },
    };
  }

  async start(): Promise<void> {
    const started = spawn('ip', ['netns', 'exec', this.netns, process.execPath, child, JSON.stringify(this.#options)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#process = started;
    started.on('message', (message: Message) => {
      if (message.warning !== undefined) this.warnings.push(message.warning);
      if (message.addresses !== undefined) {
        this.addresses = message.addresses;
        this.onAddresses();
      }
      if (message.id !== undefined) this.#answers.get(message.id)?.(message);
    });
    await this.ask({ verb: 'start' });
  }

  ask(request: HostRequest): Promise<unknown> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${this.name} does not answer ${request.verb}`)), ANSWER_MS);
      this.#answers.set(id, ({ value, error }) => {
        clearTimeout(timer);
        this.#answers.delete(id);
        if (error === undefined) resolve(value);
        else reject(new Error(error));
      });
      this.#process?.send({ id, request });
    });
  }

  /** Simulates a crash without clean-up. */
  async kill(): Promise<void> {
    const ended = this.#process;
    this.#process = undefined;
    if (ended === undefined || ended.exitCode !== null) return;
    const closed = new Promise((resolve) => ended.once('close', resolve));
    ended.kill('SIGKILL');
    await closed;
  }

  ip(...args: string[]): Promise<string> {
    return run('ip', '-n', this.netns, ...args);
  }
}

export interface LabPod {
  readonly netns: string;
  readonly ips: readonly string[];
}

export class Lab {
  readonly router: string;
  readonly hosts: Host[] = [];
  readonly #prefix: string;
  readonly #namespaces: string[] = [];
  readonly #servers: ChildProcess[] = [];
  readonly #directory: string;

  private constructor(prefix: string, directory: string) {
    this.#prefix = prefix;
    this.#directory = directory;
    this.router = `${prefix}-r`;
  }

  /** Link 1 is 192.0.2.0/24 and 2001:db8:1::/64, link 2 is 198.51.100.0/24 and 2001:db8:2::/64 with `mtu2`. */
  static async create(mtu2: number): Promise<Lab> {
    const lab = new Lab(`hp${randomBytes(3).toString('hex')}`, await mkdtemp(join(tmpdir(), 'he-podnet-')));
    await lab.#namespace(lab.router);
    for (const setting of ['net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1'])
      await run('ip', 'netns', 'exec', lab.router, 'sysctl', '-qw', setting);
    for (const [link, v4, v6] of [
      ['link1', '192.0.2.1/24', '2001:db8:1::1/64'],
      ['link2', '198.51.100.1/24', '2001:db8:2::1/64'],
    ] as const) {
      await run('ip', '-n', lab.router, 'link', 'add', link, 'type', 'bridge');
      await run('ip', '-n', lab.router, 'link', 'set', link, 'up');
      await run('ip', '-n', lab.router, 'addr', 'add', v4, 'dev', link);
      await run('ip', '-n', lab.router, 'addr', 'add', v6, 'dev', link, 'nodad');
    }
    await run('ip', '-n', lab.router, 'link', 'set', 'link2', 'mtu', String(mtu2));
    lab.#mtu2 = mtu2;
    return lab;
  }

  #mtu2 = 1500;
  #published = false;

  async #namespace(name: string): Promise<void> {
    await run('ip', 'netns', 'add', name);
    this.#namespaces.push(name);
    await run('ip', '-n', name, 'link', 'set', 'lo', 'up');
    await run('ip', 'netns', 'exec', name, 'sysctl', '-qw', 'net.ipv6.conf.default.accept_dad=0');
  }

  async plug(
    link: 1 | 2,
    number: number,
    options: Omit<HostOptions, 'nodeName' | 'stateDirectory'>,
    addressFamilies: ReadonlyArray<4 | 6> = [4, 6],
  ): Promise<Host> {
    const name = `h${number}`;
    const netns = `${this.#prefix}-${name}`;
    await this.#namespace(netns);
    await run('ip', '-n', this.router, 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', netns);
    const mtu = link === 1 ? 1500 : this.#mtu2;
    await run('ip', '-n', this.router, 'link', 'set', name, 'mtu', String(mtu), 'master', `link${link}`, 'up');
    await run('ip', '-n', netns, 'link', 'set', 'eth0', 'mtu', String(mtu), 'up');
    const [v4, v6] = link === 1 ? ['192.0.2', '2001:db8:1:'] : ['198.51.100', '2001:db8:2:'];
    if (addressFamilies.includes(4)) {
      await run('ip', '-n', netns, 'addr', 'add', `${v4}.${number}/24`, 'dev', 'eth0');
      await run('ip', '-n', netns, 'route', 'add', 'default', 'via', `${v4}.1`);
    }
    if (addressFamilies.includes(6)) {
      await run('ip', '-n', netns, 'addr', 'add', `${v6}:${number}/64`, 'dev', 'eth0', 'nodad');
      await run('ip', '-n', netns, 'route', 'add', 'default', 'via', `${v6}:1`);
    }
    const host = new Host(netns, { ...options, nodeName: name, stateDirectory: join(this.#directory, name) });
    host.onAddresses = () => {
      if (this.#published) void this.publish().catch(() => {});
    };
    this.hosts.push(host);
    return host;
  }

  /** Sends the Nodes of the API server to every host. */
  async publish(hosts: readonly Host[] = this.hosts): Promise<void> {
    this.#published = true;
    const nodes = hosts.map(({ node }) => node);
    await Promise.all(hosts.map((host) => host.ask({ verb: 'nodes', nodes })));
  }

  /** A pod with a server that answers TCP on port 80 with the client's address, and echoes UDP on port 81. */
  async pod(host: Host, name: string): Promise<LabPod> {
    const netns = `${this.#prefix}-${name}`;
    await this.#namespace(netns);
    const ips = (await host.ask({ verb: 'attach', netns })) as string[];
    const server = spawn('ip', ['netns', 'exec', netns, process.execPath, '-e', SERVER], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#servers.push(server);
    await new Promise((resolve) => server.stdout?.once('data', resolve));
    return { netns, ips };
  }

  /** Client address as seen by the server at `ip`, or the error. */
  async reach(from: string, ip: string): Promise<string> {
    return (await run('ip', 'netns', 'exec', from, process.execPath, '-e', CLIENT, ip)).trim();
  }

  /** Number of bytes of a large transfer that arrive. */
  async transfer(from: string, ip: string, bytes: number): Promise<number> {
    return Number(await run('ip', 'netns', 'exec', from, process.execPath, '-e', TRANSFER, ip, String(bytes)));
  }

  async mtuOf(netns: string, link = 'eth0'): Promise<number> {
    const [found] = JSON.parse(await run('ip', '-n', netns, '-j', 'link', 'show', 'dev', link)) as { mtu: number }[];
    return found?.mtu ?? 0;
  }

  async destroy(): Promise<void> {
    for (const host of this.hosts) await host.kill();
    for (const server of this.#servers) server.kill('SIGKILL');
    for (const name of this.#namespaces.reverse()) await run('ip', 'netns', 'delete', name).catch(() => {});
    await rm(this.#directory, { recursive: true, force: true });
  }
}

const SERVER = `
require('net').createServer((s) => {
  let got = 0;
  s.on('error', () => {});
  s.on('data', (d) => {
    if (got === 0 && d[0] === 63) return s.end(s.remoteAddress.replace('::ffff:', ''));
    got += d.length;
  });
  s.on('end', () => s.end(String(got)));
}).listen(80, '::', () => {
  for (const type of ['udp4', 'udp6']) {
    const socket = require('dgram').createSocket({ type, ipv6Only: type === 'udp6' });
    socket.on('message', (d, from) => socket.send(d, from.port, from.address));
    socket.bind(81);
  }
  console.log('up');
});`;
const CLIENT = `
const s = require('net').connect(80, process.argv[1], () => s.write('?'));
s.setTimeout(2000, () => { console.log('timeout'); process.exit(); });
s.on('data', (d) => console.log(String(d)));
s.on('error', (e) => console.log(e.code));`;
const TRANSFER = `
const s = require('net').connect({ port: 80, host: process.argv[1], allowHalfOpen: true }, () => s.end(Buffer.alloc(Number(process.argv[2]))));
s.setTimeout(10000, () => { console.log(0); process.exit(); });
s.on('data', (d) => console.log(String(d)));
s.on('error', () => console.log(0));`;
