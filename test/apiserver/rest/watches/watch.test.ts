import assert from 'node:assert/strict';
import { request } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { slack } from '../../../support/slack.ts';
import { startServer, type TestServer } from '../../harness.ts';

interface WatchLine {
  type: string;
  object: {
    kind: string;
    code?: number;
    metadata: { name?: string; resourceVersion: string; annotations?: Record<string, string> };
    rows?: { cells: unknown[] }[];
    columnDefinitions?: unknown[] | null;
    spec?: unknown;
  };
}

const MAPS = '/api/v1/namespaces/default/configmaps';

class Watch {
  readonly lines: WatchLine[] = [];
  ended = false;
  #wake: () => void = () => {};
  readonly #request;

  constructor(server: TestServer, path: string, accept?: string) {
    let rest = '';
    this.#request = request(
      {
        host: '127.0.0.1',
        port: server.port,
        path,
        ca: server.ca.certPem,
        cert: server.admin.certPem,
        key: server.admin.keyPem,
        agent: false,
        headers: accept === undefined ? {} : { accept },
      },
      (response) => {
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          const parts = (rest + chunk).split('\n');
          rest = parts.pop() ?? '';
          for (const part of parts) this.lines.push(JSON.parse(part) as WatchLine);
          this.#wake();
        });
        response.on('end', () => {
          this.ended = true;
          this.#wake();
        });
        response.on('error', () => {});
      },
    );
    this.#request.on('error', () => {});
    this.#request.end();
  }

  async until(done: (lines: WatchLine[]) => boolean): Promise<WatchLine[]> {
    const deadline = performance.now() + 5000 * slack();
    while (!done(this.lines)) {
      if (performance.now() > deadline)
        throw new Error(`not seen: ${JSON.stringify(this.lines.map((each) => [each.type, each.object.metadata]))}`);
      await Promise.race([new Promise<void>((resolve) => (this.#wake = resolve)), sleep(100)]);
    }
    return this.lines;
  }

  close(): void {
    this.#request.destroy();
  }
}

describe('watches', () => {
  let server: TestServer;
  const open: Watch[] = [];
  before(async () => {
    server = await startServer();
  });
  after(async () => {
    for (const each of open) each.close();
    await server.stop();
  });
  const watch = (path: string, accept?: string): Watch => {
    const started = new Watch(server, path, accept);
    open.push(started);
    return started;
  };
  const create = async (name: string, labels: Record<string, string> = {}) => {
    const answer = await server.call<{ metadata: { resourceVersion: string } }>('POST', MAPS, {
      body: { metadata: { name, labels } },
    });
    assert.equal(answer.code, 201);
    return Number(answer.body.metadata.resourceVersion);
  };
  const label = (name: string, labels: Record<string, string | null>) =>
    server.call('PATCH', `${MAPS}/${name}`, {
      raw: JSON.stringify({ metadata: { labels } }),
      type: 'application/merge-patch+json',
    });
  const summary = (lines: WatchLine[]) => lines.map((each) => `${each.type} ${each.object.metadata.name}`);

  it('a watch continues from a resourceVersion without gaps or duplicates', async () => {
    const from = await create('w-a');
    await label('w-a', { x: '1' });
    const stream = watch(`${MAPS}?watch=true&resourceVersion=${from}`);
    await stream.until((lines) => lines.length >= 1);
    await create('w-b');
    await server.call('DELETE', `${MAPS}/w-a`);
    const lines = await stream.until((seen) => seen.length >= 3);
    assert.deepEqual(summary(lines), ['MODIFIED w-a', 'ADDED w-b', 'DELETED w-a']);
    const versions = lines.map((each) => Number(each.object.metadata.resourceVersion));
    assert.deepEqual(
      versions,
      [...versions].sort((a, b) => a - b),
    );
    assert.equal(new Set(versions).size, 3);
  });

  it('a label change that enters or leaves a selector becomes an ADDED or DELETED event', async () => {
    const from = await create('w-c', { tier: 'back' });
    const stream = watch(`${MAPS}?watch=true&resourceVersion=${from}&labelSelector=tier%3Dfront`);
    await label('w-c', { tier: 'front' });
    await label('w-c', { tier: 'front', other: 'x' });
    await label('w-c', { tier: 'back' });
    await create('w-d', { tier: 'back' });
    await label('w-c', { tier: 'front' });
    await server.call('DELETE', `${MAPS}/w-c`);
    const lines = await stream.until((seen) => seen.length >= 5);
    assert.deepEqual(summary(lines), ['ADDED w-c', 'MODIFIED w-c', 'DELETED w-c', 'ADDED w-c', 'DELETED w-c']);
  });

  it('a watch with sendInitialEvents sends the objects first, then a bookmark, then events', async () => {
    await create('w-e', { first: 'yes' });
    const stream = watch(
      `${MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=first`,
    );
    await stream.until((lines) => lines.some((each) => each.type === 'BOOKMARK'));
    await create('w-f', { first: 'yes' });
    const lines = await stream.until((seen) => seen.length >= 3);
    assert.deepEqual(
      lines.map((each) => each.type),
      ['ADDED', 'BOOKMARK', 'ADDED'],
    );
    assert.equal(lines[1]?.object.metadata.annotations?.['k8s.io/initial-events-end'], 'true');
    assert.equal(lines[1]?.object.kind, 'ConfigMap');
  });

  it('a watch sends initial events that exceed the unread limit of a client', async () => {
    const data = { text: 'y'.repeat(900_000) };
    for (let index = 0; index < 14; index++) {
      await server.call('POST', MAPS, { body: { metadata: { name: `big-${index}`, labels: { big: 'yes' } }, data } });
    }
    const stream = watch(`${MAPS}?watch=true&labelSelector=big`);
    await sleep(50);
    await create('big-last', { big: 'yes' });
    const lines = await stream.until((seen) => seen.length >= 15);
    assert.equal(lines.at(-1)?.object.metadata.name, 'big-last');
    assert.equal(stream.ended, false);
    await server.call('DELETE', `${MAPS}?labelSelector=big`);
  });

  it('a watch ends at its timeout, with a last bookmark', async () => {
    const stream = watch(
      `${MAPS}?watch=true&resourceVersion=${await create('w-g')}&timeoutSeconds=3&allowWatchBookmarks=true`,
    );
    await stream.until(() => stream.ended);
    assert.equal(stream.lines.at(-1)?.type, 'BOOKMARK');
  });

  it('watches without a timeout end after the server’s minimum, or up to twice as long', async () => {
    const impatient = await startServer({ config: { minWatchSeconds: 0.05 } });
    const stream = new Watch(impatient, `${MAPS}?watch=true&resourceVersion=0`);
    try {
      await stream.until(() => stream.ended);
    } finally {
      stream.close();
      await impatient.stop();
    }
  });

  it('an open watch counts as a long-running request in metrics', async () => {
    const secrets = '/api/v1/namespaces/default/secrets';
    const stream = watch(
      `${secrets}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan`,
    );
    await stream.until((lines) => lines.length >= 1);
    const figure =
      'apiserver_longrunning_requests{component="apiserver",group="",resource="secrets",scope="namespace",subresource="",verb="WATCH",version="v1"} 1\n';
    assert.ok((await server.call('GET', '/metrics')).text.includes(figure));
    stream.close();
    const end = performance.now() + 5000 * slack();
    while ((await server.call('GET', '/metrics')).text.includes(figure)) assert.ok(performance.now() < end);
  });

  it('a watch from a compacted revision receives 410 in the stream', async () => {
    const stream = watch(`${MAPS}?watch=true&resourceVersion=1`);
    await stream.until(() => stream.ended || stream.lines.length > 0);
    // The cache is loaded at the current revision, so a watch can start only after that revision.
    const fresh = await startServer({ store: server.store });
    try {
      const old = new Watch(fresh, `${MAPS}?watch=true&resourceVersion=2`);
      const [line] = await old.until((lines) => lines.length > 0);
      assert.deepEqual([line?.type, line?.object.code], ['ERROR', 410]);
      await old.until(() => old.ended);
    } finally {
      await fresh.stop(true);
    }
  });

  it('a watch may return tables, with column definitions once, and metadata only', async () => {
    const table = watch(`${MAPS}?watch=true&labelSelector=form`, 'application/json;as=Table;v=v1;g=meta.k8s.io');
    const partial = watch(
      `${MAPS}?watch=true&labelSelector=form`,
      'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    );
    await sleep(100);
    await create('w-h', { form: 'x' });
    await create('w-i', { form: 'x' });
    const rows = await table.until((lines) => lines.length >= 2);
    assert.equal(rows[0]?.object.rows?.[0]?.cells[0], 'w-h');
    assert.ok(Array.isArray(rows[0]?.object.columnDefinitions));
    assert.equal(rows[1]?.object.columnDefinitions, null);
    const metadata = await partial.until((lines) => lines.length >= 2);
    assert.equal(metadata[0]?.object.kind, 'PartialObjectMetadata');
  });

  it('disconnects a watch client that does not read, without affecting other clients', async () => {
    const from = await create('w-j');
    const watchers = async (): Promise<number> => {
      const { text } = await server.call('GET', '/metrics');
      return Number(/apiserver_registered_watchers\{resource="configmaps"\} (\d+)/.exec(text)?.[1] ?? 0);
    };
    const others = await watchers();
    const lazy = request({
      host: '127.0.0.1',
      port: server.port,
      path: `/api/v1/configmaps?watch=true&resourceVersion=${from}`,
      ca: server.ca.certPem,
      cert: server.admin.certPem,
      key: server.admin.keyPem,
      agent: false,
    });
    lazy.on('response', (response) => {
      response.pause();
      response.on('error', () => {});
    });
    lazy.on('error', () => {});
    lazy.end();
    const eager = watch(`${MAPS}?watch=true&resourceVersion=${from}&fieldSelector=metadata.name%3Dw-last`);
    while ((await watchers()) < others + 2) await sleep(20);
    const text = 'x'.repeat(900_000);
    for (let index = 0; index < 32; index++) {
      await server.call('PUT', `${MAPS}/w-j`, {
        body: { metadata: { name: 'w-j' }, data: { text: `${index}${text}` } },
      });
    }
    assert.equal(await watchers(), others + 1);
    lazy.destroy();
    await create('w-last');
    await eager.until((lines) => lines.length === 1);
  });
});
