import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { manifests } from '../../../../src/kubelet/io/files/manifests.ts';

const LIMITS = { timeoutMs: 5_000, maxBytes: 1024 };

test('stops reading a manifest that is larger than the limit', async () => {
  let sent = 0;
  const server = createServer((request, response) => {
    if (request.url === '/pod') return response.end('kind: Pöd');
    const flood = (): void => {
      while (!response.destroyed && sent < 256 * 1024 * 1024) {
        sent += 65_536;
        if (!response.write(Buffer.alloc(65_536))) return;
      }
      response.end();
    };
    response.on('drain', flood);
    return flood();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    assert.equal(await manifests.fetch(`${url}/pod`, LIMITS), 'kind: Pöd');
    await assert.rejects(manifests.fetch(`${url}/endless`, LIMITS), {
      message: `${url}/endless: larger than 1024 bytes`,
    });
    assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were sent`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
