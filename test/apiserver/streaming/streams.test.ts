import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { startServer, type TestServer } from '../harness.ts';

const PODS = '/api/v1/namespaces/default/pods';

interface Seen {
  readonly url: string;
  readonly client: string;
  readonly headers: Record<string, unknown>;
}

describe('streams to a kubelet', () => {
  let server: TestServer;
  let kubelet: Server;
  const seen: Seen[] = [];
  const upgraded = new Set<Duplex>();
  before(async () => {
    server = await startServer();
    const pair = await issue(server.ca, {
      subject: { commonName: 'system:node:n1' },
      usages: ['server'],
      names: { dns: [], ips: ['127.0.0.1'] },
      validity: lifetimeFrom(Date.now(), 1),
    });
    kubelet = createServer({
      cert: pair.certPem,
      key: pair.keyPem,
      ca: server.ca.certPem,
      requestCert: true,
      rejectUnauthorized: true,
    });
    const note = (request: IncomingMessage): void => {
      const client = String((request.socket as TLSSocket).getPeerCertificate().subject.CN);
      seen.push({ url: request.url ?? '', client, headers: request.headers as Record<string, unknown> });
    };
    kubelet.on('request', (request, response) => {
      note(request);
      if (request.url?.includes('missing') === true) {
        response.writeHead(404);
        response.end('no such log');
      } else if (request.url?.startsWith('/redirect') === true) {
        response.writeHead(302, { location: 'https://169.254.169.254/' });
        response.end();
      } else {
        response.writeHead(200, { 'content-type': 'text/plain' });
        response.write('one\n');
        setTimeout(() => response.end('two\n'), 20);
      }
    });
    kubelet.on('upgrade', (request, socket: Duplex, head: Buffer) => {
      note(request);
      upgraded.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => upgraded.delete(socket));
      if (request.url?.startsWith('/attach') === true) {
        socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nContent-Type: text/plain\r\n\r\nnope');
      } else if (request.url?.startsWith('/portForward') === true) {
        socket.end('HTTP/1.1 302 Found\r\nLocation: https://10.0.0.1/\r\nContent-Length: 0\r\n\r\n');
      } else {
        socket.write(
          'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\nfirst:',
        );
        socket.write(head);
        socket.on('data', (chunk) => socket.write(chunk));
        socket.on('end', () => socket.end());
      }
    });
    await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve));
    const { port } = kubelet.address() as AddressInfo;
    await server.call('POST', '/api/v1/nodes', {
      body: {
        metadata: { name: 'n1' },
        status: {
          addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
          daemonEndpoints: { kubeletEndpoint: { Port: port } },
        },
      },
    });
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { metadata: { name: 'default' } },
    });
    const containers = [
      { name: 'main', image: 'i' },
      { name: 'side', image: 'i' },
    ];
    for (const [name, extra] of [
      ['two', {}],
      ['one', { containers: containers.slice(0, 1) }],
    ] as const) {
      await server.call('POST', PODS, { body: { metadata: { name }, spec: { nodeName: 'n1', containers, ...extra } } });
    }
    await server.call('POST', PODS, { body: { metadata: { name: 'waiting' }, spec: { containers } } });
  });
  after(async () => {
    for (const socket of upgraded) socket.destroy();
    kubelet.closeAllConnections();
    await new Promise<void>((resolve) => kubelet.close(() => resolve()));
    await server.stop();
  });

  /** Sends raw bytes over TLS as admin and collects the response until the connection ends or `enough` returns true. */
  function converse(request: string, enough: (text: string, socket: TLSSocket) => boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect({
        host: '127.0.0.1',
        port: server.port,
        ca: server.ca.certPem,
        cert: server.admin.certPem,
        key: server.admin.keyPem,
        ALPNProtocols: ['http/1.1'],
      });
      let text = '';
      const done = (): void => {
        socket.destroy();
        resolve(text);
      };
      socket.on('error', reject);
      socket.on('close', () => resolve(text));
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        if (enough(text, socket)) done();
      });
      socket.setTimeout(5000, done);
      socket.write(request);
    });
  }
  const upgrade = (path: string, extra = ''): string =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nAuthorization: Bearer zzz\r\n${extra}\r\n`;

  it('proxies logs with their options and the kubelet client certificate', async () => {
    const answer = await server.call('GET', `${PODS}/two/log?container=side&follow=true&tailLines=5&pretty=true`);
    assert.deepEqual([answer.code, answer.text], [200, 'one\ntwo\n']);
    const last = seen.at(-1);
    assert.equal(last?.url, '/containerLogs/default/two/side?follow=true&tailLines=5');
    assert.equal(last?.client, 'system:kube-apiserver');
    assert.equal(last?.headers['authorization'], undefined);
    assert.match(
      (await server.call<{ message: string }>('GET', `${PODS}/two/log`)).body.message,
      /a container name must be specified.*\[main side\]/,
    );
    assert.equal((await server.call('GET', `${PODS}/one/log`)).code, 200);
    assert.equal((await server.call('GET', `${PODS}/two/log?container=other`)).code, 400);
    assert.equal((await server.call('GET', `${PODS}/waiting/log?container=main`)).code, 204);
    assert.equal((await server.call('GET', `${PODS}/none/log`)).code, 404);
    assert.equal((await server.call('GET', `${PODS}/one/exec?command=ls`)).code, 400);
  });

  it('forwards an upgraded connection byte by byte', async () => {
    const path = `${PODS}/two/exec?container=main&command=sh&command=-c&command=echo+%26&stdin=true&stdout=True&stderr=False&tty=false`;
    let sent = false;
    const text = await converse(upgrade(path), (received, socket) => {
      if (received.includes('first:') && !sent) {
        sent = true;
        socket.write(Buffer.from([0x80, 0x03, 0x00, 0xff]));
      }
      return received.endsWith('\x80\x03\x00\xff');
    });
    assert.match(text, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
    assert.match(text, /\r\nX-Stream-Protocol-Version: v4\.channel\.k8s\.io\r\n/);
    assert.ok(text.endsWith('first:\x80\x03\x00\xff'));
    const last = seen.at(-1);
    assert.equal(last?.url, '/exec/default/two/main?input=1&output=1&command=sh&command=-c&command=echo+%26');
    assert.equal(last?.headers['authorization'], undefined);
  });

  it('a rejected upgrade closes both connections, so that no second request follows', async () => {
    const smuggled = 'GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n';
    const text = await converse(upgrade(`${PODS}/one/attach`) + smuggled, () => false);
    assert.match(text, /^HTTP\/1\.1 403 .*\r\nConnection: close\r\n\r\nnope$/s);
    assert.ok(!seen.some((each) => each.url.includes('secrets')));
  });

  it('proxying to a backend does not follow redirects', async () => {
    const text = await converse(upgrade(`${PODS}/one/portforward`), () => false);
    assert.match(text, /^HTTP\/1\.1 502 /);
  });

  it('requires the create permission for a WebSocket although its request is a GET', async () => {
    const bob = await server.user('bob');
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
    await server.call('POST', `${rbac}/roles`, {
      body: { metadata: { name: 'x' }, rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods/exec'] }] },
    });
    await server.call('POST', `${rbac}/rolebindings`, {
      body: {
        metadata: { name: 'x' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'x' },
        subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
      },
    });
    const before_ = seen.length;
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'x',
      'sec-websocket-version': '13',
    };
    const answer = await server.call('GET', `${PODS}/one/exec?command=id`, { as: bob, headers });
    assert.equal(answer.code, 403);
    assert.equal(seen.length, before_);
    assert.equal((await server.call('GET', `${PODS}/one/exec?command=id`, { as: null, headers })).code, 401);
  });

  it('requires the create permission for an upgrade through a proxy', async () => {
    const carol = await server.user('carol');
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const resources = ['nodes/proxy', 'pods/proxy', 'services/proxy', 'pods/exec'];
    await server.call('POST', `${rbac}/clusterroles`, {
      body: { metadata: { name: 'reader' }, rules: [{ verbs: ['get', 'list', 'watch'], apiGroups: [''], resources }] },
    });
    await server.call('POST', `${rbac}/clusterrolebindings`, {
      body: {
        metadata: { name: 'reader' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' },
        subjects: [{ kind: 'User', name: 'carol', apiGroup: 'rbac.authorization.k8s.io' }],
      },
    });
    const before_ = seen.length;
    for (const protocol of ['websocket', 'SPDY/3.1']) {
      const headers = {
        connection: 'Upgrade',
        upgrade: protocol,
        'sec-websocket-key': 'x',
        'sec-websocket-version': '13',
      };
      for (const [path, code] of [
        ['/api/v1/nodes/n1/proxy/exec/default/one/main?command=id', 403],
        [`${PODS}/one:80/proxy/`, 403],
        ['/api/v1/namespaces/default/services/any/proxy/', 403],
        ['/api/v1/watch/nodes/n1/proxy/exec/default/one/main?command=id', 404],
        ['/api/v1/watch/namespaces/default/pods/one/exec?command=id', 404],
        ['/api/v1/namespaces/default/nodes/n1/proxy/exec/default/one/main?command=id', 404],
      ] as const) {
        const answer = await server.call<{ message: string }>('GET', path, { as: carol, headers });
        assert.equal(answer.code, code, `${protocol} ${path}: ${answer.text}`);
        if (code === 403) assert.match(answer.body.message, /cannot create resource/);
      }
    }
    assert.equal(seen.length, before_);
  });

  it('redirects the root of a backend to a path with a trailing slash', async () => {
    await server.call('POST', PODS, {
      body: { metadata: { name: 'page' }, spec: { nodeName: 'n1', containers: [{ name: 'a', image: 'i' }] } },
    });
    await server.call('PATCH', `${PODS}/page/status`, {
      raw: JSON.stringify({ status: { podIP: '192.0.2.7', podIPs: [{ ip: '192.0.2.7' }] } }),
      type: 'application/strategic-merge-patch+json',
    });
    for (const method of ['GET', 'HEAD']) {
      const answer = await server.call(method, `${PODS}/page/proxy?a=1`);
      assert.equal(answer.code, 301, method);
      assert.equal(answer.headers.location, `${PODS}/page/proxy/?a=1`);
    }
    assert.equal((await server.call('GET', `${PODS}/none/proxy`)).code, 404);
  });

  it('rejects proxying to loopback, link-local and control plane addresses', async () => {
    assert.equal((await server.call('GET', '/api/v1/nodes/n1/proxy/pods')).code, 403);
    for (const [name, podIP] of [
      ['p-loop', '127.0.0.1'],
      ['p-link', '169.254.169.254'],
      ['p-mapped', '::ffff:127.0.0.1'],
      ['p-hex', '::ffff:a9fe:a9fe'],
      ['p-service', '172.30.0.1'],
      ['p-master', '192.0.2.10'],
    ] as const) {
      await server.call('POST', PODS, {
        body: { metadata: { name }, spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] } },
      });
      await server.call('PATCH', `${PODS}/${name}/status`, {
        raw: JSON.stringify({ status: { podIP, podIPs: [{ ip: podIP }] } }),
        type: 'application/strategic-merge-patch+json',
      });
      const answer = await server.call<{ message: string }>('GET', `${PODS}/${name}:80/proxy/`);
      assert.equal(answer.code, 403, `${podIP}: ${answer.text}`);
      assert.match(answer.body.message, /is not allowed/);
    }
    assert.equal((await server.call('GET', '/api/v1/nodes/n1:2379/proxy/')).code, 403);
  });

  it('never treats an API server as a kubelet, even if a node registers its address and port', async () => {
    for (const [name, address] of [
      ['n-master', '192.0.2.10'],
      ['n-loop', '127.0.0.1'],
    ]) {
      await server.call('POST', '/api/v1/nodes', { body: { metadata: { name } } });
      await server.call('PATCH', `/api/v1/nodes/${name}/status`, {
        raw: JSON.stringify({
          status: {
            addresses: [{ type: 'InternalIP', address }],
            daemonEndpoints: { kubeletEndpoint: { Port: server.port } },
          },
        }),
        type: 'application/merge-patch+json',
      });
      await server.call('POST', PODS, {
        body: { metadata: { name: `on-${name}` }, spec: { nodeName: name, containers: [{ name: 'c', image: 'i' }] } },
      });
      for (const path of [`/api/v1/nodes/${name}/proxy/healthz`, `${PODS}/on-${name}/log`]) {
        const answer = await server.call<{ message: string }>('GET', path);
        assert.equal(answer.code, 403, `${path}: ${answer.text}`);
        assert.match(answer.body.message, /is not allowed/);
      }
    }
  });
});
