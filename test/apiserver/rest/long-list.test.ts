/** Lists of several megabytes, which are produced while they are sent. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { ListSource, listItems } from '../../../src/apiserver/rest/reads/list-items.ts';
import type { CachedObject } from '../../../src/apiserver/watch-cache/cached-object.ts';
import { Choices } from '../core/patch/choices.ts';
import { startServer, type TestServer } from '../harness.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
/** The objects together exceed the limit of cached lists. */
const COUNT = 45;
const FILLER = 'x'.repeat(200_000);

describe('a list of nine megabytes', () => {
  let server: TestServer;
  const expected: object[] = [];

  before(async () => {
    server = await startServer();
    for (let n = 0; n < COUNT; n++) {
      const body = {
        metadata: { name: `map-${String(n).padStart(2, '0')}`, labels: { odd: String(n % 2 === 1) } },
        data: { filler: FILLER, text: 'ü\u2028"' },
      };
      const { code, body: made } = await server.call('POST', MAPS, { body });
      assert.equal(code, 201);
      const { apiVersion: _a, kind: _k, ...item } = made;
      expected.push(item);
    }
  });
  after(() => server.stop());

  it('a list of nine megabytes contains every object once, in order', async () => {
    const { code, headers, body } = await server.call<{ kind: string; items: object[] }>('GET', MAPS);
    assert.equal(code, 200);
    assert.equal(headers['content-type'], 'application/json');
    // The length is not known in advance.
    assert.equal(headers['content-length'], undefined);
    assert.equal(body.kind, 'ConfigMapList');
    assert.deepEqual(body.items, expected);
  });

  it('a list of nine megabytes contains the objects selected by label and page', async () => {
    const odd = await server.call<{ items: object[] }>('GET', `${MAPS}?labelSelector=odd%3Dtrue`);
    assert.deepEqual(
      odd.body.items,
      expected.filter((_, n) => n % 2 === 1),
    );
    const page = await server.call<{ items: object[]; metadata: { remainingItemCount: number } }>(
      'GET',
      `${MAPS}?limit=30`,
    );
    assert.deepEqual(page.body.items, expected.slice(0, 30));
    assert.equal(page.body.metadata.remainingItemCount, COUNT - 30);
  });

  it('a list of nine megabytes is compressed if the client accepts it', async () => {
    const { headers, bytes } = await server.call('GET', MAPS, { headers: { 'accept-encoding': 'gzip' } });
    assert.equal(headers['content-encoding'], 'gzip');
    assert.deepEqual(JSON.parse(gunzipSync(bytes).toString('utf8')).items, expected);
  });

  it('a list of nine megabytes is rejected in formats that need the entire list in memory', async () => {
    const pretty = await server.call('GET', `${MAPS}?pretty=true`);
    const yaml = await server.call('GET', MAPS, { headers: { accept: 'application/yaml' } });
    assert.deepEqual([pretty.code, yaml.code], [406, 406]);
  });
});

const kind = { definition: {}, apiVersion: 'v1', kind: 'Thing', alias: undefined } as unknown as Parameters<
  typeof listItems
>[0];
const HEAD = Buffer.from('{"items":[');
const TAIL = Buffer.from(']}\n');

function things(count: number, touched = new Set<number>()): CachedObject[] {
  const thing = (n: number): Buffer =>
    Buffer.from(`{"apiVersion":"v1","kind":"Thing","n":${n},"text":"${'x'.repeat((n * 37) % 900)}"}`);
  return Array.from(
    { length: count },
    (_, n) =>
      ({
        get bytes() {
          touched.add(n);
          return thing(n);
        },
      }) as CachedObject,
  );
}

it('a list has the same content in pieces of any size', () => {
  for (let seed = 0; seed < 30; seed++) {
    const choices = new Choices(seed);
    const objects = things(choices.below(300));
    const source = new ListSource(kind, objects, HEAD, TAIL);
    const pieces: Buffer[] = [];
    for (;;) {
      const target = Buffer.alloc(1 + choices.below(3000));
      const length = source.fill(target);
      if (length === 0) break;
      pieces.push(target.subarray(0, length));
    }
    const whole = Buffer.concat([HEAD, ...listItems(kind, objects), TAIL]);
    assert.ok(Buffer.concat(pieces).equals(whole), `seed ${seed}`);
  }
});

it('reads an object of a list only when its bytes are due', () => {
  const touched = new Set<number>();
  const source = new ListSource(kind, things(10_000, touched), HEAD, TAIL);
  assert.equal(source.fill(Buffer.alloc(10_000)), 10_000);
  assert.ok(touched.size > 10 && touched.size < 200, `${touched.size} objects`);
});
