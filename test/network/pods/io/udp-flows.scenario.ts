/**
 * Clients that keep sending UDP from one socket: to a host port whose pod is replaced, also across a restart, and to a
 * service that is added later. Run by links.test.ts in its own network namespace; prints JSON.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toUid } from '../../../../src/base/brand.ts';
import { messageOf } from '../../../../src/base/errors.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { createBridgeNetwork } from '../../../../src/network/pods/io/index.ts';
import { NftTable } from '../../../../src/network/services/core/index.ts';

const state = mkdtempSync(join(tmpdir(), 'he-udp-'));
const options = {
  stateDirectory: join(state, 'network'),
  bridge: 'he-test0',
  clusterCidrs: ['10.128.0.0/14'],
  nftTable: 'he-pods',
  serviceCidrs: ['172.30.0.0/16'],
  reservedPorts: () => [],
  log: silentLog,
};
const run = (file: string, ...args: string[]): string => execFileSync(file, args, { encoding: 'utf8' });
const children: ChildProcess[] = [];
const SERVER = `require('dgram').createSocket('udp4').on('message', function (d, from) { this.send(process.argv[1], from.port, from.address); }).bind(53);`;
/** Prints the name of the responding server whenever it changes. */
const CLIENT = `
const [host, port] = process.argv.slice(1);
const socket = require('dgram').createSocket('udp4');
socket.on('message', (d) => console.log(String(d)));
socket.on('error', () => {});
socket.bind(0, () => setInterval(() => socket.send('?', Number(port), host, () => {}), 50));`;

async function namespace(): Promise<string> {
  const child = spawn('unshare', ['--net', 'sleep', '120'], { stdio: 'ignore' });
  children.push(child);
  await once(child, 'spawn');
  const ours = readlinkSync('/proc/self/ns/net');
  while (readlinkSync(`/proc/${child.pid}/ns/net`) === ours) await new Promise((resolve) => setTimeout(resolve, 5));
  return `/proc/${child.pid}/ns/net`;
}

function inside(netns: string | undefined, script: string, ...args: string[]): ChildProcess {
  const command = [process.execPath, '-e', script, ...args];
  const [file = '', ...rest] = netns === undefined ? command : ['nsenter', `--net=${netns}`, ...command];
  const child = spawn(file, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

const pod = (sandboxId: string, hostPort = 0) => ({
  sandboxId,
  uid: toUid(sandboxId),
  name: sandboxId,
  namespace: 'default',
  portMappings: hostPort === 0 ? [] : [{ protocol: 'UDP' as const, containerPort: 53, hostPort, hostIp: '' }],
});

/** Returns a function that reports the server that currently responds to a client. */
function follow(netns: string | undefined, host: string, port: number): () => Promise<string> {
  let last = '';
  inside(netns, CLIENT, host, String(port))
    .stdout?.setEncoding('utf8')
    .on('data', (text: string) => {
      last = text.trim().split('\n').at(-1) ?? '';
    });
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, 600));
    last = 'none';
    await new Promise((resolve) => setTimeout(resolve, 600));
    return last;
  };
}

const result: Record<string, string> = {};
try {
  run('ip', 'link', 'set', 'lo', 'up');
  const [client, one, two, three] = await Promise.all([namespace(), namespace(), namespace(), namespace()]);
  const network = createBridgeNetwork(options);
  await network.setPodCidrs(['10.128.2.0/24']);
  await network.attach(client, pod('client'));
  // Clients start before any server listens, so that connection tracking has their flows without a translation.
  const fromPod = follow(client, '10.128.2.1', 8053);
  const fromHost = follow(undefined, '10.128.2.1', 8053);
  const toService = follow(client, '172.30.9.9', 53);
  run('ip', 'route', 'add', '172.30.0.0/16', 'dev', 'he-test0');
  result['before'] = `${await fromPod()} ${await fromHost()} ${await toService()}`;
  await network.attach(one, pod('one', 8053));
  inside(one, SERVER, 'one');
  result['first pod'] = `${await fromPod()} ${await fromHost()}`;
  await network.detach('one');
  await network.attach(two, pod('two', 8053));
  inside(two, SERVER, 'two');
  result['second pod'] = `${await fromPod()} ${await fromHost()}`;
  // The pod is replaced while no host process runs.
  const restarted = createBridgeNetwork(options);
  await restarted.setPodCidrs(['10.128.2.0/24']);
  result['after a restart'] = `${await fromPod()} ${await fromHost()}`;
  await restarted.detach('two');
  const { ips } = await restarted.attach(three, pod('three', 8053));
  inside(three, SERVER, 'three');
  result['third pod'] = `${await fromPod()} ${await fromHost()}`;
  const table = new NftTable({ table: 'he', family: 4, clusterCidr: '10.128.0.0/14', reservedPorts: [] });
  const endpoints = [{ ip: ips[0] ?? '', port: 53, local: true, hairpin: true }];
  table.set('default/names', [
    {
      id: 'default/names:53/udp',
      family: 4,
      protocol: 'UDP',
      port: 53,
      clusterIps: ['172.30.9.9'],
      externalIps: [],
      restrictedIps: [],
      sourceRanges: [],
      nodePort: 0,
      affinitySeconds: 0,
      externalLocal: false,
      endpoints,
      externalEndpoints: endpoints,
    },
  ]);
  execFileSync('nft', ['-f', '-'], { input: table.program() });
  result['service'] = await toService();
} catch (error) {
  result['error'] = messageOf(error);
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(state, { recursive: true, force: true });
}
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
