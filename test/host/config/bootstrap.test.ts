import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootstrapField } from '../../../src/host/config/bootstrap.ts';
import { parseConfig } from '../../../src/wire/strict-yaml.ts';

const HEAD = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n';
const parse = (text: string) => parseConfig(text, '/etc/origin/bootstrap.yaml', bootstrapField);
const refusal = (text: string): string => {
  try {
    parse(text);
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'bad-config');
    const message = (error as Error).message;
    assert.equal(message.split('\n').length, 1, message);
    return message;
  }
  return 'accepted';
};

test('reads a complete bootstrap file into typed values', () => {
  const file = parse(`${HEAD}roles: [etcd]
logLevel: 4
node: {name: edge-1, ip: "fd00::7", labels: {"example.com/rack": a}, maxPods: 30, systemReserved: {cpu: 100m}}
ports: {api: 9443, kubelet: 10251, controllers: 9444, etcd: 3379, etcdPeer: 3380}
network:
  {clusterCIDR: 10.1.0.0/16, serviceCIDR: 10.2.0.0/16, clusterDomain: lab.local, bridge: br0, nftTable: t1,
  proxyMode: userspace}
cgroup: {driver: cgroupfs, root: /lab}
dns: {upstreams: [10.0.0.2, "10.0.0.3:5353"], stubDomains: {corp.example: ["[fd00::1]:53"]}, ttlSeconds: 30}
storage: {endpoints: ["https://10.0.0.5:2379"], caFile: /c, certFile: /d, keyFile: /e}
`);
  assert.deepEqual(file.roles, ['etcd']);
  assert.equal(file.node?.labels?.get('example.com/rack'), 'a');
  assert.equal(file.ports?.api, 9443);
  assert.deepEqual(file.dns?.upstreams, ['10.0.0.2', '10.0.0.3:5353']);
  assert.deepEqual(file.dns?.stubDomains?.get('corp.example'), ['[fd00::1]:53']);
  assert.deepEqual(file.storage?.endpoints, ['https://10.0.0.5:2379']);
});

test('rejects a bootstrap file with one line per error that contains file, line, field and fix', () => {
  const cases: readonly [string, RegExp][] = [
    [
      `${HEAD}rols: [x]\n`,
      /^\/etc\/origin\/bootstrap\.yaml:3: rols: unknown field; known fields are apiVersion, kind, roles/,
    ],
    [
      `${HEAD}runtimeConfig: {storagemigration.k8s.io/v1: true}\n`,
      /:3: runtimeConfig: "storagemigration.k8s.io\/v1" is unknown; give api\/all/,
    ],
    [`${HEAD}roles: master\n`, /:3: roles: must be a list, not "master"$/],
    [`${HEAD}roles: [master, boss]\n`, /:3: roles\[1\]: must be one of master, etcd, node, not "boss"$/],
    [`${HEAD}roles: [master\n`, /bootstrap\.yaml:\d+: /],
    [`${HEAD}roles: [master]\nlogLevel: 2\nroles: [node]\n`, /:5: roles: given twice; remove one$/],
    [`${HEAD}ports:\n  api: 84430\n`, /:4: ports\.api: must be a whole number from 1 to 65535, not 84430$/],
    [`${HEAD}ports:\n  api: "8443"\n`, /:4: ports\.api: must be a whole number/],
    [`${HEAD}ports:\n  kubelt: 1\n`, /:4: ports\.kubelt: unknown field; known fields are api, kubelet/],
    [`${HEAD}node:\n  ip: 10.0.0\n`, /:4: node\.ip: "10\.0\.0" is not accepted; give an IP address$/],
    [`${HEAD}node:\n  name: Edge_1\n`, /:4: node\.name: "Edge_1" is not accepted; use lower-case/],
    [`${HEAD}node:\n  name: "a\\nb"\n`, /:4: node\.name: "a\\nb" is not accepted; use lower-case/],
    [`${HEAD}node:\n  name: ${'A'.repeat(5_000)}\n`, /:4: node\.name: "A{100}…" is not accepted; use lower-case/],
    [`${HEAD}labels:\n  ../etc: x\n`, /:4: labels: "\.\.\/etc": "x" is not accepted; /],
    [`${HEAD}node:\n  labels: {zone: a b}\n`, /:4: node\.labels: "zone": "a b" is not accepted; /],
    [`${HEAD}node:\n  systemReserved: {cpu: x}\n`, /: "cpu": "x" is not accepted; give a quantity such as 500m/],
    [
      `${HEAD}node:\n  systemReserved: {disk: 1Gi}\n`,
      /the resource must be one of cpu, memory, ephemeral-storage, pid/,
    ],
    [
      `${HEAD}fixtures:\n  a.b: {path: /dev/a}\n  A-b: {path: /dev/b}\n`,
      /fixtures "a\.b" and "A-b" have the same device name "a-b"; rename one of them/,
    ],
    [`${HEAD}network:\n  serviceCIDR: 172.30.0.0\n`, /:4: network\.serviceCIDR: .*172\.30\.0\.0\/16$/],
    [
      `${HEAD}dns:\n  upstreams: [ns.example]\n`,
      /:4: dns\.upstreams\[0\]: "ns\.example" is not accepted; give an address/,
    ],
    [`${HEAD}dns:\n  stubDomains: {"a b": [10.0.0.1]}\n`, /dns\.stubDomains: "a b" needs a domain as key/],
    [
      `${HEAD}dns:\n  stubDomains: {corp: []}\n`,
      /dns\.stubDomains: "corp" needs a domain as key and a list of servers/,
    ],
    [`${HEAD}gossip:\n  enabled: yes\n`, /:4: gossip\.enabled: must be true or false, not "yes"$/],
    [`${HEAD}gossip:\n  join: 10.0.0.2\n`, /:4: gossip\.join: must be a list/],
    [
      `${HEAD}gossip:\n  join: ["10.0.0.2:99999"]\n`,
      /:4: gossip\.join\[0\]: "10\.0\.0\.2:99999" is not accepted; give an address such/,
    ],
    [`${HEAD}gossip:\n  join: ["[10.0.0.2]:1"]\n`, /:4: gossip\.join\[0\]: /],
    [
      `${HEAD}gossip:\n  secret: abc\n`,
      /:4: gossip\.secret: unknown field; known fields are enabled, bindAddress, port/,
    ],
    [`${HEAD}gossip:\n  keyringFile: keys.json\n`, /:4: gossip\.keyringFile: .*absolute path$/],
    [`${HEAD}network:\n  bridge: a-name-that-is-too-long\n`, /:4: network\.bridge: .*up to 15/],
    [`${HEAD}logLevel:\n`, /:3: logLevel: has no value/],
    [`${HEAD}node: &n {name: a}\nnetwork: *n\n`, /:4: .*[Aa]lias/],
    [`${HEAD}logLevel: !int 3\n`, /:3: .*[Tt]ag/],
    [`${HEAD}logLevel: !!js/function "x"\n`, /:3: .*[Tt]ag|Unresolved/],
    ['apiVersion: hyperedge.dev/v2\nkind: Bootstrap\n', /:1: apiVersion: must be one of hyperedge\.dev\/v1/],
    ['kind: Bootstrap\n', /apiVersion is missing$/],
    ['- a\n', /:1: must be a mapping of fields, not a list$/],
    ['', /must be a mapping of fields, not nothing$/],
    [`${HEAD}__proto__: {polluted: true}\n`, /:3: __proto__: unknown field/],
    [`${HEAD}node: {labels: {a: {b: c}}}\n`, /:3: node\.labels\.a: must be a string, not a mapping$/],
    [`${HEAD}---\n${HEAD}`, /bootstrap\.yaml:\d+: /],
    ['\u0000', /bootstrap\.yaml:1: /],
  ];
  for (const [text, wanted] of cases) assert.match(refusal(text), wanted, text);
  assert.equal((Object.prototype as { polluted?: boolean }).polluted, undefined);
});

test('rejects a bootstrap file with an alias bomb or too many bytes immediately', () => {
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
    .split('')
    .map((name, index) => `${name}: &${name} [${`*${'abcdefgh'[index]},`.repeat(9)}]`)
    .join('\n')}`;
  const began = performance.now();
  assert.match(refusal(bomb), /[Aa]lias/);
  assert.match(refusal(`a: ${'x'.repeat(2_000_000)}`), /larger than/);
  assert.ok(performance.now() - began < 5000);
});

test('treats keys such as __proto__ in dictionaries as plain data', () => {
  const file = parse(`${HEAD}node: {runtimeHandlers: {__proto__: /x}}\n`);
  assert.equal(file.node?.runtimeHandlers?.get('__proto__'), '/x');
});
