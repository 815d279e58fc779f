/** Several versions of a kind, with strategy None and with a conversion webhook. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { startServer, type TestServer } from '../harness.ts';
import { until } from './crontab.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const NAME = 'hosts.lab.example.com';
const at = (version: string): string => `/apis/lab.example.com/${version}/namespaces/default/hosts`;

type Document = Record<string, unknown> & {
  metadata: Record<string, unknown>;
  spec: Record<string, unknown>;
  status: Record<string, unknown>;
  items: Document[];
  message: string;
};

const v1 = { type: 'object', properties: { spec: { type: 'object', properties: { hostPort: { type: 'string' } } } } };
const v2 = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: { host: { type: 'string' }, port: { type: 'string' }, tier: { type: 'string', default: 'gold' } },
    },
  },
};

function definition(storage: 'v1' | 'v2', conversion: unknown): Record<string, unknown> {
  const version = (name: string, openAPIV3Schema: unknown) => ({
    name,
    served: true,
    storage: name === storage,
    schema: { openAPIV3Schema },
    selectableFields: name === 'v2' ? [{ jsonPath: '.spec.host' }] : [],
  });
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: NAME },
    spec: {
      group: 'lab.example.com',
      scope: 'Namespaced',
      names: { plural: 'hosts', kind: 'Host' },
      versions: [version('v1', v1), version('v2', v2)],
      conversion,
    },
  };
}

const host = (version: string, name: string, spec: unknown) => ({
  apiVersion: `lab.example.com/${version}`,
  kind: 'Host',
  metadata: { name },
  spec,
});

/** Converts between `host:port` and two separate fields. */
function convert(object: Document, version: string): Document {
  const { hostPort, host: name, port } = object.spec;
  const spec =
    version === 'lab.example.com/v2'
      ? { host: String(hostPort).split(':')[0], port: String(hostPort).split(':')[1] }
      : { hostPort: `${String(name)}:${String(port)}` };
  return { ...object, apiVersion: version, spec };
}

const storageHash = (stored: string): string =>
  createHash('sha256').update(stored).digest().subarray(0, 8).toString('base64');

describe('custom resource versions with strategy None', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());
  const call = (method: string, path: string, body?: unknown) =>
    server.call<Document>(method, path, body === undefined ? {} : { body });

  it('custom resource versions with strategy None share their storage, and each uses its own schema', async () => {
    assert.equal((await call('POST', DEFINITIONS, definition('v1', { strategy: 'None' }))).code, 201);
    await until('served', async () => (await call('GET', at('v2'))).code === 200);
    assert.equal((await call('POST', at('v1'), host('v1', 'a', { hostPort: 'x:1' }))).code, 201);
    const shown = await call('GET', `${at('v2')}/a`);
    assert.equal(shown.body['apiVersion'], 'lab.example.com/v2');
    assert.deepEqual(shown.body.spec, {});
    for (const version of ['v1', 'v2']) {
      const { body } = await server.call<{ resources: { storageVersionHash?: string }[] }>(
        'GET',
        `/apis/lab.example.com/${version}`,
      );
      assert.equal(body.resources[0]?.storageVersionHash, storageHash('lab.example.com/v1/Host'));
    }
    const core = await call('GET', '/api/v1');
    // Hashes of kube-apiserver 1.20.
    assert.match(core.text, /"name":"pods",[^}]*"storageVersionHash":"xPOwRZ\+Yhw8="/);
    const groups = await call('GET', '/apis/lab.example.com');
    assert.match(groups.text, /"preferredVersion":\{"groupVersion":"lab\.example\.com\/v2"/);
  });

  it('custom resource versions with strategy None are recorded in storedVersions', async () => {
    const { body } = await call('GET', `${DEFINITIONS}/${NAME}`);
    assert.deepEqual(body.status['storedVersions'], ['v1']);
    const next = definition('v2', { strategy: 'None' });
    const updated = await call('PUT', `${DEFINITIONS}/${NAME}`, { ...body, spec: next['spec'] });
    assert.deepEqual(updated.body.status['storedVersions'], ['v1', 'v2']);
    const only = structuredClone(updated.body);
    only.spec['versions'] = (only.spec['versions'] as unknown[]).slice(1);
    const refused = await call('PUT', `${DEFINITIONS}/${NAME}`, only);
    assert.match(refused.body.message, /status\.storedVersions\[0\]: Invalid value: "v1": missing from spec\.versions/);
    await until('stored as v2', async () => {
      const { body: object } = await call('GET', `${at('v2')}/a`);
      await call('PUT', `${at('v2')}/a`, { ...object, spec: { host: 'h', count: Date.now() } });
      const { kv } = await server.store.get('/registry/lab.example.com/hosts/default/a');
      return Buffer.from(kv?.value ?? [])
        .toString()
        .includes('"lab.example.com/v2"');
    });
    const migrated = await call('PUT', `${DEFINITIONS}/${NAME}/status`, {
      ...(await call('GET', `${DEFINITIONS}/${NAME}`)).body,
      status: { ...(await call('GET', `${DEFINITIONS}/${NAME}`)).body.status, storedVersions: ['v2'] },
    });
    assert.deepEqual(migrated.body.status['storedVersions'], ['v2']);
  });
});

describe('defaults of several versions', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  it('defaults of several versions are applied from the request version on writes, and from the storage version on reads', async () => {
    const text = (value?: string) => ({ type: 'string', ...(value === undefined ? {} : { default: value }) });
    const version = (name: string, properties: object) => ({
      name,
      served: true,
      storage: name === 'v1',
      deprecated: name === 'v1beta1',
      schema: {
        openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', default: {}, properties } } },
      },
    });
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.lab.example.com' },
      spec: {
        group: 'lab.example.com',
        scope: 'Cluster',
        names: { plural: 'things', kind: 'Thing' },
        versions: [
          version('v1', { mine: text('v1'), other: text() }),
          version('v1beta1', { mine: text(), other: text('v1beta1') }),
        ],
      },
    };
    const path = (name: string) => `/apis/lab.example.com/${name}/things`;
    assert.equal((await server.call('POST', DEFINITIONS, { body: definition })).code, 201);
    await until('served', async () => (await server.call('GET', path('v1beta1'))).code === 200);
    const thing = (name: string, of: string) => ({
      body: { apiVersion: `lab.example.com/${of}`, kind: 'Thing', metadata: { name } },
    });
    const made = await server.call<Document>('POST', path('v1beta1'), thing('a', 'v1beta1'));
    assert.deepEqual(made.body.spec, { other: 'v1beta1', mine: 'v1' });
    assert.match(String(made.headers['warning']), /v1beta1 Thing is deprecated; use lab\.example\.com\/v1 Thing/);
    await server.call('POST', path('v1'), thing('b', 'v1'));
    for (const name of ['v1', 'v1beta1'])
      assert.deepEqual((await server.call<Document>('GET', `${path(name)}/b`)).body.spec, { mine: 'v1' });
  });
});

describe('custom resources with a conversion webhook', () => {
  let server: TestServer;
  let webhook: Server;
  const reviews: Document[] = [];
  let answer: (review: Document) => unknown;
  const correct = (review: Document): unknown => {
    const { uid, desiredAPIVersion, objects } = review['request'] as Record<string, unknown> & { objects: Document[] };
    return {
      apiVersion: review['apiVersion'],
      kind: 'ConversionReview',
      response: {
        uid,
        result: { status: 'Success' },
        convertedObjects: objects.map((each) => convert(each, String(desiredAPIVersion))),
      },
    };
  };
  const call = (method: string, path: string, body?: unknown) =>
    server.call<Document>(method, path, body === undefined ? {} : { body });
  const conversion = () => ({
    strategy: 'Webhook',
    webhook: {
      conversionReviewVersions: ['v9', 'v1'],
      clientConfig: {
        url: `https://127.0.0.1:${(webhook.address() as AddressInfo).port}/convert`,
        caBundle: Buffer.from(server.ca.certPem).toString('base64'),
      },
    },
  });

  before(async () => {
    server = await startServer();
    const pair = await issue(server.ca, {
      subject: { commonName: 'converter' },
      usages: ['server'],
      names: { dns: ['localhost'], ips: ['127.0.0.1'] },
      validity: lifetimeFrom(Date.now(), 1),
    });
    webhook = createServer({ cert: pair.certPem, key: pair.keyPem }, (incoming, outgoing) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        if (incoming.method === 'GET') return void outgoing.writeHead(404).end();
        const review = JSON.parse(Buffer.concat(chunks).toString()) as Document;
        reviews.push(review);
        const result = answer(review);
        if (typeof result === 'number') outgoing.writeHead(result, { location: '/elsewhere' }).end();
        else outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result));
      });
    });
    await new Promise<void>((resolve) => webhook.listen(0, '127.0.0.1', resolve));
    answer = correct;
    assert.equal((await call('POST', DEFINITIONS, definition('v1', conversion()))).code, 201);
    await until('served', async () => (await call('GET', at('v2'))).code === 200);
  });
  after(async () => {
    webhook.close();
    await server.stop();
  });

  it('custom resources with a conversion webhook are converted on writes and reads', async () => {
    const created = await call('POST', at('v2'), host('v2', 'a', { host: 'example', port: '80' }));
    assert.equal(created.code, 201, created.text);
    // The default of v2 is not stored but appears on reads.
    assert.deepEqual(created.body.spec, { host: 'example', port: '80' });
    const { kv } = await server.store.get('/registry/lab.example.com/hosts/default/a');
    assert.match(
      Buffer.from(kv?.value ?? []).toString(),
      /^\{"apiVersion":"lab\.example\.com\/v1".*"hostPort":"example:80"/,
    );
    const old = await call('GET', `${at('v1')}/a`);
    assert.deepEqual(old.body.spec, { hostPort: 'example:80' });
    const again = await call('GET', `${at('v2')}/a`);
    assert.deepEqual(again.body.spec, { host: 'example', port: '80' });
    const before = reviews.length;
    assert.deepEqual((await call('GET', `${at('v2')}/a`)).body, again.body);
    assert.equal(reviews.length, before, 'what was converted once is kept');
  });

  it('custom resources with a conversion webhook can be listed, selected, patched and watched in each version', async () => {
    for (const name of ['b', 'c']) await call('POST', at('v1'), host('v1', name, { hostPort: `${name}:1` }));
    const before = reviews.length;
    const list = await call('GET', at('v2'));
    assert.deepEqual(
      list.body.items.map((each) => each.spec['host']),
      ['example', 'b', 'c'],
    );
    assert.equal(reviews.length - before, 1, 'one review for all that were not known');
    const found = await call('GET', `${at('v2')}?fieldSelector=spec.host%3Db`);
    assert.deepEqual(
      found.body.items.map((each) => each.metadata['name']),
      ['b'],
    );
    const patched = await server.call<Document>('PATCH', `${at('v2')}/b`, {
      body: { spec: { port: '2' } },
      type: 'application/merge-patch+json',
    });
    assert.equal(patched.body.spec['port'], '2', patched.text);
    assert.deepEqual((await call('GET', `${at('v1')}/b`)).body.spec, { hostPort: 'b:2' });
    const version = String((await call('GET', at('v2'))).body.metadata['resourceVersion']);
    const lines = watchLines(server, `${at('v2')}?watch=true&resourceVersion=${version}&timeoutSeconds=2`, 2);
    await call('POST', at('v1'), host('v1', 'd', { hostPort: 'd:9' }));
    await call('DELETE', `${at('v1')}/d`);
    const events = (await lines).map((line) => JSON.parse(line) as { type: string; object: Document });
    assert.deepEqual(
      events.map((each) => each.type),
      ['ADDED', 'DELETED'],
    );
    assert.deepEqual(events[0]?.object.spec, { host: 'd', port: '9' });
    assert.equal(events[1]?.object['apiVersion'], 'lab.example.com/v2');
  });

  it('custom resources with a conversion webhook accept only the conversion from the webhook, no other changes', async () => {
    const fails = async (name: string, bad: (review: Document) => unknown, message: RegExp): Promise<void> => {
      await call('POST', at('v1'), host('v1', name, { hostPort: 'z:1' }));
      answer = bad;
      const refused = await call('GET', `${at('v2')}/${name}`);
      answer = correct;
      assert.equal(refused.code, 500, refused.text);
      assert.match(refused.body.message, message);
      assert.equal((await call('GET', `${at('v2')}/${name}`)).code, 200, 'a failure is not kept');
    };
    const altered = (change: (object: Document) => Document) => (review: Document) => {
      const good = correct(review) as { response: { convertedObjects: Document[] } };
      good.response.convertedObjects = good.response.convertedObjects.map(change);
      return good;
    };
    await fails('f1', () => 500, /an error on the server \(""\) has prevented the request from succeeding/);
    await fails('f2', () => 302, /the webhook attempted to redirect the request, which is not permitted/);
    await fails('f3', () => ({}), /not a ConversionReview/);
    await fails(
      'f4',
      (review) => ({ ...(correct(review) as object), response: { uid: 'x', result: { status: 'Success' } } }),
      /UID of the response differs/,
    );
    await fails(
      'f5',
      altered((each) => ({ ...each, metadata: { ...each.metadata, name: 'other' } })),
      /^conversion webhook for lab\.example\.com\/v1, Kind=Host returned invalid object: must have the same name: f5 != other$/,
    );
    await fails(
      'f6',
      altered((each) => ({ ...each, apiVersion: 'lab.example.com/v7' })),
      /invalid groupVersion \(expected lab\.example\.com\/v2, received lab\.example\.com\/v7\)/,
    );
    await fails(
      'f7',
      (review) => ({
        ...(correct(review) as { response: object }),
        response: {
          ...(correct(review) as { response: object }).response,
          result: { status: 'Failure', message: 'no such host' },
        },
      }),
      /no such host/,
    );
    for (const [name, value, why] of [
      ['labels', { a: { b: 1 } }, /metadata\.labels: "a" is not a string/],
      ['labels', ['x'], /metadata\.labels: must be an object/],
      ['labels', { 'no label!': 'x' }, /invalid metadata\.labels: .*no label!/],
      ['annotations', { a: 5 }, /metadata\.annotations: "a" is not a string/],
    ] as const)
      await fails(
        `f8-${JSON.stringify(value).length}`,
        altered((each) => ({ ...each, metadata: { ...each.metadata, [name]: value } })),
        why,
      );
    await call('POST', at('v1'), host('v1', 'meta', { hostPort: 'm:1' }));
    answer = altered((each) => ({
      ...each,
      metadata: { ...each.metadata, labels: { added: 'yes' }, finalizers: ['x/y'], ownerReferences: [] },
    }));
    const { body } = await call('GET', `${at('v2')}/meta`);
    answer = correct;
    assert.deepEqual(body.metadata['labels'], { added: 'yes' });
    assert.equal(body.metadata['finalizers'], undefined);
  });

  it('custom resources with a conversion webhook do not affect other kinds and versions while the webhook is unavailable', async () => {
    await call('POST', at('v1'), host('v1', 'away', { hostPort: 'z:1' }));
    answer = () => 503;
    assert.equal((await call('GET', `${at('v2')}/away`)).code, 500);
    const kept = await call('DELETE', `${at('v2')}/away`);
    assert.equal(kept.code, 500, kept.text);
    assert.match(kept.body.message, /failed: the server is currently unable to handle the request/);
    assert.equal((await call('GET', `${at('v1')}/away`)).code, 200);
    assert.equal((await call('GET', '/api/v1/namespaces')).code, 200);
    answer = correct;
  });

  it('calls a conversion webhook of a service at an endpoint, and verifies the service name in its certificate', async (t) => {
    const own = Object.values(networkInterfaces()).flat();
    const address = own.find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;
    if (address === undefined) return t.skip('this host has no address but loopback, which end points may not have');
    const pair = await issue(server.ca, {
      subject: { commonName: 'converter' },
      usages: ['server'],
      names: { dns: ['converter.default.svc'], ips: [] },
      validity: lifetimeFrom(Date.now(), 1),
    });
    const hosts: (string | undefined)[] = [];
    const service = createServer({ cert: pair.certPem, key: pair.keyPem }, (incoming, outgoing) => {
      hosts.push(incoming.headers.host);
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => outgoing.end(JSON.stringify(correct(JSON.parse(Buffer.concat(chunks).toString())))));
    });
    await new Promise<void>((resolve) => service.listen(0, address, resolve));
    t.after(() => service.close());
    const { port } = service.address() as AddressInfo;
    const { body } = await call('GET', `${DEFINITIONS}/${NAME}`);
    const { webhook: before } = conversion();
    const asService = {
      strategy: 'Webhook',
      webhook: {
        ...before,
        clientConfig: {
          caBundle: before.clientConfig.caBundle,
          service: { namespace: 'default', name: 'converter', port: 8443, path: '/convert' },
        },
      },
    };
    await call('PUT', `${DEFINITIONS}/${NAME}`, { ...body, spec: { ...body.spec, conversion: asService } });
    await call('POST', at('v1'), host('v1', 'served', { hostPort: 's:1' }));
    const missing = await until('the new conversion', async () => {
      const answered = await call('GET', `${at('v2')}/served`);
      return answered.code === 500 && answered;
    });
    assert.match(missing.body.message, /service "default\/converter" not found/);
    await call('POST', '/api/v1/namespaces/default/services', {
      metadata: { name: 'converter' },
      spec: { ports: [{ port: 8443, targetPort: port }] },
    });
    assert.match(
      (await call('GET', `${at('v2')}/served`)).body.message,
      /no endpoints available for service "converter"/,
    );
    const slice = await call('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
      metadata: { name: 'converter', labels: { 'kubernetes.io/service-name': 'converter' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: '', port, protocol: 'TCP' }],
    });
    assert.equal(slice.code, 201, slice.text);
    const shown = await call('GET', `${at('v2')}/served`);
    assert.equal(shown.body.spec?.['host'], 's', shown.text);
    assert.deepEqual(new Set(hosts), new Set(['converter.default.svc:8443']));
  });

  it('custom resources with a conversion webhook are deleted with their definition even without the webhook', async () => {
    answer = () => 503;
    assert.equal((await call('DELETE', `${DEFINITIONS}/${NAME}`)).code, 200);
    await until('gone', async () => (await call('GET', `${DEFINITIONS}/${NAME}`)).code === 404);
  });
});

/** The first lines of a watch. */
function watchLines(server: TestServer, path: string, count: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port: server.port,
        path,
        ca: server.ca.certPem,
        cert: server.admin.certPem,
        key: server.admin.keyPem,
        agent: false,
      },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString();
          const lines = text.split('\n').slice(0, -1);
          if (lines.length >= count) {
            sent.destroy();
            resolve(lines.slice(0, count));
          }
        });
        response.on('end', () => resolve(text.split('\n').slice(0, -1)));
      },
    );
    sent.on('error', reject);
    sent.end();
  });
}

describe('a definition in a group of this server', () => {
  it('a CustomResourceDefinition in a built-in group adds new versions and does not change built-in versions', async () => {
    const server = await startServer();
    try {
      const schema = { openAPIV3Schema: { type: 'object' } };
      const version = (name: string, storage: boolean) => ({ name, served: true, storage, schema });
      const made = await server.call('POST', DEFINITIONS, {
        body: {
          metadata: {
            name: 'foos.networking.k8s.io',
            annotations: { 'api-approved.kubernetes.io': 'unapproved, a test' },
          },
          spec: {
            group: 'networking.k8s.io',
            scope: 'Cluster',
            names: { plural: 'foos', kind: 'Foo' },
            versions: [version('v1', true), version('v7', false)],
          },
        },
      });
      assert.equal(made.code, 201, made.text);
      const code = async (path: string) => (await server.call('GET', path)).code;
      await until('serving', async () => (await code('/apis/networking.k8s.io/v7/foos')) === 200);
      assert.equal(await code('/apis/networking.k8s.io/v1/foos'), 404);
      const found = await server.call<{ resources: { name: string }[] }>('GET', '/apis/networking.k8s.io/v1');
      const names = found.body.resources.map(({ name }) => name);
      assert.deepEqual([names.includes('networkpolicies'), names.includes('foos')], [true, false]);
    } finally {
      await server.stop();
    }
  });
});
