/**
 * Two pods on a bridge, their traffic, host ports and a restart. Run by links.test.ts in its own network namespace;
 * prints JSON.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toUid } from '../../../../src/base/brand.ts';
import { messageOf } from '../../../../src/base/errors.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { createBridgeNetwork } from '../../../../src/network/pods/io/index.ts';

const state = mkdtempSync(join(tmpdir(), 'he-links-'));
const options = {
  stateDirectory: join(state, 'network'),
  bridge: 'he-test0',
  clusterCidrs: ['10.128.0.0/14'],
  nftTable: 'he-pods',
  serviceCidrs: ['172.30.0.0/16'],
  reservedPorts: () => [
    { protocol: 'TCP' as const, port: 9443 },
    { protocol: 'UDP' as const, port: 7946 },
  ],
  log: silentLog,
};
const run = (file: string, ...args: string[]): string => execFileSync(file, args, { encoding: 'utf8' });
const attempt = (file: string, ...args: string[]): string => {
  try {
    return run(file, ...args).trim();
  } catch (error) {
    return `failed: ${messageOf(error).split('\n').at(-2) ?? ''}`;
  }
};

/** Waits until the child has entered its namespace; before that its path leads to the namespace of this process. */
async function entered(pid: number | undefined): Promise<void> {
  const ours = readlinkSync('/proc/self/ns/net');
  while (readlinkSync(`/proc/${pid}/ns/net`) === ours) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error('not within 10 s');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const result: Record<string, unknown> = {};
const holders: { kill(): void; path: string }[] = [];
try {
  run('ip', 'link', 'set', 'lo', 'up');
  for (let index = 0; index < 3; index++) {
    const child = spawn('unshare', ['--net', 'sleep', '60'], { stdio: 'ignore' });
    await once(child, 'spawn');
    await entered(child.pid);
    holders.push({ kill: () => child.kill('SIGKILL'), path: `/proc/${child.pid}/ns/net` });
  }
  const [a, b, c] = holders.map((each) => each.path) as [string, string, string];
  const network = createBridgeNetwork(options);
  const pod = (sandboxId: string, hostPort = 0, protocol: 'TCP' | 'UDP' = 'TCP', hostIp = '') => ({
    sandboxId,
    uid: toUid(sandboxId),
    name: sandboxId,
    namespace: 'default',
    portMappings: hostPort === 0 ? [] : [{ protocol, containerPort: 80, hostPort, hostIp }],
  });
  result['early'] = await network.attach(a, pod('a')).catch(messageOf);
  await network.setPodCidrs(['10.128.2.0/29']);
  const [first, second] = await Promise.all([network.attach(a, pod('a')), network.attach(b, pod('b', 8080))]);
  result['ips'] = [first.ips, second.ips].flat().sort();
  result['again'] =
    (await network.attach(a, pod('a'))).ips.length === 1 && (await network.attach(a, pod('a'))).ips[0] === first.ips[0];
  result['taken'] = await network.attach(c, pod('c', 8080)).catch(messageOf);
  result['reserved'] = [
    await network.attach(c, pod('c', 9443)).catch(messageOf),
    await network.attach(c, pod('c', 9443, 'TCP', '127.0.0.1')).catch(messageOf),
    await network.attach(c, pod('c', 7946, 'UDP')).catch(messageOf),
  ];
  const read = (host: string, port: number): string =>
    `const s=require('net').connect(${port},'${host}');s.setTimeout(2000,()=>{console.log('timeout');process.exit()});s.on('data',d=>console.log(String(d).replace('::ffff:','')));s.on('error',e=>console.log(e.code))`;
  // A refused connection is a response too: it proves that packets pass in both directions.
  const ping = (path: string, to: string): boolean =>
    attempt('nsenter', `--net=${path}`, process.execPath, '-e', read(to, 9)) === 'ECONNREFUSED';
  result['pings'] = [ping(a, second.ips[0] ?? ''), ping(b, first.ips[0] ?? ''), ping(a, '10.128.2.1')];
  // The server reports the peer's address, which is the pod's own: traffic between pods is not masqueraded.
  const serverScript = `require('net').createServer(s=>s.end(s.remoteAddress)).listen(80)`;
  const server = spawn('nsenter', [`--net=${b}`, process.execPath, '-e', serverScript], { stdio: 'ignore' });
  holders.push({ kill: () => server.kill('SIGKILL'), path: '' });
  await new Promise((resolve) => setTimeout(resolve, 400));
  result['peer'] =
    attempt('nsenter', `--net=${a}`, process.execPath, '-e', read(second.ips[0] ?? '', 80)) === first.ips[0];
  result['hostPort'] = attempt(process.execPath, '-e', read('10.128.2.1', 8080)) === '10.128.2.1';
  result['hostPortOnLoopback'] = attempt(process.execPath, '-e', read('127.0.0.1', 8080));
  const bare = spawn(process.execPath, ['-e', `require('net').createServer(s=>s.end('in')).listen(8081,'127.0.0.1')`]);
  holders.push({ kill: () => bare.kill('SIGKILL'), path: '' });
  while (attempt(process.execPath, '-e', read('127.0.0.1', 8081)) !== 'in');
  attempt('nsenter', `--net=${b}`, 'ip', 'addr', 'flush', 'dev', 'lo');
  attempt('nsenter', `--net=${b}`, 'ip', 'route', 'add', '127.0.0.1/32', 'via', '10.128.2.1');
  attempt('nsenter', `--net=${b}`, 'sysctl', '-w', 'net.ipv4.conf.eth0.route_localnet=1');
  result['loopbackFromPod'] = attempt('nsenter', `--net=${b}`, process.execPath, '-e', read('127.0.0.1', 8081));
  result['hostPortFromPod'] = attempt('nsenter', `--net=${a}`, process.execPath, '-e', read('10.128.2.1', 8080));
  result['hostPortFromItself'] = attempt('nsenter', `--net=${b}`, process.execPath, '-e', read('10.128.2.1', 8080));
  // A record of a version without reserved ports, and its remaining rules in the kernel.
  const record = join(options.stateDirectory, 'b.json');
  writeFileSync(record, readFileSync(record, 'utf8').replace('"hostPort":8080', '"hostPort":9443'));
  run('nft', 'add', 'element', 'ip', 'he-pods', 'host_ports', `{ tcp . 9443 : ${second.ips[0]} . 80 }`);
  const own = spawn(process.execPath, ['-e', `require('net').createServer(s=>s.end('own')).listen(9443)`]);
  holders.push({ kill: () => own.kill('SIGKILL'), path: '' });
  for (const host of ['127.0.0.1', '10.128.2.1'])
    await until(() => attempt(process.execPath, '-e', read(host, 9443)) === 'own');
  result['guarded'] = true;
  const daemon = spawn(process.execPath, ['-e', `require('net').createServer(s=>s.end('daemon')).listen(8022)`]);
  holders.push({ kill: () => daemon.kill('SIGKILL'), path: '' });
  await until(() => attempt(process.execPath, '-e', read('127.0.0.1', 8022)) === 'daemon');
  result['inUse'] = await network.attach(c, pod('c', 8022)).catch(messageOf);
  const restarted = createBridgeNetwork(options);
  await restarted.setPodCidrs(['10.128.2.0/29']);
  const table = run('nft', 'list', 'table', 'ip', 'he-pods');
  result['rebuilt'] = [...table.matchAll(/(\w+ \. \d+) : 10\./g)].map(([, element]) => element);
  // A service address on a link, as the service proxy adds it in userspace mode.
  run('ip', 'addr', 'add', '172.30.0.1/32', 'dev', 'lo');
  await restarted.attach(c, pod('web', 443));
  result['serviceAddress'] = attempt(process.execPath, '-e', read('172.30.0.1', 443));
  await restarted.detach('web');
  result['remembered'] = (await restarted.attach(a, pod('a'))).ips[0] === first.ips[0];
  await restarted.retain(new Set(['b']));
  result['kept'] = ping(b, '10.128.2.1');
  result['released'] = ping(a, '10.128.2.1');
  result['next'] = (await restarted.attach(c, pod('c'))).ips[0] !== first.ips[0];
  const more: string[] = [];
  for (let index = 0; index < 6; index++) {
    const child = spawn('unshare', ['--net', 'sleep', '60'], { stdio: 'ignore' });
    await once(child, 'spawn');
    await entered(child.pid);
    holders.push({ kill: () => child.kill('SIGKILL'), path: '' });
    more.push(await restarted.attach(`/proc/${child.pid}/ns/net`, pod(`x${index}`)).then(() => 'ok', messageOf));
  }
  result['full'] = more.filter((each) => each.includes('no free address')).length;
  // Two records that a new host process cannot read: one is damaged, the other one returns EISDIR.
  const recordOf = (sandboxId: string): string => join(options.stateDirectory, `${sandboxId}.json`);
  const damaged = readFileSync(recordOf('b'), 'utf8').slice(0, 20);
  writeFileSync(recordOf('b'), damaged);
  rmSync(recordOf('c'));
  mkdirSync(recordOf('c'));
  writeFileSync(recordOf('torn'), '{"sandboxId":');
  const errors: string[] = [];
  const third = createBridgeNetwork({ ...options, log: { ...silentLog, error: (text) => void errors.push(text) } });
  await third.setPodCidrs(['10.128.2.0/29']);
  result['unreadable'] = [...new Set(errors)].concat(String(errors.length));
  for (let index = 0; index < 6; index++) await third.detach(`x${index}`);
  const routes = [...run('ip', 'route').matchAll(/^(10\.128\.2\.\d+) dev (ve\S+)/gm)];
  const taken = routes.map(([, address]) => address);
  const fresh: string[] = [];
  for (let index = 0; index < 6; index++) {
    const child = spawn('unshare', ['--net', 'sleep', '60'], { stdio: 'ignore' });
    await once(child, 'spawn');
    await entered(child.pid);
    holders.push({ kill: () => child.kill('SIGKILL'), path: '' });
    const path = `/proc/${child.pid}/ns/net`;
    const ips = await third.attach(path, pod(`y${index}`)).then((given) => given.ips, messageOf);
    if (typeof ips !== 'string') fresh.push(...ips);
  }
  result['reservedForUnreadable'] = [taken.length, fresh.length, fresh.filter((ip) => taken.includes(ip)).length];
  rmSync(recordOf('c'), { recursive: true });
  await third.retain(new Set(['b', ...fresh.keys().map((index) => `y${index}`)]));
  result['keptRecords'] = ['b', 'torn'].map((name) => existsSync(recordOf(name)));
  await third.detach('b');
  result['removedRecord'] = !existsSync(recordOf('b'));
  for (const [, , link = ''] of routes) run('ip', 'link', 'del', link);
  await third.destroy();
  result['left'] = [
    attempt('ip', '-o', 'link').includes('he-test0'),
    run('nft', 'list', 'tables').trim(),
    attempt('ip', '-o', 'link').includes(': ve'),
  ];
} finally {
  for (const holder of holders) holder.kill();
  rmSync(state, { recursive: true, force: true });
}
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
