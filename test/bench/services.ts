/**
 * `npm run bench:services [-- SERVICES CHANGES]`: rules of SERVICES (10,000) services with two endpoints each in a network namespace
 * of its own, then CHANGES (50) times one changed endpoint: planned, and applied by `nft -f`, beside `nft -f` of one element of a
 * set in a table of its own in the same run. Prints a line for each figure.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import type { Service } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import {
  desiredServicePorts,
  difference,
  type NftOptions,
  nftState,
  replaceTable,
} from '../../src/core/ruleset/index.ts';

const [services, changes] = [Number(process.argv[2] ?? 10_000), Number(process.argv[3] ?? 50)];
if (process.env['HE_BENCH_NETNS'] === undefined) {
  const child = spawnSync('unshare', ['--net', process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, HE_BENCH_NETNS: '1' },
  });
  process.exit(child.status ?? 1);
}

const nft = (program: string): number => {
  const begin = performance.now();
  execFileSync('nft', ['-f', '-'], { input: program });
  return performance.now() - begin;
};
const line = (name: string, values: number[]): void => {
  values.sort((left, right) => left - right);
  const at = (part: number): string => (values[Math.floor((values.length - 1) * part)] ?? 0).toFixed(1);
  console.log(`${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
};

const serviceOf = (index: number): Service => ({
  metadata: { namespace: 'ns', name: `s${index}` },
  spec: { clusterIP: `172.30.${index >> 8}.${index & 255}`, ports: [{ name: 'http', port: 80 }] },
});
const sliceOf = (index: number, second: number): EndpointSlice => ({
  addressType: 'IPv4',
  metadata: { namespace: 'ns', name: `s${index}`, labels: { 'kubernetes.io/service-name': `s${index}` } },
  ports: [{ name: 'http', port: 8080 }],
  endpoints: [`10.128.${index >> 8}.${index & 255}`, `10.${second}.${index >> 8}.${index & 255}`].map((ip) => ({
    addresses: [ip],
  })),
});
const options: NftOptions = { table: 'he-bench', family: 4, clusterCidr: '10.128.0.0/14', reservedPorts: [] };
const all = Array.from({ length: services }, (_, index) => serviceOf(index));
const slices = all.map((_, index) => sliceOf(index, 129));
const desired = () =>
  nftState(
    desiredServicePorts({
      ...{ services: all, slices, nodes: [], nodeName: 'n1', hostAddresses: [], reservedPorts: [] },
      ...{ serviceCidrs: ['172.30.0.0/16'], clusterCidrs: ['10.128.0.0/14'] },
    }).ports,
    options,
  );

let current = desired();
console.log(`all rules of ${services} services: ${nft(replaceTable(current, options)).toFixed(0)} ms`);
nft('add table ip he-bare\nadd set ip he-bare s { type ipv4_addr; }\n');
const plan: number[] = [];
const apply: number[] = [];
const bare: number[] = [];
for (let round = 0; round < changes; round++) {
  const index = (round * 97) % services;
  slices[index] = sliceOf(index, 130);
  const begin = performance.now();
  const next = desired();
  const program = difference(current, next, options);
  plan.push(performance.now() - begin);
  apply.push(nft(program));
  bare.push(nft(`add element ip he-bare s { 192.0.2.${round % 256} }\n`));
  current = next;
}
line('one endpoint changed, planned', plan);
line('one endpoint changed, nft -f', apply);
line('bare nft -f of one element', bare);
