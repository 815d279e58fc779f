import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../../src/api/meta/object.ts';
import type { ListOptions, ResourceClient } from '../../../../src/client/types.ts';
import { ContentScan } from '../../../../src/controllers/garbage-collection/namespace/content-scan.ts';
import { systemClock as clock } from '../../../../src/host/process/process.ts';

const kindOf = (plural: string) => ({
  group: '',
  version: 'v1',
  kind: plural,
  plural,
  namespaced: true,
  verbs: new Set(['list', 'delete']),
});
const KINDS = [kindOf('maps'), kindOf('secrets'), { ...kindOf('nodes'), namespaced: false }];

interface Server {
  /** Namespaces of the objects of each kind. */
  readonly objects: Record<string, string[]>;
  /** Kinds whose lists fail. */
  readonly broken?: readonly string[];
  readonly errors?: readonly string[];
}

function startSurvey({ objects, broken = [], errors = [] }: Server) {
  const calls: string[] = [];
  const abort = new AbortController();
  const scan = new ContentScan({
    clock,
    signal: abort.signal,
    discover: async () => {
      calls.push('discover');
      return { kinds: KINDS, errors };
    },
    client: ({ plural }) =>
      ({
        list: async ({ namespace, limit = 0, continue: token = '0' }: ListOptions) => {
          calls.push(`${plural} ${namespace ?? '*'}`);
          if (broken.includes(plural)) throw new Error('no list');
          const all = (objects[plural] ?? []).filter((each) => namespace === undefined || each === namespace);
          const end = Number(token) + limit;
          const left = all.length - end;
          return {
            items: all.slice(Number(token), end).map((each): KubeObject => ({ metadata: { namespace: each } })),
            metadata: left > 0 ? { continue: String(end), remainingItemCount: left } : {},
          };
        },
      }) as unknown as ResourceClient<KubeObject>,
  });
  const kindsIn = async (namespace: string) => [...(await scan.find(namespace)).kinds].map(({ plural }) => plural);
  return { scan, calls, abort, kindsIn };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index}`);

test('a scan of one namespace lists only objects of the namespace, and does not request cluster-scoped kinds', async () => {
  const { kindsIn, calls } = startSurvey({ objects: { maps: ['n0', 'other'], secrets: ['other'] } });
  assert.deepEqual(await kindsIn('n0'), ['maps']);
  assert.deepEqual(calls, ['discover', 'maps n0', 'secrets n0']);
});

test('a scan lists each kind once for many namespaces', async () => {
  const { kindsIn, calls } = startSurvey({ objects: { maps: ['n3', 'other'], secrets: ['n3', 'n4'] } });
  const found = await Promise.all(names(100).map(kindsIn));
  assert.deepEqual(calls, ['discover', 'maps *', 'secrets *']);
  assert.deepEqual(found[3], ['maps', 'secrets']);
  assert.deepEqual(found[4], ['secrets']);
  assert.deepEqual(found[5], []);
});

test('a scan reads further pages of a cluster-wide list if single lists per namespace need more requests', async () => {
  const objects = { maps: [...Array(999).fill('other'), 'n7', ...Array(20).fill('other')] };
  const many = startSurvey({ objects });
  assert.deepEqual((await Promise.all(names(100).map(many.kindsIn)))[7], ['maps']);
  assert.equal(many.calls.filter((call) => call === 'maps *').length, 3);
  const few = startSurvey({ objects: { maps: [...Array(50_000).fill('other'), 'n7'] } });
  assert.deepEqual((await Promise.all(names(10).map(few.kindsIn)))[7], ['maps']);
  assert.equal(few.calls.filter((call) => call === 'maps *').length, 1);
  assert.equal(few.calls.filter((call) => call.startsWith('maps n')).length, 10);
});

test('a scan reports a kind as present if its list fails', async () => {
  const { kindsIn, scan } = startSurvey({ objects: {}, broken: ['secrets'], errors: ['example.com/v1: no'] });
  assert.deepEqual(await kindsIn('n0'), ['secrets']);
  for (const found of await Promise.all(names(20).map(kindsIn))) assert.deepEqual(found, ['secrets']);
  assert.deepEqual((await scan.find('n0')).discoveryErrors, ['example.com/v1: no']);
});

test('starts a new scan for a namespace that arrives during a scan', async () => {
  const objects: Record<string, string[]> = {};
  const { kindsIn, calls } = startSurvey({ objects });
  const first = kindsIn('n0');
  while (calls.length === 0) await Promise.resolve();
  objects['maps'] = ['n1'];
  assert.deepEqual(await kindsIn('n1'), ['maps']);
  await first;
  assert.equal(calls.filter((call) => call === 'discover').length, 2);
});

test('rejects waiting namespaces when the controller stops', async () => {
  const { scan, abort } = startSurvey({ objects: {} });
  await scan.find('n0');
  const waiting = scan.find('n1');
  abort.abort();
  await assert.rejects(waiting);
});
