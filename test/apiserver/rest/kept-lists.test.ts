/** Memory of cached lists and versions: slices of Node's shared pool would keep megabytes alive. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinKinds } from '../../../src/api/registry/index.ts';
import { schemaOf } from '../../../src/api/schema/index.ts';
import { bytesAs, type ServedKind } from '../../../src/apiserver/pipeline/kinds.ts';
import { messageOf } from '../../../src/apiserver/rest/reads/messages.ts';
import { WholeLists } from '../../../src/apiserver/rest/reads/whole-lists.ts';
import { KindCache } from '../../../src/apiserver/watch-cache/kind-cache.ts';
import { toStoreKey } from '../../../src/base/brand.ts';

const PREFIX = '/registry/events/';

test('a cached list or object version does not keep a larger buffer in memory', () => {
  const definition = builtinKinds.find(({ kind, group }) => kind === 'Event' && group === '');
  assert.ok(definition !== undefined);
  const cache = new KindCache({ prefix: PREFIX, namespaced: true, fieldReaders: {} });
  const value = Buffer.from('{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"ns"},"reason":"r"}');
  cache.applyPut(toStoreKey(`${PREFIX}ns/e`), value, 5, 5);
  const { version, group, kind, plural } = definition;
  const served: ServedKind = {
    definition,
    presented: definition,
    version,
    group,
    kind,
    plural,
    apiVersion: 'v1',
    schema: undefined,
    alias: undefined,
    cache,
  };
  const objects = cache.list(undefined);
  const lists = new WholeLists();
  const items = lists.items(served, cache, undefined, { objects });
  assert.equal(items?.toString(), '{"metadata":{"resourceVersion":"5","name":"e","namespace":"ns"},"reason":"r"}');
  assert.equal(items?.buffer.byteLength, items?.length);
  assert.equal(lists.items(served, cache, undefined, { objects }), items);

  const [object] = objects;
  const [alias] = definition.aliases ?? [];
  assert.ok(object !== undefined && alias !== undefined);
  const other = { ...served, alias, apiVersion: `${alias.group}/${alias.version}` };
  const bytes = bytesAs(other, object);
  assert.equal(JSON.parse(bytes.toString()).apiVersion, 'events.k8s.io/v1');
  assert.equal(bytes.buffer.byteLength, bytes.length);
  assert.equal(bytesAs(other, object), bytes);

  const message = messageOf({ ...served, schema: schemaOf(definition) }, object);
  assert.ok(message.length > 0);
  assert.equal(message.buffer.byteLength, message.length);
});
