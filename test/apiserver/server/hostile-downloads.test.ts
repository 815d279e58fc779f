/** Clients that request files of releases and catalogs but do not read them. */
import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect } from 'node:http2';
import { test } from 'node:test';
import { startServer } from '../harness.ts';

const PATH = `/hyperedge/releases/sha256/${'a'.repeat(64)}`;

test('limits the open files of a client that does not read, and closes its files', { timeout: 60_000 }, async () => {
  let opened = 0;
  async function* content(): AsyncGenerator<Uint8Array> {
    opened += 1;
    try {
      for (let sent = 0; sent < 1024; sent += 1) yield Buffer.alloc(64 << 10);
    } finally {
      opened -= 1;
    }
  }
  const open = async () => ({ size: 1024 * (64 << 10), content: content() });
  const main = await startServer({ releases: { open, openCatalog: open } });
  const sessions: ClientHttp2Session[] = [];
  const stalled = (): Promise<number> => {
    const session = connect(main.url, { ca: main.ca.certPem, cert: main.admin.certPem, key: main.admin.keyPem });
    sessions.push(session);
    session.on('error', () => {});
    const stream = session.request({ ':path': PATH });
    stream.on('error', () => {});
    stream.pause();
    return new Promise((resolve) => stream.on('response', (headers) => resolve(headers[':status'] ?? 0)));
  };
  try {
    const statuses = await Promise.all(Array.from({ length: 20 }, stalled));
    assert.equal(statuses.filter((status) => status === 200).length, 8, String(statuses));
    assert.equal(statuses.filter((status) => status === 429).length, 12, String(statuses));
    assert.equal(opened, 8);
    for (const session of sessions) session.destroy();
    for (let tries = 0; opened > 0 && tries < 200; tries += 1) await new Promise((done) => setTimeout(done, 20));
    assert.equal(opened, 0);
    assert.equal(await stalled(), 200);
  } finally {
    for (const session of sessions) session.destroy();
    await main.stop();
  }
});
