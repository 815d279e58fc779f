/** Cookies of the OAuth server, which has the same origin as proxied pages. */
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createHttp } from '../../../src/apiserver/io/http/index.ts';
import type { HttpPort, IncomingMessage } from '../../../src/apiserver/port.ts';
import { answerHeaders, passedHeaders, switchingHead } from '../../../src/apiserver/streaming/forward.ts';
import { issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { startServer } from '../harness.ts';

const answer = (rawHeaders: string[], headers: Record<string, unknown>): IncomingMessage =>
  ({ statusCode: 200, statusMessage: 'OK', headers, rawHeaders }) as unknown as IncomingMessage;

test('does not forward login cookies to a backend', () => {
  const cookie = '__Host-ssn=secret; theme=dark; __host-csrf=x;__Host-openid=y; lang=en';
  assert.equal(passedHeaders({ cookie })['cookie'], 'theme=dark; lang=en');
  assert.equal('cookie' in passedHeaders({ cookie: '__Host-ssn=secret' }), false);
  assert.equal(passedHeaders({ cookie: 'a=__Host-ssn=x' })['cookie'], 'a=__Host-ssn=x');
});

test('removes login cookies that a backend sets', () => {
  const cookies = ['__Host-ssn=mine; Path=/; Secure', ' __HOST-csrf=1', 'theme=dark; Path=/', 'x'];
  assert.deepEqual(answerHeaders(answer([], { 'set-cookie': cookies }))['set-cookie'], ['theme=dark; Path=/', 'x']);
  assert.equal('set-cookie' in answerHeaders(answer([], { 'set-cookie': ['__Host-ssn=mine'] })), false);
  const raw = ['Upgrade', 'x', 'Set-Cookie', '__Host-ssn=mine', 'set-cookie', 'theme=dark'];
  assert.equal(switchingHead(answer(raw, {})), 'HTTP/1.1 101 OK\r\nUpgrade: x\r\nset-cookie: theme=dark\r\n\r\n');
});

test('serves a proxied page that anonymous users can open with an opaque origin', async (t) => {
  const http = createHttp();
  const { backends } = http;
  // The real HTTP port rejects nodes at loopback addresses.
  const near: HttpPort = {
    listen: (options) => http.listen(options),
    backends: {
      publicAuthorities: backends.publicAuthorities,
      request: (request, body) => backends.request({ ...request, allowAddress: () => true }, body),
      upgrade: (request) => backends.upgrade(request),
    },
  };
  const server = await startServer({ http: near, config: { anonymous: 'all' } });
  t.after(() => server.stop());
  const pair = await issue(server.ca, {
    subject: { commonName: 'system:node:n1' },
    usages: ['server'],
    validity: lifetimeFrom(Date.now(), 1),
    names: { dns: [], ips: ['127.0.0.1'] },
  });
  const page = createServer({ cert: pair.certPem, key: pair.keyPem }, (_, response) =>
    response.setHeader('content-security-policy', "default-src 'self'").end('page'),
  );
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
  t.after(() => page.closeAllConnections());
  t.after(() => page.close());
  const { port: Port } = page.address() as AddressInfo;
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }];
  await server.call('POST', '/api/v1/nodes', {
    body: { metadata: { name: 'n1' }, status: { addresses, daemonEndpoints: { kubeletEndpoint: { Port } } } },
  });
  const path = '/api/v1/nodes/n1/proxy/page';
  const own = await server.call('GET', path);
  assert.equal(own.headers['content-security-policy'], "default-src 'self'", own.text);
  const group = 'rbac.authorization.k8s.io';
  const subjects = [{ kind: 'Group', apiGroup: group, name: 'system:unauthenticated' }];
  const rules = [{ apiGroups: [''], resources: ['nodes/proxy'], verbs: ['get'] }];
  await server.call('POST', `/apis/${group}/v1/clusterroles`, { body: { metadata: { name: 'page' }, rules } });
  const roleRef = { apiGroup: group, kind: 'ClusterRole', name: 'page' };
  const binding = { metadata: { name: 'page' }, roleRef, subjects };
  await server.call('POST', `/apis/${group}/v1/clusterrolebindings`, { body: binding });
  const opened = await server.call('GET', path, { as: null });
  assert.equal(opened.code, 200, opened.text);
  assert.equal(opened.headers['content-security-policy'], "default-src 'self', sandbox allow-forms allow-scripts");
});
