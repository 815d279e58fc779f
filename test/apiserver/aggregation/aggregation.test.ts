/** An aggregated API server: registration, availability, discovery and proxying. */
import assert from 'node:assert/strict';
import { request } from 'node:https';
import type { Duplex } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import type { APIService } from '../../../src/api/kinds/cluster/apiservices/conditions.ts';
import { startServer, type TestServer } from '../harness.ts';
import { FLUNDERS, FlunderServer, GROUP, ROOT, schemas, VERSION } from './flunder-server.ts';
import {
  AGGREGATED,
  API_SERVICES,
  apiService,
  available,
  type Extended,
  freshness,
  groups,
  NAME,
  publish,
  startExtended,
  startMain,
  until,
  writeSlice,
} from './setup.ts';

const pod = (name: string): object => ({ metadata: { name }, spec: { reference: 'x' } });

describe('an aggregated API server', () => {
  let extended: Extended;
  before(async () => {
    extended = await startExtended();
  });
  after(() => extended.stop());

  it('an aggregated API server gets the user in front-proxy headers with the proxy client certificate, and no credentials', async () => {
    const { main, flunders } = extended;
    const bob = await main.user('bob ü', 'tigers', 'a,b');
    const rules = [{ apiGroups: [GROUP], resources: ['flunders'], verbs: ['list'] }];
    await main.call('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
      body: { metadata: { name: 'flunders' }, rules },
    });
    await main.call('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      body: {
        metadata: { name: 'flunders' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'flunders' },
        subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'tigers' }],
      },
    });
    flunders.take('/');
    const headers = {
      'x-remote-user': 'root',
      'x-remote-group': 'system:masters',
      'x-remote-extra-a': 'b',
      // A backend with a CGI or WSGI interface reads these names with hyphens.
      x_remote_user: 'root',
      x_remote_group: 'system:masters',
      'x-remote_extra_a': 'b',
      impersonate_user: 'root',
      x_forwarded_for: '192.0.2.9',
      content_length: '7',
      authorization: 'Basic eDp5',
      'x-other': 'stays',
      x_other: 'stays too',
      'x-forwarded-for': '192.0.2.1',
    };
    const answer = await until('bob may', async () => {
      const found = await main.call('GET', `${FLUNDERS}?limit=5`, { as: bob, headers });
      return found.code === 403 ? undefined : found;
    });
    assert.equal(answer.code, 200, answer.text);
    assert.equal(answer.body['kind'], 'FlunderList');
    const [seen] = flunders.take(FLUNDERS);
    assert.ok(seen);
    assert.equal(seen.client, 'aggregator');
    assert.equal(seen.url, `${FLUNDERS}?limit=5`);
    assert.equal(Buffer.from(String(seen.headers['x-remote-user']), 'latin1').toString(), 'bob ü');
    const values = seen.raw.filter((_, index) => seen.raw[index - 1]?.toLowerCase() === 'x-remote-group');
    assert.deepEqual(values, ['tigers', 'a,b', 'system:authenticated']);
    assert.equal(seen.headers['x-remote-extra-a'], undefined);
    assert.equal(seen.headers.authorization, undefined);
    assert.equal(seen.headers['x-other'], 'stays');
    const underscored = seen.raw.filter((name, index) => index % 2 === 0 && name.includes('_'));
    assert.deepEqual(underscored, ['x_other']);
    assert.equal(seen.headers['x-forwarded-for'], '192.0.2.1, 127.0.0.1');
    // A user without permission is rejected by the main server.
    const refused = await main.call('POST', FLUNDERS, { as: bob, body: pod('no') });
    assert.equal(refused.code, 403);
    assert.deepEqual(flunders.take(FLUNDERS), []);
  });

  it('an aggregated API server receives bodies and serves watches over kept-alive connections', async () => {
    const { main, flunders } = extended;
    flunders.take('/');
    const events: string[] = [];
    const watching = request(`${main.url}${FLUNDERS}?watch=true`, {
      ca: main.ca.certPem,
      cert: main.admin.certPem,
      key: main.admin.keyPem,
      agent: false,
    });
    const began = new Promise<void>((resolve, reject) => {
      watching.on('error', reject);
      watching.on('response', (response) => {
        response.on('data', (chunk: Buffer) => events.push(chunk.toString()));
        response.on('error', () => {});
        resolve();
      });
    });
    watching.end();
    await began;
    for (const name of ['a', 'b', 'c']) {
      assert.equal((await main.call('POST', FLUNDERS, { body: pod(name) })).code, 201);
      assert.equal((await main.call('GET', `${FLUNDERS}/${name}`)).code, 200);
    }
    assert.equal((await main.call('DELETE', `${FLUNDERS}/b`)).code, 200);
    await until('the watch has told', async () => (events.length >= 4 ? true : undefined));
    const types = events
      .join('')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { type: string }).type);
    assert.deepEqual(types, ['ADDED', 'ADDED', 'ADDED', 'DELETED']);
    const seen = flunders.take(FLUNDERS);
    assert.equal(JSON.parse(seen.find(({ method }) => method === 'POST')?.body ?? '').metadata.name, 'a');
    const connections = new Set(seen.filter(({ url }) => !url.includes('watch')).map((each) => each.connection));
    assert.ok(connections.size < 4, `${connections.size} connections`);
    await until('the watch has no seat, and the question about it alone has one', async () => {
      const { text } = await main.call('GET', '/metrics');
      const executing = /^apiserver_flowcontrol_current_executing_requests\{flow_schema="exempt",[^}]*\} (\d+)$/m.exec(
        text,
      );
      return executing?.[1] === '1' ? true : undefined;
    });
    // The watch ends when its client disconnects.
    watching.destroy();
    await until('the watch has ended', async () => (flunders.watchers === 0 ? true : undefined));
  });

  it('an aggregated API server can upgrade connections, for resources with nested subresources', async () => {
    const { main, flunders } = extended;
    flunders.take('/');
    const sent = request(`${main.url}${FLUNDERS}/x/connect/22/tcp`, {
      ca: main.ca.certPem,
      cert: main.admin.certPem,
      key: main.admin.keyPem,
      agent: false,
      headers: {
        connection: 'Upgrade',
        upgrade: 'echo',
        'x-remote-user': 'root',
        'sec-websocket-protocol': 'base64url.bearer.authorization.k8s.io.c2VjcmV0, v4',
      },
    });
    const socket = await new Promise<Duplex>((resolve, reject) => {
      sent.on('error', reject);
      sent.on('response', (response) => reject(new Error(`answered ${response.statusCode}`)));
      sent.on('upgrade', (_, opened, head) => {
        opened.unshift(head);
        resolve(opened);
      });
      sent.end();
    });
    let heard = '';
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString();
    });
    socket.write('ping');
    await until('the echo', async () => (heard === 'hello:ping' ? true : undefined));
    socket.destroy();
    const [seen] = flunders.take(FLUNDERS);
    assert.equal(seen?.headers['x-remote-user'], 'system:admin');
    assert.equal(seen?.headers['sec-websocket-protocol'], 'v4');
    assert.equal((await main.call('GET', '/api/v1/namespaces/default/pods/x/log/more')).code, 404);
  });

  it('an aggregated API server is in every discovery document, sorted by priority, only with its registered versions', async () => {
    const { main } = extended;
    const names = (await groups(main)).map(({ metadata }) => metadata.name);
    assert.deepEqual(names.slice(0, 2), ['apiregistration.k8s.io', 'apps']);
    assert.equal(names.at(-1), GROUP);
    const own = (await groups(main)).at(-1)?.versions[0];
    assert.deepEqual(
      own?.resources.map((each) => (each as { resource: string }).resource),
      ['flunders'],
    );
    assert.ok((await groups(main))[1]?.versions[0]?.resources.length);
    const list = await main.call<{ groups: { name: string }[] }>('GET', '/apis');
    assert.deepEqual(
      list.body.groups.map(({ name }) => name),
      names,
    );
    const group = await main.call<{ preferredVersion: { version: string } }>('GET', `/apis/${GROUP}`);
    assert.equal(group.body.preferredVersion.version, VERSION);
    const resources = await main.call<{ resources: { name: string }[] }>('GET', ROOT);
    assert.equal(resources.body.resources[0]?.name, 'flunders');
    assert.ok((await main.call<{ paths: string[] }>('GET', '/')).body.paths.includes(ROOT));
    const etag = (await main.call('GET', '/apis', { headers: AGGREGATED })).headers.etag ?? '';
    const again = await main.call('GET', '/apis', { headers: { ...AGGREGATED, 'if-none-match': etag } });
    assert.equal(again.code, 304);
  });

  it('serves the OpenAPI v3 documents of an aggregated API server', async () => {
    const { main } = extended;
    const path = ROOT.slice(1);
    const index = await main.call<{ paths: Record<string, { serverRelativeURL: string }> }>('GET', '/openapi/v3');
    assert.equal(index.body.paths[path]?.serverRelativeURL, `/openapi/v3/${path}?hash=ABC`);
    assert.ok(index.body.paths['apis/apps/v1']);
    const document = await main.call<{ info: { title: string } }>('GET', `/openapi/v3/${path}?hash=ABC`);
    assert.equal(document.body.info.title, 'Flunders');
  });

  it('adds the types of an aggregated API server to the OpenAPI v2 document, and renames types that differ', async () => {
    const { main, flunders } = extended;
    type Named = Record<string, { properties?: Record<string, { $ref?: string }> }>;
    const read = () => main.call<{ paths: Named; definitions: Named }>('GET', '/openapi/v2');
    const { body, headers } = await read();
    assert.ok(body.paths[`${ROOT}/namespaces/{namespace}/flunders`]);
    const meta = body.definitions['com.example.wardle.v1alpha1.Flunder']?.properties?.['metadata']?.$ref;
    assert.equal(meta, '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2');
    assert.ok(body.definitions['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta']?.properties?.['labels']);
    assert.equal(body.definitions['com.example.unused.Thing'], undefined);
    assert.ok((JSON.stringify(body.paths['/api/v1/nodes']) ?? '').includes('NodeList'));
    flunders.take('/');
    assert.equal((await read()).headers.etag, headers.etag);
    assert.deepEqual(flunders.take('/openapi/v2'), []);
  });

  it('reports an aggregated API server as unavailable without waiting for a response', async () => {
    const { main, flunders } = extended;
    await writeSlice(main, 'flunders', flunders.port, []);
    const message = await available(main, 'MissingEndpoints');
    assert.equal(message, 'endpointslices for service/flunders in "default" have no addresses with port name "https"');
    for (const path of [FLUNDERS, ROOT, `/openapi/v3${ROOT}`]) {
      const answer = await main.call('GET', path);
      assert.equal(answer.code, 503);
      assert.equal(answer.text, 'service unavailable\n');
      assert.match(String(answer.headers['content-type']), /^text\/plain/);
    }
    await until('stale', async () => ((await freshness(main)) === 'Stale' ? true : undefined));
    // The last discovery document of the unavailable server is kept.
    assert.equal((await groups(main)).at(-1)?.versions[0]?.resources.length, 1);
    const { text } = await main.call('GET', '/metrics');
    assert.match(text, /^aggregator_unavailable_apiservice\{name="v1alpha1\.wardle\.example\.com"\} 1$/m);
    assert.match(text, /^aggregator_unavailable_apiservice\{name="v1\.apps"\} 0$/m);
    assert.match(
      text,
      /^aggregator_unavailable_apiservice_total\{name="[^"]*wardle[^"]*",reason="MissingEndpoints"\} 1$/m,
    );
    await writeSlice(main, 'flunders', flunders.port, ['127.0.0.1']);
    assert.equal(await available(main, 'Passed'), 'all checks passed');
    await until('current', async () => ((await freshness(main)) === 'Current' ? true : undefined));
  });

  it('an aggregated API server cannot redirect clients to other hosts', async () => {
    const { main, flunders } = extended;
    flunders.mischief = (_, response) => {
      response.writeHead(302, { location: 'https://169.254.169.254/' }).end('secret');
      return true;
    };
    try {
      const answer = await main.call('GET', FLUNDERS);
      assert.equal(answer.code, 502);
      assert.match(answer.text, /the backend attempted to redirect this request, which is not permitted/);
      assert.equal(answer.headers.location, undefined);
    } finally {
      flunders.mischief = () => false;
    }
  });
});

describe('registration of APIServices', () => {
  let main: TestServer;
  before(async () => {
    main = await startMain();
  });
  after(() => main.stop());
  const read = async (name: string): Promise<APIService> =>
    (await main.call<APIService>('GET', `${API_SERVICES}/${name}`)).body;

  it('creates a local APIService for every group and version of this server', async () => {
    const { body } = await main.call<{ items: APIService[] }>('GET', API_SERVICES);
    const names = body.items.map(({ metadata }) => metadata?.name);
    for (const name of ['v1.', 'v1.apps', 'v2.autoscaling', 'v1.apiextensions.k8s.io'])
      assert.ok(names.includes(name), name);
    assert.ok(!names.includes('v1.apiregistration.k8s.io'));
    const core = await read('v1.');
    assert.deepEqual(core.spec, { version: 'v1', groupPriorityMinimum: 18_000, versionPriority: 1 });
    assert.deepEqual(core.metadata?.labels, { 'kube-aggregator.kubernetes.io/automanaged': 'onstart' });
    const [condition] = core.status?.conditions ?? [];
    assert.equal(`${condition?.type} ${condition?.status} ${condition?.reason}`, 'Available True Local');
  });

  it('creates APIServices for custom resource definitions, restores built-in APIServices and keeps APIServices of users', async () => {
    const name = 'v1.stable.example.com';
    const definition = {
      metadata: { name: 'things.stable.example.com' },
      spec: {
        group: 'stable.example.com',
        scope: 'Namespaced',
        names: { plural: 'things', kind: 'Thing' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    };
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    await main.call('POST', definitions, { body: definition });
    await available(main, 'Local', name);
    assert.equal((await read(name)).metadata?.labels?.['kube-aggregator.kubernetes.io/automanaged'], 'true');
    const patch = { raw: '{"spec":{"versionPriority":7}}', type: 'application/merge-patch+json' };
    await main.call('PATCH', `${API_SERVICES}/${name}`, patch);
    await until('mended', async () => ((await read(name)).spec?.versionPriority === 100 ? true : undefined));
    await main.call('DELETE', `${API_SERVICES}/${name}`);
    await available(main, 'Local', name);
    // A built-in APIService is not restored after an administrator has changed it.
    await main.call('PATCH', `${API_SERVICES}/v1.apps`, patch);
    await main.call('DELETE', `${definitions}/things.stable.example.com`);
    await until('gone', async () =>
      (await main.call('GET', `${API_SERVICES}/${name}`)).code === 404 ? true : undefined,
    );
    assert.equal((await read('v1.apps')).spec?.versionPriority, 7);
  });

  it('accepts APIService manifests in v1beta1', async () => {
    const name = 'v1.older.example.com';
    const older = { ...apiService('', 'older', name), apiVersion: 'apiregistration.k8s.io/v1beta1' };
    const made = await main.call('POST', API_SERVICES.replace('/v1/', '/v1beta1/'), { body: older });
    assert.equal(made.code, 201, made.text);
    assert.match(String(made.headers['warning']), /use apiregistration\.k8s\.io\/v1 APIService/);
    assert.equal((await read(name)).apiVersion, 'apiregistration.k8s.io/v1');
    assert.equal((await read(name)).spec?.service?.port, 443);
    await main.call('DELETE', `${API_SERVICES}/${name}`);
  });

  it('rejects invalid APIServices', async () => {
    const wrong = apiService('', 'x', 'v1.wrong.example.com') as APIService;
    wrong.metadata = { name: 'v2.wrong.example.com' };
    const answer = await main.call<{ message: string }>('POST', API_SERVICES, { body: wrong });
    assert.equal(answer.code, 422);
    assert.match(answer.body.message, /must be `spec\.version\+"\."\+spec\.group`: "v1\.wrong\.example\.com"/);
  });

  it('reports the reason why an aggregated API server is unavailable', async () => {
    const name = 'v1.lacking.example.com';
    const post = (path: string, body: object) => main.call('POST', `/api/v1/namespaces/default/${path}`, { body });
    await main.call('POST', API_SERVICES, { body: apiService('', 'lacking', name) });
    assert.equal(await available(main, 'ServiceNotFound', name), 'service/lacking in "default" is not present');
    const spec = { clusterIP: 'None', ports: [{ name: 'https', port: 8443 }] };
    await post('services', { metadata: { name: 'lacking' }, spec });
    assert.equal(
      await available(main, 'ServicePortError', name),
      'service/lacking in "default" is not listening on port 443',
    );
    await main.call('DELETE', '/api/v1/namespaces/default/services/lacking');
    await post('services', { metadata: { name: 'lacking' }, spec: { clusterIP: 'None', ports: [{ port: 443 }] } });
    assert.equal(
      await available(main, 'EndpointsNotFound', name),
      'cannot find endpointslices for service/lacking in "default"',
    );
    // An endpoint with this server's own address would cause an endless loop.
    const { port } = main;
    await main.call('DELETE', '/api/v1/namespaces/default/services/lacking');
    await publish(main, 'lacking', port);
    const message = await available(main, 'FailedDiscoveryCheck', name);
    assert.match(
      message,
      /^failing or missing response from https:\/\/127\.0\.0\.1:\d+\/apis\/lacking\.example\.com\/v1: .* is not allowed$/,
    );
    await main.call('DELETE', `${API_SERVICES}/${name}`);
    const gone = async () => ((await main.call('GET', '/metrics')).text.includes('lacking') ? undefined : true);
    await until('forgotten', gone);
    assert.equal((await main.call('GET', '/apis/lacking.example.com')).code, 404);
  });

  it('publishes the CAs that aggregated servers trust, and restores the published config map after a change', async () => {
    const path = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
    const { body } = await main.call<{ data: Record<string, string> }>('GET', path);
    const { data } = body;
    assert.match(data['client-ca-file'] ?? '', /BEGIN CERTIFICATE/);
    assert.match(data['requestheader-client-ca-file'] ?? '', /BEGIN CERTIFICATE/);
    assert.equal(data['requestheader-allowed-names'], '["aggregator"]');
    assert.equal(data['requestheader-username-headers'], '["X-Remote-User"]');
    assert.equal(data['requestheader-group-headers'], '["X-Remote-Group"]');
    assert.equal(data['requestheader-extra-headers-prefix'], '["X-Remote-Extra-"]');
    await main.call('PUT', path, {
      body: { metadata: { name: 'extension-apiserver-authentication' }, data: { a: 'b' } },
    });
    const mended = async () => {
      const now = await main.call<{ data: Record<string, string> }>('GET', path);
      return now.body.data['client-ca-file'] === data['client-ca-file'] ? now.body.data : undefined;
    };
    assert.equal((await until('mended', mended))['a'], 'b');
  });
});

it('a server without front proxies publishes only its client CA', async () => {
  const main = await startServer();
  try {
    const path = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
    const map = await until('the map', async () => {
      const answer = await main.call<{ data: Record<string, string> }>('GET', path);
      return answer.code === 200 ? answer.body : undefined;
    });
    assert.deepEqual(Object.keys(map.data), ['client-ca-file']);
  } finally {
    await main.stop();
  }
});

it('several masters with different proxy certificates can all forward requests to an aggregated server', async () => {
  const config = { soleWriter: false };
  const one = await startMain({ config });
  const other = await startMain({ config, store: one.store });
  const flunders = await FlunderServer.start(other, ['flunders.default.svc']);
  try {
    await publish(one, 'flunders', flunders.port);
    await one.call('POST', API_SERVICES, { body: apiService(flunders.caBundle, 'flunders') });
    for (const main of [one, other]) {
      await available(main, 'Passed');
      const list = async () => ((await main.call('GET', FLUNDERS)).code === 200 ? true : undefined);
      await until('flunders are listed', list);
    }
    assert.equal((await one.call<{ metadata: object }>('GET', `${API_SERVICES}/v1.apps`)).code, 200);
  } finally {
    await other.stop(true);
    await one.stop();
    await flunders.stop();
  }
});

describe('malicious aggregated servers', () => {
  it('malicious aggregated servers do not block other clients', async () => {
    const extended = await startExtended((flunders) => {
      flunders.aggregated = false;
      flunders.explained = false;
    });
    const { main, flunders } = extended;
    try {
      // The aggregated server has no OpenAPI v3, so its OpenAPI v2 document is converted.
      const at = ROOT.slice(1);
      const index = await main.call<{ paths: Record<string, { serverRelativeURL: string }> }>('GET', '/openapi/v3');
      const url = index.body.paths[at]?.serverRelativeURL ?? '';
      assert.match(url, /^\/openapi\/v3\/apis\/wardle\.example\.com\/v1alpha1\?hash=[0-9A-F]{128}$/);
      const document = await main.call('GET', url);
      assert.deepEqual(document.body['components'], {
        schemas: schemas('#/components/schemas/'),
      });
      const { post } = (document.body['paths'] as Record<string, { post: Record<string, unknown> }>)[
        `${ROOT}/namespaces/{namespace}/flunders`
      ] ?? { post: {} };
      const schema = { $ref: '#/components/schemas/com.example.wardle.v1alpha1.Flunder' };
      assert.deepEqual(post['requestBody'], { content: { 'application/json': { schema } } });
      // Unaggregated discovery has the same contents.
      const [resource] = (await groups(main)).at(-1)?.versions[0]?.resources ?? [];
      assert.deepEqual(resource, {
        resource: 'flunders',
        scope: 'Namespaced',
        singularResource: 'flunder',
        verbs: ['create', 'delete', 'get', 'list', 'watch'],
        responseKind: { group: GROUP, version: VERSION, kind: 'Flunder' },
        shortNames: ['fl'],
        subresources: [
          { subresource: 'status', responseKind: { group: GROUP, version: VERSION, kind: 'Flunder' }, verbs: ['get'] },
        ],
      });
      // Servers that never respond or never finish are limited only by the client's own time-out.
      flunders.mischief = (requested, response) => {
        if (requested.url === '/apis')
          response.writeHead(200, { 'content-type': 'application/json;g=apidiscovery.k8s.io' });
        const pour = (): void => {
          if (!response.destroyed) response.write('x'.repeat(65_536), () => setImmediate(pour));
        };
        if (requested.url === '/apis') pour();
        return true;
      };
      const waiting = request(`${main.url}${FLUNDERS}`, {
        ca: main.ca.certPem,
        cert: main.admin.certPem,
        key: main.admin.keyPem,
        agent: false,
      });
      waiting.on('error', () => {});
      waiting.end();
      await until('it receives a request', async () => (flunders.take(FLUNDERS).length > 0 ? true : undefined));
      const patch = { raw: '{"spec":{"versionPriority":11}}', type: 'application/merge-patch+json' };
      await main.call('PATCH', `${API_SERVICES}/${NAME}`, patch);
      await until('stale', async () => ((await freshness(main)) === 'Stale' ? true : undefined), 20_000);
      assert.equal((await main.call('GET', '/apis/apps/v1')).code, 200);
      waiting.destroy();
    } finally {
      flunders.mischief = () => false;
      await extended.stop();
    }
  });

  it('malicious aggregated servers with a certificate of another name or CA receive no requests', async () => {
    const main = await startMain();
    const flunders = await FlunderServer.start(main, ['elsewhere.default.svc']);
    try {
      await publish(main, 'flunders', flunders.port);
      await main.call('POST', API_SERVICES, { body: apiService(flunders.caBundle, 'flunders') });
      // The probe does not verify certificates; the proxy does.
      await available(main, 'Passed');
      flunders.take('/');
      const answer = await main.call('GET', FLUNDERS);
      assert.equal(answer.code, 503);
      assert.match(answer.text, /^error trying to reach service: .*flunders\.default\.svc/);
      assert.deepEqual(flunders.take(FLUNDERS), []);
      const patch = {
        raw: '{"spec":{"caBundle":null,"insecureSkipTLSVerify":true}}',
        type: 'application/merge-patch+json',
      };
      await main.call('PATCH', `${API_SERVICES}/${NAME}`, patch);
      await until('it responds', async () => ((await main.call('GET', FLUNDERS)).code === 200 ? true : undefined));
    } finally {
      await main.stop();
      await flunders.stop();
    }
  });
});
