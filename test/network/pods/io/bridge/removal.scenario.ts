/** Removes one of two instances on a host. Run by removal.test.ts in its own network namespace; prints JSON. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../../../../src/base/errors.ts';
import {
  readHostNetworkRecord,
  recordHostNetwork,
  removeHostNetwork,
} from '../../../../../src/network/pods/io/index.ts';

const run = (file: string, ...args: string[]): string => execFileSync(file, args, { encoding: 'utf8' });
const state = mkdtempSync(join(tmpdir(), 'he-removal-'));
const clusterCidrs = ['10.128.0.0/14'];
const of = (bridge: string, table: string, protocol: number) => ({
  links: [bridge, `${bridge}-dns`],
  tables: [table, `${table}-pods`],
  routeProtocols: [protocol],
  clusterCidrs,
});

function make(bridge: string, table: string, protocol: number, net: string): void {
  run('ip', 'link', 'add', bridge, 'type', 'bridge');
  run('ip', 'address', 'add', `${net}.1/23`, 'dev', bridge);
  run('ip', 'link', 'set', bridge, 'up');
  run('ip', 'link', 'add', `${bridge}-dns`, 'type', 'bridge');
  run('ip', 'address', 'add', '172.30.0.10/32', 'dev', `${bridge}-dns`);
  for (const name of [table, `${table}-pods`]) run('nft', 'add', 'table', 'ip', name);
  const far = `10.129.${protocol}.0/24`;
  run('ip', 'route', 'add', far, 'via', '192.0.2.9', 'proto', String(protocol), 'metric', '178');
  run('ip', 'route', 'add', 'unreachable', `10.130.${protocol}.0/24`, 'proto', String(protocol), 'metric', '178');
}

const seen = () => ({
  links: (JSON.parse(run('ip', '-j', 'link', 'show')) as { ifname: string }[]).map(({ ifname }) => ifname).sort(),
  addresses: (
    JSON.parse(run('ip', '-j', '-4', 'address', 'show', 'scope', 'global')) as { addr_info?: { local: string }[] }[]
  )
    .flatMap(({ addr_info = [] }) => addr_info.map(({ local }) => local))
    .sort(),
  tables: run('nft', 'list', 'tables').trim().split('\n').sort(),
  routes: (JSON.parse(run('ip', '-j', 'route', 'show')) as { dst: string }[]).map(({ dst }) => dst).sort(),
});

try {
  run('ip', 'link', 'set', 'lo', 'up');
  run('ip', 'link', 'add', 'eth0', 'type', 'bridge');
  run('ip', 'address', 'add', '192.0.2.1/24', 'dev', 'eth0');
  run('ip', 'link', 'set', 'eth0', 'up');
  make('hyper0', 'hyperedge', 178, '10.128.0');
  make('he-abcdef', 'hyperedge-abcdef', 200, '10.128.2');
  run('nft', 'add', 'table', 'inet', 'hyperedge-of-an-administrator');
  run('ip', 'route', 'add', '10.131.0.0/24', 'via', '192.0.2.7');
  const file = join(state, 'host-network.json');
  const absent = await readHostNetworkRecord(file);
  await recordHostNetwork(file, of('he-former', 'hyperedge-former', 201));
  await recordHostNetwork(file, of('he-abcdef', 'hyperedge-abcdef', 200));
  const before = seen();
  const left = await removeHostNetwork((await readHostNetworkRecord(file)) ?? of('', '', 0));
  const after = seen();
  const missing = (name: keyof typeof before): string[] => before[name].filter((each) => !after[name].includes(each));
  const removed = Object.fromEntries((['links', 'tables', 'routes'] as const).map((name) => [name, missing(name)]));
  process.stdout.write(JSON.stringify({ absent: absent === undefined, left, removed, addresses: after.addresses }));
} catch (error) {
  process.stdout.write(JSON.stringify({ error: messageOf(error) }));
} finally {
  rmSync(state, { recursive: true, force: true });
}
