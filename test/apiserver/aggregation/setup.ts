/** Starts a main server with a front-proxy certificate and an aggregated server behind a service on loopback. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { APIService } from '../../../src/api/kinds/cluster/apiservices/conditions.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { slack } from '../../support/slack.ts';
import { type HarnessOptions, startServer, type TestServer } from '../harness.ts';
import { FlunderServer, GROUP, VERSION } from './flunder-server.ts';

export const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
export const NAME = `${VERSION}.${GROUP}`;

export async function startMain(options: HarnessOptions = {}): Promise<TestServer> {
  const day = lifetimeFrom(Date.now(), 1);
  const ca = await createAuthority('front-proxy', day);
  const pair = await issue(ca, { subject: { commonName: 'aggregator' }, usages: ['client'], validity: day });
  return startServer({
    ...options,
    config: {
      proxyClient: { certificate: pair.certPem, key: pair.keyPem },
      requestHeader: { ca: ca.certPem, allowedNames: ['aggregator'] },
      ...options.config,
    },
  });
}

/** Writes a service with one endpoint to the store, because the API rejects loopback endpoints. */
export async function publish(main: TestServer, name: string, port: number): Promise<void> {
  const spec = { clusterIP: 'None', ports: [{ name: 'https', port: 443 }] };
  const service = await main.call('POST', '/api/v1/namespaces/default/services', {
    body: { metadata: { name }, spec },
  });
  assert.equal(service.code, 201, service.text);
  await writeSlice(main, name, port, ['127.0.0.1']);
}

export async function writeSlice(
  main: TestServer,
  name: string,
  port: number,
  addresses: readonly string[],
): Promise<void> {
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'https', port, protocol: 'TCP' }],
    endpoints: addresses.map((each) => ({ addresses: [each], conditions: { ready: true } })),
  };
  const key = `/registry/endpointslices/default/${name}-1`;
  await main.store.commit({ guards: [], puts: [{ key, value: Buffer.from(JSON.stringify(slice)) }] });
}

export function apiService(caBundle: string, service: string, name = NAME): object {
  const dot = name.indexOf('.');
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name },
    spec: {
      group: name.slice(dot + 1),
      version: name.slice(0, dot),
      groupPriorityMinimum: 2000,
      versionPriority: 10,
      caBundle,
      service: { namespace: 'default', name: service },
    },
  };
}

export async function until<T>(what: string, look: () => Promise<T | undefined>, timeoutMs = 10_000): Promise<T> {
  const deadline = performance.now() + timeoutMs * slack();
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await sleep(15);
  }
}

/** Waits until the Available condition has `reason`. Resolves with its message. */
export function available(main: TestServer, reason: string, name = NAME): Promise<string> {
  return until(`${name} is ${reason}`, async () => {
    const { body } = await main.call<APIService>('GET', `${API_SERVICES}/${name}`);
    const condition = body.status?.conditions?.find((each) => each.type === 'Available');
    return condition?.reason === reason ? (condition.message ?? '') : undefined;
  });
}

export interface Extended {
  readonly main: TestServer;
  readonly flunders: FlunderServer;
  stop(): Promise<void>;
}

/** Starts both servers and waits until the aggregated one is registered, available and discovered. */
export async function startExtended(prepare: (flunders: FlunderServer) => void = () => {}): Promise<Extended> {
  const main = await startMain();
  const flunders = await FlunderServer.start(main, ['flunders.default.svc']);
  prepare(flunders);
  await publish(main, 'flunders', flunders.port);
  const made = await main.call('POST', API_SERVICES, { body: apiService(flunders.caBundle, 'flunders') });
  assert.equal(made.code, 201, made.text);
  await available(main, 'Passed');
  await until('flunders are discovered', async () => ((await freshness(main)) === 'Current' ? true : undefined));
  return {
    main,
    flunders,
    stop: async () => {
      await main.stop();
      await flunders.stop();
    },
  };
}

export const AGGREGATED = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' };

interface Group {
  readonly metadata: { readonly name: string };
  readonly versions: readonly { readonly version: string; readonly freshness: string; readonly resources: object[] }[];
}

export async function groups(main: TestServer): Promise<readonly Group[]> {
  return (await main.call<{ items: Group[] }>('GET', '/apis', { headers: AGGREGATED })).body.items;
}

/** Freshness of the flunders in aggregated discovery. */
export async function freshness(main: TestServer): Promise<string | undefined> {
  return (await groups(main)).find(({ metadata }) => metadata.name === GROUP)?.versions[0]?.freshness;
}
