import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Service } from '../../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../../src/api/generated/discovery/v1.ts';
import type { NftOptions, NftState, ServicePort } from '../../../../src/network/services/core/index.ts';
import { difference, guardTable, needsReplace } from '../../../../src/network/services/core/nft.ts';
import { NftTable } from '../../../../src/network/services/core/nft-table.ts';
import { emptyNftState, MAP_NAMES } from '../../../../src/network/services/core/table-content.ts';
import { byService, desiredServicePorts, nftState } from './desired.ts';

const root = process.getuid?.() === 0 ? false : 'needs root for a network namespace of its own';
const options: NftOptions = { table: 'he', family: 4, clusterCidr: '10.128.0.0/14', reservedPorts: [] };
const cluster = {
  reservedPorts: [],
  clusterCidrs: ['10.128.0.0/14'],
  serviceCidrs: ['172.30.0.0/16'],
  nodes: [],
  hostAddresses: [],
  nodeName: 'n1',
};
const portsOf = (services: Service[], slices: EndpointSlice[]) =>
  desiredServicePorts({ ...cluster, services, slices }).ports;

/** Simple interpreter of the nft subset that `difference` writes. It rejects the same programs as the kernel. */
class Table {
  chains = new Map<string, string[]>();
  sets = new Map<string, number>();
  maps = new Map<string, Map<string, string>>(MAP_NAMES.map((name) => [name, new Map()]));

  apply(program: string): void {
    for (const line of program.split('\n').filter((each) => each !== '')) {
      const words = line.split(' ');
      const [verb, what, , , name = ''] = words;
      const rest = words.slice(5).join(' ');
      if (verb === 'add' && what === 'set') this.sets.set(name, Number(/timeout (\d+)s/.exec(rest)?.[1]));
      else if (verb === 'delete' && what === 'set') {
        assert.ok(![...this.chains.values()].flat().some((rule) => rule.includes(`@${name} `)), `set ${name} in use`);
        assert.ok(this.sets.delete(name));
      } else if (verb === 'add' && what === 'chain') {
        assert.ok(!this.chains.has(name));
        this.chains.set(name, []);
      } else if (verb === 'flush') {
        assert.ok(this.chains.has(name));
        this.chains.set(name, []);
      } else if (verb === 'delete' && what === 'chain') {
        assert.deepEqual(this.chains.get(name), []);
        this.chains.delete(name);
        for (const target of this.references()) assert.notEqual(target, name, `chain ${name} still referenced`);
      } else if (verb === 'add' && what === 'rule') {
        for (const [, target] of rest.matchAll(/goto (\S+)/g))
          assert.ok(this.chains.has(target?.replace(',', '') ?? ''), `unknown chain ${target}`);
        for (const [, set = ''] of rest.matchAll(/@(\S+)/g))
          assert.ok(this.sets.has(set) || this.maps.has(set), `unknown set ${set}`);
        const rules = this.chains.get(name);
        assert.ok(rules);
        rules.push(rest);
      } else if (what === 'element') {
        const map = this.maps.get(name);
        assert.ok(map, name);
        for (const element of rest.slice(2, -2).split(', ')) {
          const [key = '', verdict = ''] = element.split(' : ');
          if (verb === 'delete') assert.ok(map.delete(key), `no element ${key}`);
          else {
            assert.ok(!map.has(key), `element ${key} exists`);
            map.set(key, verdict);
          }
        }
      } else assert.fail(`unknown line: ${line}`);
    }
  }

  references(): string[] {
    const verdicts = [...this.maps.values()].flatMap((map) => [...map.values()]);
    return [...verdicts, ...[...this.chains.values()].flat()].flatMap((text) =>
      [...text.matchAll(/goto ([\w/.-]+)/g)].map((match) => match[1] ?? ''),
    );
  }

  state(): NftState {
    const chains = new Map([...this.chains].map(([chain, rules]) => [chain, rules.join('\n')]));
    const sets = new Map([...this.sets].map(([set, seconds]) => [set, `${seconds}`]));
    return new Map([['chains', chains], ['sets', sets], ...this.maps]) as NftState;
  }

  /** Possible targets of a lookup in the order of the endpoints. `from` is the source of the connection. */
  targets(map: 'service_ips' | 'service_nodeports', key: string, from: 'outside' | 'pod'): string[] {
    const verdict = this.maps.get(map)?.get(key);
    return verdict === undefined ? [] : this.#follow(verdict.replace('goto ', ''), key, from);
  }

  #follow(chain: string, key: string, from: 'outside' | 'pod'): string[] {
    for (const rule of this.chains.get(chain) ?? assert.fail(`unknown chain ${chain}`)) {
      const [, inside] = /^ip saddr 10\.128\.0\.0\/14 goto (\S+)$/.exec(rule) ?? [];
      if (inside !== undefined && from === 'pod') return this.#follow(inside, key, from);
      const [, keyWords, count, map = ''] = /^dnat ip to (.*) \. numgen random mod (\d+) map @(\S+)$/.exec(rule) ?? [];
      if (count !== undefined) {
        assert.equal(keyWords?.split(' . ').length, key.split(' . ').length);
        return Array.from({ length: Number(count) }, (_, index) => {
          const target = this.maps.get(map)?.get(`${key} . ${index}`);
          return (target ?? assert.fail(`no endpoint ${index} of ${key}`)).replace(' . ', ':');
        });
      }
      const [, address] = /dnat to (\S+)$/.exec(rule) ?? [];
      if (address !== undefined) return [address];
      if (rule.startsWith('numgen'))
        return [...rule.matchAll(/goto ([^\s,]+)/g)].flatMap(([, each = '']) => this.#follow(each, key, from));
    }
    return [];
  }
}

function randomPorts(random: () => number): ServicePort[] {
  const count = Math.floor(random() * 6);
  const ports: ServicePort[] = [];
  for (let index = 0; index < count; index++) {
    const endpoints = Array.from({ length: Math.floor(random() * 4) }, (_, each) => ({
      ip: `10.128.0.${2 + each + Math.floor(random() * 3) * 4}`,
      port: 8080,
      local: random() < 0.5,
      hairpin: random() < 0.5,
    }));
    const unique = [...new Map(endpoints.map((each) => [each.ip, each])).values()];
    ports.push({
      id: `ns/svc${index}:http/TCP`,
      family: 4,
      protocol: 'TCP',
      port: 80,
      clusterIps: [`172.30.0.${index + 1}`],
      externalIps: random() < 0.3 ? [`192.0.2.${index + 1}`] : [],
      restrictedIps: random() < 0.2 ? [`192.0.2.${index + 1}`] : [],
      sourceRanges: random() < 0.5 ? ['198.51.100.0/24'] : [],
      nodePort: random() < 0.4 ? 30_000 + index : 0,
      affinitySeconds: random() < 0.3 ? 60 : 0,
      externalLocal: random() < 0.3,
      endpoints: unique,
      externalEndpoints: unique.filter((each) => each.local || random() < 0.5),
    });
  }
  return ports;
}

function randomSource(): () => number {
  let seed = 12_345;
  return () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
}

test('incremental updates of the nftables table lead to the same state as a new table', () => {
  const random = randomSource();
  const table = new Table();
  let current = emptyNftState;
  for (let round = 0; round < 400; round++) {
    const desired = nftState(randomPorts(random), options);
    assert.equal(needsReplace(current, desired), false);
    table.apply(difference(current, desired, options));
    assert.deepEqual(table.state(), desired);
    assert.equal(difference(desired, desired, options), '');
    current = desired;
  }
});

test('incremental updates of single services lead to the same state as a new table', () => {
  const random = randomSource();
  const [kernel, table] = [new Table(), new NftTable(options)];
  table.program();
  kernel.apply(difference(emptyNftState, table.state(), options));
  const known = new Map<string, readonly ServicePort[]>();
  for (let round = 0; round < 400; round++) {
    const next = byService(randomPorts(random));
    for (const service of [...known.keys(), ...next.keys()]) {
      // Some services do not change, like most of a cluster's.
      if (random() < 0.5) continue;
      const ports = next.get(service) ?? [];
      known.set(service, ports);
      table.set(service, ports);
    }
    kernel.apply(table.program());
    const all = [...known.values()].flat();
    const order = (state: NftState) => [...state].map(([place, content]) => [place, [...content].sort()]);
    assert.deepEqual(order(kernel.state()), order(nftState(all, options)));
    assert.equal(table.program(), '');
    for (const { clusterIps, externalIps, nodePort, endpoints, externalEndpoints, externalLocal } of all) {
      const texts = (list: ServicePort['endpoints']): string[] => list.map(({ ip, port }) => `${ip}:${port}`);
      for (const from of ['outside', 'pod'] as const) {
        // With externalTrafficPolicy Local, pods that connect to an external address or a node port reach all
        // endpoints.
        const external = texts(externalLocal && from === 'pod' && endpoints.length > 0 ? endpoints : externalEndpoints);
        for (const ip of clusterIps)
          assert.deepEqual(kernel.targets('service_ips', `${ip} . tcp . 80`, from), texts(endpoints));
        for (const ip of externalIps)
          assert.deepEqual(kernel.targets('service_ips', `${ip} . tcp . 80`, from), external);
        if (nodePort > 0) assert.deepEqual(kernel.targets('service_nodeports', `tcp . ${nodePort}`, from), external);
      }
    }
  }
});

test('maps an address that two services share to the last service by name until it is deleted', () => {
  const table = new NftTable(options);
  const [port] = randomPorts(() => 0.99).map((each) => ({ ...each, clusterIps: ['172.30.0.1'], affinitySeconds: 0 }));
  assert.ok(port);
  const [one, two] = [
    { ...port, endpoints: port.endpoints.slice(0, 1) },
    { ...port, endpoints: port.endpoints.slice(0, 2) },
  ];
  const chain = (): string | undefined => table.state().get('service_ips')?.get('172.30.0.1 . tcp . 80');
  table.set('ns/b', [two]);
  table.set('ns/a', [one]);
  assert.equal(chain(), 'goto svc-2');
  table.set('ns/b', []);
  assert.equal(chain(), 'goto svc-1');
  table.set('ns/a', []);
  assert.deepEqual(table.state(), new NftTable(options).state());
});

test('replaces the nftables table when the affinity timeout changes or its contents are unknown', () => {
  const table = new NftTable(options);
  const [port] = randomPorts(() => 0.99);
  assert.ok(port);
  const next = (affinitySeconds: number): string => {
    table.set('ns/a', [{ ...port, affinitySeconds }]);
    return table.program();
  };
  assert.match(next(60), /^delete table/m);
  assert.equal(next(60), '');
  assert.match(next(90), /^delete table/m);
  table.reset();
  assert.match(next(90), /^delete table/m);
});

test('one changed endpoint changes only the nftables items of its service', () => {
  const port = (index: number, ips: string[]): ServicePort => ({
    id: `ns/s${index}:/TCP`,
    family: 4,
    protocol: 'TCP',
    port: 80,
    clusterIps: [`172.30.1.${index}`],
    externalIps: [],
    restrictedIps: [],
    sourceRanges: [],
    nodePort: 0,
    affinitySeconds: 0,
    externalLocal: false,
    endpoints: ips.map((ip) => ({ ip, port: 80, local: true, hairpin: true })),
    externalEndpoints: [],
  });
  const many = Array.from({ length: 200 }, (_, index) => port(index + 1, ['10.128.0.9']));
  const before = nftState(many, options);
  const after = nftState([...many.slice(0, -1), port(200, ['10.128.0.9', '10.128.0.10'])], options);
  const lines = difference(before, after, options).split('\n');
  assert.ok(lines.length <= 8, `${lines.length} lines`);
  const moved = nftState([...many.slice(0, -1), port(200, ['10.128.0.10'])], options);
  assert.deepEqual(difference(before, moved, options).split('\n'), [
    'delete element ip he endpoints { 172.30.1.200 . tcp . 80 . 0 }',
    'add element ip he endpoints { 172.30.1.200 . tcp . 80 . 0 : 10.128.0.10 . 80 }',
    'add element ip he hairpin { 10.128.0.10 . 10.128.0.10 }',
  ]);
});

const service = (spec: Service['spec'], extra: Partial<Service> = {}): Service => ({
  metadata: { namespace: 'ns', name: 'web' },
  ...(spec === undefined ? {} : { spec }),
  ...extra,
});
const slice = (endpoints: NonNullable<EndpointSlice['endpoints']>): EndpointSlice => ({
  addressType: 'IPv4',
  metadata: { namespace: 'ns', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  endpoints,
});
const http = { name: 'http', port: 80, protocol: 'TCP' as const };

test('does not forward services that are headless, of type ExternalName, or of another service proxy', () => {
  const slices = [slice([{ addresses: ['10.128.0.2'] }])];
  const cases: Service[] = [
    service({ clusterIP: 'None', ports: [http] }),
    service({ type: 'ExternalName', externalName: 'example.test', clusterIP: '172.30.0.9', ports: [http] }),
    service(
      { clusterIP: '172.30.0.9', ports: [http] },
      { metadata: { namespace: 'ns', name: 'web', labels: { 'service.kubernetes.io/service-proxy-name': 'x' } } },
    ),
  ];
  for (const each of cases) assert.deepEqual(portsOf([each], slices), []);
  assert.equal(portsOf([service({ clusterIP: '172.30.0.9', ports: [http] })], slices).length, 1);
});

test('uses serving terminating endpoints only if no endpoint is ready', () => {
  const terminating = {
    addresses: ['10.128.0.3'],
    conditions: { ready: false, serving: true, terminating: true },
  };
  const web = service({ clusterIP: '172.30.0.9', ports: [http] });
  const ips = (endpoints: NonNullable<EndpointSlice['endpoints']>): string[] =>
    portsOf([web], [slice(endpoints)])[0]?.endpoints.map((each) => each.ip) ?? [];
  assert.deepEqual(ips([terminating, { addresses: ['10.128.0.2'], conditions: { ready: true } }]), ['10.128.0.2']);
  assert.deepEqual(ips([terminating]), ['10.128.0.3']);
  assert.deepEqual(ips([{ addresses: ['10.128.0.4'], conditions: { ready: false } }]), []);
});

test('keeps traffic of policy Local on this node, and writes no invalid address to nftables rules', () => {
  const web = service({
    clusterIP: '172.30.0.9',
    clusterIPs: ['172.30.0.9', 'fd00::1'],
    externalIPs: ['192.0.2.7', '1.2.3.4; flush ruleset'],
    externalTrafficPolicy: 'Local',
    type: 'NodePort',
    ports: [{ ...http, nodePort: 30_080 }],
  });
  const [port] = portsOf(
    [web],
    [
      slice([
        { addresses: ['10.128.0.2'], nodeName: 'n1' },
        { addresses: ['10.128.2.2', 'x; drop'], nodeName: 'n2' },
      ]),
    ],
  );
  assert.deepEqual(
    port?.endpoints.map((each) => each.ip),
    ['10.128.0.2', '10.128.2.2'],
  );
  assert.deepEqual(
    port?.externalEndpoints.map((each) => each.ip),
    ['10.128.0.2'],
  );
  assert.deepEqual(port?.externalIps, ['192.0.2.7']);
  assert.deepEqual(port?.clusterIps, ['172.30.0.9']);
});

test('adds neither a forward nor a reject rule for a cluster IP that the host serves itself', () => {
  const dns = service({ clusterIP: '172.30.0.10', clusterIPs: ['172.30.0.10'], ports: [http] });
  const { ports } = desiredServicePorts({ ...cluster, services: [dns], slices: [], hostServices: ['172.30.0.10'] });
  const maps = (of: readonly ServicePort[]): string[] =>
    [...nftState(of, options)].flatMap(([place, content]) => (place === 'chains' ? [] : [...content.keys()]));
  assert.deepEqual(maps(ports), []);
  assert.deepEqual(maps(portsOf([dns], [])), ['172.30.0.10 . tcp . 80']);
});

test('nft accepts the program for every change of the number of endpoints', { skip: root }, () => {
  const table = new NftTable(options);
  const [port] = randomPorts(() => 0.99).map((each) => ({ ...each, affinitySeconds: 0, externalLocal: false }));
  assert.ok(port);
  const [endpoint] = port.endpoints;
  assert.ok(endpoint);
  const programs = [guardTable(options), table.program()];
  for (const count of [1, 7, 9, 70, 71, 2]) {
    const endpoints = Array.from({ length: count }, (_, index) => ({ ...endpoint, ip: `10.128.1.${index}` }));
    table.set('ns/a', [{ ...port, endpoints }]);
    programs.push(table.program());
  }
  assert.deepEqual(
    programs.slice(2).map((program) => program.includes('delete table')),
    [false, false, true, true, true, false],
  );
  // A network namespace that ends with its only process.
  const apply = programs.map((_, index) => `nft -f "$${index + 1}"`).join(' && ');
  const directory = mkdtempSync(join(tmpdir(), 'he-nft-'));
  try {
    const files = programs.map((program, index) => {
      const file = join(directory, `${index}`);
      writeFileSync(file, program);
      return file;
    });
    execFileSync('unshare', ['--net', 'sh', '-c', apply, 'sh', ...files], { stdio: 'pipe' });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('session affinity of many ports takes little kernel memory', { skip: root }, () => {
  const [first] = randomPorts(() => 0.99);
  assert.ok(first);
  const endpoints = [{ ip: '10.128.0.9', port: 80, local: false, hairpin: false }];
  const ports = Array.from({ length: 300 }, (_, index) => ({
    ...first,
    family: 4 as const,
    clusterIps: ['172.30.0.1'],
    endpoints,
    affinitySeconds: 60,
    id: `ns/s:p${index}/TCP`,
    port: index + 1,
    nodePort: 0,
    externalIps: [],
    restrictedIps: [],
  }));
  const table = new NftTable(options);
  table.set('ns/s', ports);
  const program = table.program();
  assert.equal(program.match(/^add set ip he aff/gm)?.length, 300);
  const script = 'grep Slab: /proc/meminfo; nft -f - || exit 1; grep Slab: /proc/meminfo';
  const shown = execFileSync('unshare', ['--net', 'sh', '-c', script], { input: program, encoding: 'utf8' });
  const [before = 0, after = 0] = [...shown.matchAll(/(\d+) kB/g)].map(([, kilobytes]) => Number(kilobytes));
  // If a set has a size, the kernel allocates 2 MB for it.
  assert.ok(before > 0 && after - before < 200_000, `${after - before} kB`);
});
