/** Indices of shared informers: one function under one name. No informer is started, so no API server is needed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createApiClient, createInformerFactory, type InformerFactory } from '../../../src/client/index.ts';
import { type ControllersDeps, DEFAULT_OPTIONS } from '../../../src/controllers/framework/deps.ts';
import { type ControllerHandle, createHandle } from '../../../src/controllers/framework/framework.ts';
import { indexByClaim, podsWithClaim } from '../../../src/controllers/framework/owner-indices.ts';
import { controllers } from '../../../src/host/controllers/registry.ts';
import { systemClock as clock, seededRandom } from '../../client/clocks.ts';

const log = silentLog;
const random = seededRandom(1);

function shared(): { readonly informers: InformerFactory; handle(name: string): ControllerHandle } {
  const client = createApiClient({ server: 'http://127.0.0.1:1', userAgent: 'test', log, clock });
  const informers = createInformerFactory({ client, log, clock, random });
  const deps = { client, informers, log, clock, random } as unknown as ControllersDeps;
  const spec = { reads: [resources.pods], writes: [], prepare: () => () => {} };
  return { informers, handle: (name) => createHandle({ ...spec, name }, deps, DEFAULT_OPTIONS) };
}

test('rejects two functions under one index name, with the names of both controllers', () => {
  const { handle } = shared();
  const [first, second] = [handle('first'), handle('second')];
  first.addIndex(first.informer(resources.pods), 'app', ({ metadata }) => [metadata?.labels?.['app'] ?? '']);
  assert.throws(
    () => second.addIndex(second.informer(resources.pods), 'app', ({ metadata }) => [metadata?.name ?? '']),
    /pods: index "app" of second exists already for first/,
  );
  assert.throws(() => second.addIndex(second.informer(resources.pods), 'app', () => []), /exists already for first/);
});

test('adds an index once for controllers with the same function, and rejects a different function under its name', () => {
  const { handle } = shared();
  const pods = handle('first').informer(resources.pods);
  indexByClaim(pods);
  indexByClaim(handle('second').informer(resources.pods));
  assert.deepEqual(podsWithClaim(pods, 'n/claim'), []);
  const third = handle('third');
  const byName = ({ metadata }: Pod): string[] => [metadata?.name ?? ''];
  assert.throws(() => third.addIndex(pods, 'claim', byName), /pods: index "claim" of third exists already/);
  third.addIndex(pods, 'name', byName);
  assert.doesNotThrow(() => handle('fourth').addIndex(pods, 'name', byName));
});

test('all controllers can be prepared with the same informers', () => {
  const { informers } = shared();
  const missing = new Proxy({}, { get: () => () => undefined });
  const parts = { client: missing, recorder: missing, machineConfig: missing };
  const deps = { informers, log, clock, random, ...parts } as unknown as ControllersDeps;
  const names = controllers.map((spec) => {
    spec.prepare(createHandle(spec, deps, DEFAULT_OPTIONS));
    return spec.name;
  });
  assert.ok(names.length > 60);
});
