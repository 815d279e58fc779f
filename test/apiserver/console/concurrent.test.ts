/** Browsers load the page and its scripts at the same time, before they have an identity. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startServer, type TestServer } from '../harness.ts';

const contents = gzipSync('export {};');
const files = {
  manifest: {
    files: [{ name: 'assets/page.js', type: 'text/javascript', etag: 'e', offset: 0, length: contents.length }],
  },
  contents,
};

let server: TestServer;
before(async () => {
  server = await startServer({ loadConsole: () => files });
});
after(() => server.stop());

async function statusOf(client: ClientHttp2Session, path: string): Promise<number | string> {
  const stream = client.request({ ':path': path });
  const failed = once(stream, 'error').then(([error]) => String(error));
  const answered = once(stream, 'response').then(([headers]) => Number((headers as IncomingHttpHeaders)[':status']));
  stream.resume();
  return Promise.race([answered, failed]);
}

/** Statuses of `count` waves of ten requests on one connection without an identity. */
async function statuses(path: string, waves: number): Promise<ReadonlySet<number | string>> {
  const client = connect(server.url, { ca: server.ca.certPem });
  const seen = new Set<number | string>();
  try {
    for (let wave = 0; wave < waves && !client.closed; wave += 1) {
      const requests = Array.from({ length: 10 }, () => statusOf(client, path));
      for (const status of await Promise.all(requests)) seen.add(status);
    }
    if (client.closed) seen.add('closed');
  } finally {
    client.destroy();
  }
  return seen;
}

test('serves the files of the console concurrently on one anonymous connection', async () => {
  assert.deepEqual([...(await statuses('/console/assets/page.js', 5))], [200]);
});

test('closes an anonymous connection that requests too many files, or another path', async () => {
  assert.ok((await statuses('/console/assets/page.js', 60)).has('closed'));
  assert.ok((await statuses('/livez', 3)).has('closed'));
});
