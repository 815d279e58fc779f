/** Order of events of different kinds on one connection. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startServer, type TestServer } from '../harness.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

interface Seen {
  readonly kind: string;
  readonly revision: number;
}

const session = (): ClientHttp2Session =>
  connect(server.url, { ca: server.ca.certPem, cert: server.admin.certPem, key: server.admin.keyPem });

/** Events of the watches on one connection, in order of arrival. */
async function watching(client: ClientHttp2Session, paths: readonly string[]): Promise<Seen[]> {
  const seen: Seen[] = [];
  await Promise.all(
    paths.map(async (path) => {
      const stream = client.request({ ':path': path });
      let text = '';
      stream.setEncoding('utf8');
      stream.on('data', (chunk: string) => {
        text += chunk;
        const lines = text.split('\n');
        text = lines.pop() ?? '';
        for (const line of lines) {
          const { object } = JSON.parse(line) as { object: { kind: string; metadata: { resourceVersion: string } } };
          seen.push({ kind: object.kind, revision: Number(object.metadata.resourceVersion) });
        }
      });
      await once(stream, 'response');
    }),
  );
  await sleep(100);
  seen.length = 0;
  return seen;
}

async function create(client: ClientHttp2Session, path: string, name: string): Promise<void> {
  const stream = client.request({ ':path': path, ':method': 'POST', 'content-type': 'application/json' });
  stream.end(JSON.stringify({ metadata: { name } }));
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  stream.resume();
  await once(stream, 'end');
  assert.equal(headers[':status'], 201);
}

const disorders = (seen: readonly Seen[]): Seen[] =>
  seen.filter(({ revision }, at) => revision < (seen[at - 1]?.revision ?? 0));

test('a client receives changes of several kinds in revision order, even under load', async () => {
  const plurals = ['configmaps', 'secrets', 'serviceaccounts'];
  const [watcher, writer] = [session(), session()];
  try {
    const seen = await watching(
      watcher,
      plurals.map((plural) => `/api/v1/${plural}?watch=true`),
    );
    for (let round = 0; round < 20; round++) {
      for (let step = 0; step < 3; step++) {
        const names = Array.from({ length: 6 }, (_, at) => ({ at, plural: plurals[(at + step) % plurals.length] }));
        await Promise.all(
          names.map(({ at, plural }) =>
            create(writer, `/api/v1/namespaces/default/${plural}`, `order-${round}-${step}-${at}`),
          ),
        );
      }
      await sleep(10);
    }
    for (let turns = 0; seen.length < 360 && turns < 100; turns++) await sleep(20);
    assert.equal(seen.length, 360);
    assert.deepEqual(disorders(seen), []);
  } finally {
    watcher.destroy();
    writer.destroy();
  }
});
