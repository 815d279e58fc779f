/** Watches and logs over WebSocket, as browsers use them: messages contain the body. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type RawData, WebSocket } from 'ws';
import type { JsonObject } from '../../../src/api/meta/object.ts';
import { decodeProtobuf } from '../../../src/apiserver/http/protobuf/decode.ts';
import { issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { startServer, type TestServer } from '../harness.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

describe('read-only WebSockets', () => {
  let server: TestServer;
  let kubelet: Server;
  before(async () => {
    server = await startServer();
    const pair = await issue(server.ca, {
      subject: { commonName: 'system:node:n1' },
      usages: ['server'],
      names: { dns: [], ips: ['127.0.0.1'] },
      validity: lifetimeFrom(Date.now(), 1),
    });
    kubelet = createServer({ cert: pair.certPem, key: pair.keyPem }, (request, response) => {
      const fails = request.url?.includes('/fails/') === true;
      response.writeHead(fails ? 400 : 200, { 'content-type': 'text/plain' });
      response.end(fails ? 'container is waiting' : 'one\ntwo\n');
    });
    await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve));
    const status = {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: (kubelet.address() as AddressInfo).port } },
    };
    await server.call('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' }, status } });
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { metadata: { name: 'default' } },
    });
    for (const name of ['logs', 'fails']) {
      const spec = { nodeName: 'n1', containers: [{ name: 'main', image: 'i' }] };
      await server.call('POST', '/api/v1/namespaces/default/pods', { body: { metadata: { name }, spec } });
    }
  });
  after(async () => {
    kubelet.closeAllConnections();
    await new Promise<void>((resolve) => kubelet.close(() => resolve()));
    await server.stop();
  });

  function open(path: string, protocols: string[] = [], headers: Record<string, string> = {}): WebSocket {
    return new WebSocket(`wss://127.0.0.1:${server.port}${path}`, protocols, {
      ca: server.ca.certPem,
      cert: server.admin.certPem,
      key: server.admin.keyPem,
      headers,
    });
  }

  /** All messages until the server closes, and the close code. */
  async function readAll(socket: WebSocket): Promise<{ messages: (string | Buffer)[]; code: number }> {
    const messages: (string | Buffer)[] = [];
    socket.on('message', (data: RawData, isBinary) =>
      messages.push(isBinary ? (data as Buffer) : (data as Buffer).toString('utf8')),
    );
    const [code] = (await once(socket, 'close')) as [number];
    return { messages, code };
  }

  /** The HTTP response to a rejected upgrade. */
  async function refusal(socket: WebSocket): Promise<{ code: number | undefined; text: string }> {
    socket.on('error', () => {});
    const [, response] = (await once(socket, 'unexpected-response')) as [
      unknown,
      AsyncIterable<Buffer> & { statusCode?: number },
    ];
    let text = '';
    for await (const chunk of response) text += chunk.toString('utf8');
    socket.terminate();
    return { code: response.statusCode, text };
  }

  const logOf = (pod: string): string => `/api/v1/namespaces/default/pods/${pod}/log?container=main`;

  it('read-only WebSockets return logs, raw or in base64', async () => {
    for (const protocols of [[], ['binary.k8s.io']]) {
      const socket = open(logOf('logs'), protocols);
      const { messages, code } = await readAll(socket);
      assert.equal(socket.protocol, protocols[0] ?? '');
      assert.equal(code, 1000);
      assert.equal((messages[0] as Buffer).length, 0);
      assert.ok(messages.every((each) => typeof each !== 'string'));
      assert.equal(Buffer.concat(messages as Buffer[]).toString('utf8'), 'one\ntwo\n');
    }
    // A browser sends its token as a subprotocol, which must not be selected.
    const encoded = await readAll(
      open(logOf('logs'), ['base64url.bearer.authorization.k8s.io.eHh4', 'base64.binary.k8s.io']),
    );
    assert.equal(encoded.messages[0], '');
    const text = encoded.messages.map((each) => Buffer.from(each as string, 'base64').toString('utf8')).join('');
    assert.equal(text, 'one\ntwo\n');
  });

  it('read-only WebSockets are rejected with an HTTP response', async () => {
    const waiting = await refusal(open(logOf('fails')));
    assert.equal(waiting.code, 400);
    assert.equal(JSON.parse(waiting.text).message, 'container is waiting');
    assert.equal((await refusal(open(logOf('nobody')))).code, 404);
    const unknown = await refusal(open(logOf('logs'), ['v9.unknown']));
    assert.equal(unknown.code, 403);
    assert.match(unknown.text, /v9\.unknown.*binary\.k8s\.io/);
    const anonymous = new WebSocket(`wss://127.0.0.1:${server.port}${MAPS}?watch=1`, { ca: server.ca.certPem });
    assert.equal((await refusal(anonymous)).code, 401);
    assert.equal((await refusal(open(MAPS))).code, 400);
  });

  /** Returns the first `count` messages, then disconnects. */
  async function take(socket: WebSocket, count: number): Promise<(string | Buffer)[]> {
    const messages: (string | Buffer)[] = [];
    await new Promise<void>((resolve, reject) => {
      socket.on('close', () => reject(new Error(`closed after ${messages.length} messages`)));
      socket.on('message', (data: RawData, isBinary) => {
        messages.push(isBinary ? (data as Buffer) : (data as Buffer).toString('utf8'));
        if (messages.length === count) resolve();
      });
    });
    socket.close();
    return messages;
  }

  it('read-only WebSockets send one event per message', async () => {
    const made = await server.call<{ metadata: JsonObject }>('POST', MAPS, {
      body: { metadata: { name: 'first' }, data: { text: 'line\nbreak' } },
    });
    const from = String(made.body.metadata['resourceVersion']);
    const socket = open(`${MAPS}?watch=1&resourceVersion=${from}`, ['any']);
    const events = take(socket, 20);
    await once(socket, 'open');
    assert.equal(socket.protocol, 'any');
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        server.call('POST', MAPS, { body: { metadata: { name: `m${index}` }, data: { large: 'x'.repeat(4_000) } } }),
      ),
    );
    const types = (await events).map((each) => (JSON.parse(each as string) as { type: string }).type);
    assert.deepEqual(new Set(types), new Set(['ADDED']));

    const state = await take(open(`${MAPS}?watch=1`), 21);
    const names = state.map((each) => (JSON.parse(each as string) as { object: JsonObject }).object['metadata']);
    assert.equal(new Set(names.map((each) => (each as JsonObject)['name'])).size, 21);
    const framed = await take(open(`${MAPS}?watch=1`, [], { accept: PROTOBUF }), 21);
    // The message contains the event without the length prefix of the byte stream.
    const bytes = framed[0] as Buffer;
    const magic = bytes.indexOf('k8s\0', 'latin1');
    assert.ok(magic > 0);
    assert.equal(decodeProtobuf(bytes.subarray(magic))['kind'], 'ConfigMap');
  });

  it('read-only WebSockets end at the timeout of the watch', async () => {
    const { code } = await readAll(open(`${MAPS}?watch=1&timeoutSeconds=1`));
    assert.equal(code, 1000);
  });

  it('read-only WebSockets end when the client disconnects', async () => {
    const socket = open(`${MAPS}?watch=1`);
    await once(socket, 'message');
    socket.close();
    const [code] = (await once(socket, 'close')) as [number];
    assert.equal(code, 1005);
    const abrupt = open(`${MAPS}?watch=1`);
    await once(abrupt, 'message');
    abrupt.terminate();
    assert.equal((await server.call('POST', MAPS, { body: { metadata: { name: 'after' } } })).code, 201);
  });
});
