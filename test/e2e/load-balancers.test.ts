/** Services of type LoadBalancer on one host: addresses of a pool and of the node, used by a client on the link. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Node, Pod, Service } from '../../src/api/generated/core/v1.ts';
import { type Appliance, eventually } from './harness.ts';
import { importHelloImage } from './images.ts';
import { Lan } from './lan.ts';
import { shell } from './pods/lab.ts';

const POOL = 'serviceLoadBalancer: {addresses: [10.88.0.240-10.88.0.241], interface: eth0}\n';
const SERVER = 'echo $(hostname) > /tmp/index.html; exec busybox httpd -f -p 8080 -h /tmp';

describe('load balancers', { timeout: 240_000 }, () => {
  let lan: Lan;
  let host: Appliance;
  let client: Appliance;
  let scratch: string;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'he-lb-'));
    lan = await Lan.create();
    host = await lan.add({ name: 'lb-one', address: '10.88.0.1', config: POOL });
    client = await lan.add({ name: 'lb-client', address: '10.88.0.100' });
    await importHelloImage(host, scratch);
    await host.start();
  });

  after(async () => {
    await lan?.stop();
    await rm(scratch, { recursive: true, force: true });
  });

  const get = async <T>(...args: string[]): Promise<T> =>
    JSON.parse(await host.must(['get', ...args, '-o', 'json'])) as T;
  const apply = (...items: object[]): Promise<string> =>
    host.must(['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
  const service = (name: string, spec: Service['spec']): Service => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { type: 'LoadBalancer', selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }], ...spec },
  });
  const addressOf = (name: string): Promise<string> =>
    eventually(`address of ${name}`, 15_000, async () => {
      const { status } = await get<Service>('service', name);
      const [first] = status?.loadBalancer?.ingress ?? [];
      if (first !== undefined) assert.equal((first as { ipMode?: string }).ipMode, 'VIP');
      return first?.ip;
    });
  const fetched = (address: string): Promise<string> =>
    eventually(`answer of ${address}`, 15_000, async () => {
      const ran = await client.inside('curl', ['-s', '-m', '2', `http://${address}/index.html`]);
      // Until the rules of an address are active, the router of the host responds at the address.
      return ran.code === 0 && !ran.stdout.includes('No route') ? ran.stdout.trim() : undefined;
    });
  const event = (reason: string, name: string, text: RegExp): Promise<true> =>
    eventually(`event ${reason}`, 15_000, async () => {
      const { items } = await get<{ items: { reason: string; message: string; involvedObject: { name: string } }[] }>(
        'events',
      );
      return items.some(
        (each) => each.reason === reason && each.involvedObject.name === name && text.test(each.message),
      )
        ? true
        : undefined;
    });

  test('assigns an address of the pool that a client on the link can reach', async () => {
    const web: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: { terminationGracePeriodSeconds: 0, containers: [shell(SERVER)] },
    };
    await apply(
      web,
      service('first', { allocateLoadBalancerNodePorts: false }),
      service('second', { loadBalancerIP: '10.88.0.241', externalTrafficPolicy: 'Local' }),
    );
    await host.must(['wait', '--for=condition=Ready', 'pod/web', '--timeout=60s']);
    assert.equal(await addressOf('first'), '10.88.0.240');
    assert.equal(await addressOf('second'), '10.88.0.241');
    assert.equal((await get<Service>('service', 'first')).spec?.ports?.[0]?.nodePort, undefined);
    assert.equal(await fetched('10.88.0.240'), 'web');
    assert.equal(await fetched('10.88.0.241'), 'web');
    await event('EnsuredLoadBalancer', 'first', /^Ensured load balancer$/);
    const { stdout } = await client.inside('ip', ['neigh', 'show', '10.88.0.240']);
    assert.match(stdout, /lladdr/);
    const lease = await host.must([
      'get',
      'lease',
      '-n',
      'kube-system',
      'hyperedge-service-lb',
      '-o',
      'jsonpath={.spec.holderIdentity}',
    ]);
    assert.equal(lease, 'lb-one');
    assert.deepEqual(
      (await get<{ items: Node[] }>('nodes')).items[0]?.status?.addresses?.filter(({ type }) => type === 'InternalIP'),
      [{ type: 'InternalIP', address: '10.88.0.1' }],
    );
  });

  test('reports an exhausted pool in an event and reuses the address of a deleted service', async () => {
    await apply(service('third', {}), service('other', { loadBalancerClass: 'example.com/other' }));
    await event('SyncLoadBalancerFailed', 'third', /has no free IPv4 address/);
    await host.must(['delete', 'service', 'first']);
    assert.equal(await addressOf('third'), '10.88.0.240');
    assert.equal(await fetched('10.88.0.240'), 'web');
    assert.deepEqual((await get<Service>('service', 'other')).status?.loadBalancer, {});
    await host.must(['delete', 'service', 'third', 'second']);
    await eventually('the addresses are removed from the link', 15_000, async () => {
      const { stdout } = await host.inside('ip', ['-o', 'addr', 'show', 'dev', 'eth0']);
      return stdout.includes('10.88.0.24') ? undefined : true;
    });
  });

  test('resources that a client patches into the capacity become allocatable to pods', async () => {
    const patch = [{ op: 'add', path: '/status/capacity/example.com~1dongle', value: '2' }];
    await host.must(['patch', 'node', 'lb-one', '--subresource=status', '--type=json', '-p', JSON.stringify(patch)]);
    const allocatable = async (): Promise<string | undefined> =>
      (await get<Node>('node', 'lb-one')).status?.allocatable?.['example.com/dongle'];
    await eventually('allocatable', 15_000, async () => ((await allocatable()) === '2' ? true : undefined));
    const limits = { 'example.com/dongle': '2' };
    await apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'dongles' },
      spec: { terminationGracePeriodSeconds: 0, containers: [shell('sleep 1000', { resources: { limits } })] },
    });
    await host.must(['wait', '--for=condition=Ready', 'pod/dongles', '--timeout=60s']);
    const remove = [{ op: 'remove', path: '/status/capacity/example.com~1dongle' }];
    await host.must(['patch', 'node', 'lb-one', '--subresource=status', '--type=json', '-p', JSON.stringify(remove)]);
    await eventually('no longer allocatable', 15_000, async () =>
      (await allocatable()) === undefined ? true : undefined,
    );
  });

  test('publishes the API server in a lease', async () => {
    const names = await host.must([
      'get',
      'leases',
      '-n',
      'kube-system',
      '-l',
      'apiserver.kubernetes.io/identity=kube-apiserver',
      '-o',
      'name',
    ]);
    assert.match(names, /^lease\.coordination\.k8s\.io\/apiserver-[0-9a-f]{26}\n$/);
  });
});
