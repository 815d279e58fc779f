/**
 * `npm run bench:services [-- SERVICES CHANGES]` measures the rules of SERVICES (10,000) services with two endpoints
 * each in a network namespace of its own, then CHANGES (200) changes of one endpoint: planning and `nft -f`, compared
 * with the same program for a table with only the changed services, in the same run. `nft` ends some time after the
 * rules are active, when the kernel has freed the removed ones. Prints a line for each figure.
 */
import { spawnSync } from 'node:child_process';
import type { Service } from '../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../src/api/generated/discovery/v1.ts';
import { silentLog } from '../../src/base/log.ts';
import { type NftOptions, NftTable, ServicePlanner } from '../../src/network/services/core/index.ts';
import { createNftFilter } from '../../src/network/services/io/netfilter/index.ts';

const [services, changes] = [Number(process.argv[2] ?? 10_000), Number(process.argv[3] ?? 200)];
if (process.env['HE_BENCH_NETNS'] === undefined) {
  const child = spawnSync('unshare', ['--net', process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, HE_BENCH_NETNS: '1' },
  });
  process.exit(child.status ?? 1);
}

const filter = createNftFilter({ serviceRouteLink: 'lo', log: silentLog });
const nft = async (program: string): Promise<number> => {
  const begin = performance.now();
  await filter.apply(program);
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
const cluster = { nodeName: 'n1', serviceCidrs: ['172.30.0.0/16'], clusterCidrs: ['10.128.0.0/14'], reservedPorts: [] };
const changedAt = (round: number): number => (round * 97) % services;
const follow = (planner: ServicePlanner, table: NftTable): string => {
  for (const [service, ports] of planner.changes().changed) table.set(service, ports);
  return table.program();
};

const [planner, table] = [new ServicePlanner(cluster), new NftTable(options)];
const [few, bareTable] = [new ServicePlanner(cluster), new NftTable({ ...options, table: 'he-bare' })];
for (let index = 0; index < services; index++) {
  planner.setService(serviceOf(index));
  planner.setSlice(sliceOf(index, 129));
}
for (let round = 0; round < changes; round++) {
  few.setService(serviceOf(changedAt(round)));
  few.setSlice(sliceOf(changedAt(round), 129));
}
const begin = performance.now();
const all = follow(planner, table);
console.log(`${services} services planned: ${(performance.now() - begin).toFixed(0)} ms`);
await nft(follow(few, bareTable));
console.log(`${services} services, nft -f: ${(await nft(all)).toFixed(0)} ms`);
const figures: Record<'plan' | 'apply' | 'bare', number[]> = { plan: [], apply: [], bare: [] };
for (let round = 0; round < changes; round++) {
  const start = performance.now();
  planner.setSlice(sliceOf(changedAt(round), 130 + Math.floor(round / services)));
  const program = follow(planner, table);
  figures.plan.push(performance.now() - start);
  figures.apply.push(await nft(program));
  await new Promise((resolve) => setTimeout(resolve, 10));
  figures.bare.push(await nft(program.replaceAll('he-bench', 'he-bare')));
  await new Promise((resolve) => setTimeout(resolve, 10));
}
line('one endpoint changed, planned', figures.plan);
line('one endpoint changed, nft -f', figures.apply);
line('the same, without the other services', figures.bare);
