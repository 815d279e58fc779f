/** The doctor reaches registries as an image pull does, also through the proxy of the host. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { loadSettings } from '../../../src/host/config/settings.ts';
import { registryFacts } from '../../../src/host/doctor/network-facts.ts';

let root = '';
let registry: Server;
let proxy: Server;
/** Status with which the proxy answers; 0: it connects to the registry. */
let refusal = 0;
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'registry-facts-'));
  registry = createServer((_, response) => response.writeHead(401).end());
  proxy = createServer((request, response) => {
    const { host } = new URL(request.url ?? '');
    response.writeHead(refusal === 0 && host === 'mirror.example:5000' ? 401 : refusal).end();
  });
  proxy.on('connect', (_, socket, head) => {
    if (refusal !== 0) {
      socket.end(`HTTP/1.1 ${refusal} Refused\r\n\r\n`);
      return;
    }
    const target = connect(portOf(registry), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      target.write(head);
      target.pipe(socket).pipe(target);
    });
    for (const each of [socket, target]) each.on('error', () => undefined);
  });
  for (const server of [registry, proxy]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await mkdir(join(root, 'etc/origin'), { recursive: true });
});
after(async () => {
  for (const server of [registry, proxy]) {
    server.closeAllConnections();
    server.close();
  }
  await rm(root, { recursive: true });
});

/** The registry's name has no address, so only a proxy can reach it. */
async function facts(withProxy: boolean) {
  const lines = [
    'apiVersion: hyperedge.dev/v1',
    'kind: Bootstrap',
    'registries: {"mirror.example:5000": {insecure: true}}',
    ...(withProxy ? [`proxy: {httpProxy: "http://user:secret@127.0.0.1:${portOf(proxy)}"}`] : []),
  ];
  await writeFile(join(root, 'etc/origin/bootstrap.yaml'), lines.join('\n'), { mode: 0o600 });
  const [found] = await registryFacts({ settings: () => loadSettings({ root }) });
  return found;
}

test('reports no problem for a registry that only the proxy can reach, and hides the password', async () => {
  assert.deepEqual(await facts(true), {
    registry: 'mirror.example:5000',
    proxy: `http://(not shown)@127.0.0.1:${portOf(proxy)}`,
    problem: undefined,
  });
  assert.match((await facts(false))?.problem ?? '', /mirror\.example/);
});

for (const status of [407, 503]) {
  test(`reports a problem if a proxy answers with ${status}`, async () => {
    refusal = status;
    try {
      assert.match((await facts(true))?.problem ?? '', new RegExp(String(status)));
    } finally {
      refusal = 0;
    }
  });
}
