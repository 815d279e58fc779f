/**
 * Connects pods with the plug-ins of /usr/lib/cni. Run by plugins.test.ts in its own network and mount namespaces;
 * prints JSON.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toUid } from '../../../../src/base/brand.ts';
import { messageOf } from '../../../../src/base/errors.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { parseNetworkConfig } from '../../../../src/network/pods/cni/config.ts';
import { createCniNetwork } from '../../../../src/network/pods/cni/network.ts';

const directory = mkdtempSync(join(tmpdir(), 'he-cni-'));
const stateDirectory = join(directory, 'state');
const run = (file: string, ...args: string[]): string => execFileSync(file, args, { encoding: 'utf8' });
const bridge = {
  type: 'bridge',
  bridge: 'cni-lab0',
  isGateway: true,
  ipMasq: false,
  capabilities: { ipRanges: true },
  ipam: { type: 'host-local', dataDir: join(directory, 'ipam'), routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }] },
};
const portmap = { type: 'portmap', capabilities: { portMappings: true } };
const networkOf = (...plugins: object[]) => {
  const config = parseNetworkConfig('lab.conflist', JSON.stringify({ name: 'lab', cniVersion: '1.0.0', plugins }));
  return createCniNetwork({
    config,
    stateDirectory,
    pluginDirectories: ['/opt/cni/bin', '/usr/lib/cni'],
    log: silentLog,
  });
};
const pod = (sandboxId: string, hostPort = 0) => ({
  sandboxId,
  uid: toUid(sandboxId),
  name: sandboxId,
  namespace: 'default',
  portMappings: hostPort === 0 ? [] : [{ protocol: 'TCP' as const, containerPort: 80, hostPort, hostIp: '' }],
});
const records = (): string[] => readdirSync(stateDirectory).sort();
const connect = (prefix: string[], host: string, port: number): string => {
  const script = `const s=require('net').connect(${port},'${host}');s.setTimeout(2000,()=>{console.log('timeout');process.exit()});s.on('data',d=>console.log(String(d)));s.on('error',e=>console.log(e.code))`;
  const [file = '', ...args] = [...prefix, process.execPath, '-e', script];
  return run(file, ...args).trim();
};

const result: Record<string, unknown> = {};
const servers: { kill(signal: 'SIGKILL'): void }[] = [];
try {
  // `ip netns` stores its names in a directory that is private to this mount namespace.
  run('mount', '-t', 'tmpfs', 'tmpfs', '/run/netns');
  run('ip', 'link', 'set', 'lo', 'up');
  run('sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.default.accept_dad=0');
  for (const name of ['a', 'b', 'c']) run('ip', 'netns', 'add', name);
  const network = networkOf(bridge, portmap);
  await network.setPodCidrs(['10.99.0.0/24', 'fd99::/64']);
  const a = await network.attach('/run/netns/a', pod('a', 8080));
  const b = await network.attach('/run/netns/b', pod('b'));
  result['ips'] = [a.ips, b.ips];
  result['again'] = (await network.attach('/run/netns/a', pod('a', 8080))).ips;
  const server = spawn('ip', [
    'netns',
    'exec',
    'a',
    process.execPath,
    '-e',
    `require('net').createServer(s=>s.end('ok')).listen(80,'::',()=>console.log('up'))`,
  ]);
  servers.push(server);
  await new Promise((resolve) => server.stdout.once('data', resolve));
  const fromB = ['ip', 'netns', 'exec', 'b'];
  result['answers'] = [connect(fromB, '10.99.0.2', 80), connect(fromB, 'fd99::2', 80), connect([], '10.99.0.2', 80)];
  result['hostPort'] = connect([], '10.99.0.1', 8080);
  result['checked'] = await network.check('b').then(() => 'ok', messageOf);
  run('ip', '-n', 'b', 'addr', 'flush', 'dev', 'eth0');
  result['damaged'] = /^CNI plug-in bridge CHECK: /.test(await network.check('b').then(() => 'ok', messageOf));
  result['noPortmap'] = await networkOf(bridge).attach('/run/netns/c', pod('c', 8081)).catch(messageOf);
  result['failed'] = await networkOf({ ...bridge, capabilities: {} }, { type: 'absent' })
    .attach('/run/netns/c', pod('c'))
    .catch(messageOf);
  // The second plug-in fails, so the result of the first one must be removed.
  const tuning = { type: 'tuning', sysctl: { 'net.absent.setting': '1' } };
  const tuned = networkOf(bridge, tuning);
  result['early'] = await tuned.attach('/run/netns/c', pod('half')).catch(messageOf);
  await tuned.setPodCidrs(['10.99.0.0/24']);
  result['half'] = await tuned
    .attach('/run/netns/c', pod('half'))
    .catch((error: unknown) => messageOf(error).startsWith('CNI plug-in tuning ADD: '));
  result['cleaned'] = records();
  const restarted = networkOf(bridge, portmap);
  await restarted.setPodCidrs(['10.99.0.0/24', 'fd99::/64']);
  await restarted.retain(new Set(['b']));
  result['retained'] = records();
  result['reused'] = (await restarted.attach('/run/netns/c', pod('d'))).ips;
  result['closed'] = connect([], '10.99.0.1', 8080);
  await restarted.detach('b');
  await restarted.detach('d');
  result['left'] = records();
} finally {
  for (const server of servers) server.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
}
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
