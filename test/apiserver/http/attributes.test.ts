/**
 * Checks that each request is authorized for what it is served: random paths on a complete server, compared with an
 * oracle that parses paths differently.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, before, describe, it, mock } from 'node:test';
import { Authorization, actionOf } from '../../../src/apiserver/authorization/index.ts';
import type { Action } from '../../../src/apiserver/core/authorization/types.ts';
import type { RequestInfo } from '../../../src/apiserver/http/request-info.ts';
import type { ConnectionInfo } from '../../../src/apiserver/port.ts';
import { Choices } from '../core/patch/choices.ts';
import { startServer, type TestServer } from '../harness.ts';
import { type Reading, readAttributes, somePath, someStream } from './attribute-oracle.ts';
import { InProcess, type Served } from './in-process.ts';

const SEED = 20_260_111;
const PATHS = 100_000;
const UPGRADES = 5_000;
const METHODS = ['GET', 'GET', 'GET', 'GET', 'GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
/** Cluster-scoped resources in the paths; all others are namespaced. */
const CLUSTER_SCOPED = new Set(['namespaces', 'nodes', 'clusterroles', 'widgets']);
const WATCHED = new Set(['true', '1']);
const NODE_ADDRESS = '10.9.0.1';
const POD_ADDRESSES = new Map([
  ['mine', '10.9.1.1'],
  ['other', '10.9.2.1'],
]);

interface Shown {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
  readonly items?: readonly Shown[];
  readonly details?: { readonly name?: string };
  readonly object?: Shown;
}

describe('request attributes', () => {
  const inProcess = new InProcess();
  let server: TestServer;
  let connection: ConnectionInfo;
  let authorised: Action[] = [];

  const send = async (method: string, path: string, body?: object): Promise<void> => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const text = body === undefined ? undefined : JSON.stringify(body);
    const { code, text: answer } = await inProcess.send(connection, method, path, { 'content-type': type }, text);
    assert.ok(code < 300, `${method} ${path}: ${code} ${answer}`);
  };

  before(async () => {
    server = await startServer({ http: inProcess.http });
    const certificate = new X509Certificate(server.admin.certPem);
    connection = { remoteAddress: '127.0.0.1', peerChain: [certificate.raw], peerRefused: false };
    const status = { addresses: [{ type: 'InternalIP', address: NODE_ADDRESS }] };
    await send('POST', '/api/v1/nodes', { metadata: { name: 'n1' }, status });
    for (const [plural, kind, scope] of [
      ['widgets', 'Widget', 'Cluster'],
      ['gadgets', 'Gadget', 'Namespaced'],
      ['namespaces', 'Place', 'Cluster'],
    ]) {
      const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
      const versions = [{ name: 'v1', served: true, storage: true, schema, subresources: { status: {} } }];
      await send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
        metadata: { name: `${plural}.fuzz.example.com` },
        spec: { group: 'fuzz.example.com', names: { kind, plural }, scope, versions },
      });
    }
    for (let tries = 0; tries < 500; tries++) {
      const { code } = await inProcess.send(connection, 'GET', '/apis/fuzz.example.com/v1/namespaces', {});
      if (code === 200) break;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    for (const name of ['one', 'other']) {
      for (const plural of ['widgets', 'namespaces']) {
        const kind = plural === 'widgets' ? 'Widget' : 'Place';
        await send('POST', `/apis/fuzz.example.com/v1/${plural}`, {
          apiVersion: 'fuzz.example.com/v1',
          kind,
          metadata: { name },
        });
      }
      await send('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', { metadata: { name } });
    }
    for (const [namespace, podIP] of POD_ADDRESSES) await fill(namespace, podIP);
    const address = { namespace: 'mine', name: 'one', port: 80 };
    const spec = { group: 'agg.example.com', version: 'v1', groupPriorityMinimum: 1, versionPriority: 1 };
    await send('POST', '/apis/apiregistration.k8s.io/v1/apiservices', {
      metadata: { name: 'v1.agg.example.com' },
      spec: { ...spec, service: address, insecureSkipTLSVerify: true },
    });
    const time = '2026-01-01T00:00:00Z';
    const condition = { type: 'Available', status: 'True', lastTransitionTime: time, reason: 'Passed', message: '' };
    await send('PATCH', '/apis/apiregistration.k8s.io/v1/apiservices/v1.agg.example.com/status', {
      status: { conditions: [condition] },
    });
    const { prototype } = Authorization;
    const { requireRequest, requireRecorded } = prototype;
    mock.method(prototype, 'requireRequest', function (this: Authorization, user, info: RequestInfo) {
      authorised.push(actionOf(info));
      return requireRequest.call(this, user, info);
    } as typeof requireRequest);
    mock.method(prototype, 'requireRecorded', function (this: Authorization, user, info: RequestInfo, decided) {
      authorised.push(actionOf(info));
      return requireRecorded.call(this, user, info, decided);
    } as typeof requireRecorded);
  });
  after(async () => {
    mock.restoreAll();
    await server.stop();
  });

  /** Creates all objects that a path may name, in a namespace. */
  async function fill(namespace: string, podIP: string): Promise<void> {
    await send('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    const at = (rest: string, group = '/api/v1'): string => `${group}/namespaces/${namespace}/${rest}`;
    await send('POST', at('serviceaccounts'), { metadata: { name: 'default' } });
    const containers = [{ name: 'main', image: 'i' }];
    for (const name of ['one', 'two']) {
      for (const plural of ['configmaps', 'secrets', 'serviceaccounts']) {
        await send('POST', at(plural), { metadata: { name } });
      }
      await send('POST', at('roles', '/apis/rbac.authorization.k8s.io/v1'), { metadata: { name } });
      await send('POST', at('gadgets', '/apis/fuzz.example.com/v1'), {
        apiVersion: 'fuzz.example.com/v1',
        kind: 'Gadget',
        metadata: { name },
      });
      const template = { metadata: { labels: { app: name } }, spec: { containers } };
      await send('POST', at('deployments', '/apis/apps/v1'), {
        metadata: { name },
        spec: { selector: { matchLabels: { app: name } }, template },
      });
      await send('POST', at('pods'), { metadata: { name }, spec: { nodeName: 'n1', containers } });
      await send('PATCH', at(`pods/${name}/status`), { status: { podIP, podIPs: [{ ip: podIP }] } });
      await send('POST', at('services'), { metadata: { name }, spec: { clusterIP: 'None', ports: [{ port: 80 }] } });
      await send('POST', at('endpointslices', '/apis/discovery.k8s.io/v1'), {
        metadata: { name, labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        ports: [{ port: 80, name: '', protocol: 'TCP' }],
        endpoints: [{ addresses: [podIP], conditions: { ready: true } }],
      });
    }
  }

  /** Reports whether the path has the scope of its resource. */
  function hasPlace({ attributes, below, selected }: Reading): boolean {
    const { resource, group, verb, name, subresource } = attributes;
    // Aggregated servers have their own routes and authorize again.
    if (group === 'agg.example.com') return true;
    if (verb === 'watch' && subresource !== '') return false;
    if (CLUSTER_SCOPED.has(resource)) return !below;
    return below || ((name === '' || selected) && (verb === 'list' || verb === 'watch'));
  }

  const isOf = (reading: Reading, shown: Shown, what: string): void => {
    const { resource, namespace, name, verb } = reading.attributes;
    const { metadata = {} } = shown;
    const place = CLUSTER_SCOPED.has(resource) ? '' : namespace;
    if (place !== '') assert.equal(metadata.namespace, place, what);
    if (CLUSTER_SCOPED.has(resource)) assert.equal(metadata.namespace, undefined, what);
    if (name !== '' && verb !== 'create') assert.equal(metadata.name, name, what);
  };

  /** Compares the response with the authorization. Returns whether something was served. */
  function judge(method: string, url: string, served: Served): boolean {
    const what = `seed ${SEED}: ${method} ${url}: ${served.code} ${served.text.slice(0, 300)}`;
    const reading = readAttributes(method, url);
    const [action, ...more] = authorised;
    assert.equal(more.length, 0, what);
    if (reading === undefined) {
      assert.ok(action === undefined || 'path' in action, what);
      if (served.backend !== undefined) {
        assert.deepEqual([action?.path, served.backend.path], [url.split('?', 1)[0], url], what);
        assert.match(action?.path ?? '', /^\/apis\/agg\.example\.com\/v1\/?$/, what);
      }
      // Discovery documents are not resources.
      if (action === undefined) assert.equal(served.code, 400, what);
      return false;
    }
    assert.ok(action !== undefined && !('path' in action), what);
    const { verb, group, version, resource, subresource, namespace, name } = action;
    assert.deepEqual({ verb, group, version, resource, subresource, namespace, name }, reading.attributes, what);
    if (served.backend !== undefined) {
      assert.ok(hasPlace(reading), what);
      isBackendOf(reading, served, url, what);
      return true;
    }
    if (served.code >= 300) {
      assert.ok(served.code < 500, what);
      return false;
    }
    assert.ok(hasPlace(reading), what);
    if (method === 'HEAD' || served.text === '') return true;
    for (const line of verb === 'watch' ? served.text.trim().split('\n') : [served.text]) {
      const parsed = JSON.parse(line) as Shown;
      const shown = parsed.object ?? parsed;
      if (shown.kind === 'Status') {
        if (shown.details?.name !== undefined) assert.equal(shown.details.name, name, what);
      } else if (shown.items !== undefined) for (const item of shown.items) isOf(reading, item, what);
      else isOf(reading, shown, what);
    }
    return true;
  }

  function isBackendOf(reading: Reading, { backend }: Served, url: string, what: string): void {
    const { attributes, tail } = reading;
    const { group, resource, namespace, name, subresource } = attributes;
    assert.ok(backend !== undefined);
    if (group === 'agg.example.com') {
      assert.deepEqual([backend.host, backend.path], [POD_ADDRESSES.get('mine'), url], what);
      return;
    }
    const proxied = subresource === 'proxy';
    const isPods = proxied && resource !== 'nodes';
    assert.equal(backend.host, isPods ? POD_ADDRESSES.get(namespace) : NODE_ADDRESS, what);
    if (proxied) {
      assert.equal(backend.path.split('?', 1)[0], tail, what);
    } else assert.match(backend.path, new RegExp(`^/\\w+/${namespace}/${name}(?:[/?]|$)`), what);
  }

  const bodyOf = (method: string): string | undefined => {
    if (method === 'PATCH') return '{"metadata":{"labels":{"fuzz":"yes"}}}';
    return method === 'POST' || method === 'PUT' ? '{"metadata":{"name":"made"}}' : undefined;
  };

  it(`request attributes match the responses, for ${PATHS} paths`, { timeout: 300_000 }, async () => {
    const choices = new Choices(SEED);
    let count = 0;
    for (let index = 0; index < PATHS; index++) {
      const method = choices.one(METHODS);
      const path = somePath(choices);
      const writes = !['GET', 'HEAD', 'OPTIONS'].includes(method);
      const url = writes ? `${path}${path.includes('?') ? '&' : '?'}dryRun=All` : path;
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      authorised = [];
      const served = await inProcess.send(connection, method, url, { 'content-type': type }, bodyOf(method));
      if (judge(method, url, served)) count += 1;
    }
    assert.ok(count > PATHS / 10, `only ${count} of ${PATHS} paths served anything`);
  });

  it(`request attributes match the connections, for ${UPGRADES} upgrades`, { timeout: 120_000 }, async () => {
    const choices = new Choices(SEED + 1);
    let count = 0;
    for (let index = 0; index < UPGRADES; index++) {
      const method = choices.one(METHODS);
      const url = choices.chance(0.5) ? someStream(choices) : somePath(choices);
      if (WATCHED.has(new URLSearchParams(url.split('?')[1]).get('watch') ?? '')) continue;
      authorised = [];
      const served = await inProcess.upgrade(connection, method, url);
      if (judge(method, url, served)) count += 1;
    }
    assert.ok(count > UPGRADES / 20, `only ${count} of ${UPGRADES} upgrades led anywhere`);
  });
});
