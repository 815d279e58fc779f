import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type FoundObject, LISTED, ObjectSearch, pageOf } from '../../../../src/console/data/api/search.ts';
import { objectSource } from '../../../../src/console/shell/object-source.ts';
import { ManualClock } from '../../../client/clocks.ts';
import { FakeApi, json } from '../fake-api.ts';

const resource = (name: string, kind: string, shortNames: string[], scope = 'Namespaced') => ({
  resource: name,
  responseKind: { kind },
  scope,
  shortNames,
  verbs: ['list'],
});

/** `objects`: names by plural; each list answers with at most `limit` of them. */
function cluster(objects: Readonly<Record<string, readonly string[]>>) {
  const server = new FakeApi();
  server.answer = (url) => {
    if (url.pathname === '/api')
      return json({
        items: [
          {
            metadata: {},
            versions: [
              {
                version: 'v1',
                resources: [
                  resource('pods', 'Pod', ['po']),
                  resource('nodes', 'Node', ['no'], 'Cluster'),
                  resource('secrets', 'Secret', []),
                ],
              },
            ],
          },
        ],
      });
    if (url.pathname === '/apis') return json({ items: [] });
    const plural = url.pathname.split('/').at(-1) ?? '';
    const exact = /^metadata\.name=(.*)$/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1];
    const names = (objects[plural] ?? []).filter((name) => exact === undefined || name === exact);
    const limit = Number(url.searchParams.get('limit'));
    return json({
      items: names
        .slice(0, limit)
        .map((name) => ({ metadata: { name, namespace: plural === 'nodes' ? undefined : 'n' } })),
    });
  };
  const clock = new ManualClock();
  return { server, clock, search: new ObjectSearch(server.api, clock, () => 'n') };
}

const never = new AbortController().signal;
const namesOf = (found: readonly FoundObject[]): string[] => found.map(({ type, name }) => `${type.plural} ${name}`);

suite('the search for objects', () => {
  test('lists common kinds once, sorts exact names first, and leaves secrets out', async () => {
    const { server, clock, search } = cluster({
      pods: ['my-web', 'web-1', 'web'],
      nodes: ['web-node'],
      secrets: ['web-key'],
    });
    assert.deepEqual(namesOf(await search.find('web', never)), [
      'pods web',
      'pods web-1',
      'nodes web-node',
      'pods my-web',
    ]);
    const lists = () => server.requests.filter(({ url }) => url.searchParams.get('limit') === String(LISTED)).length;
    assert.equal(lists(), 2);
    await search.find('web-1', never);
    assert.equal(lists(), 2);
    await clock.advance(20_000);
    await search.find('web', never);
    assert.equal(lists(), 4);
  });

  test('finds an object by its exact name even beyond the limit of the list', async () => {
    const many = Array.from({ length: 2_000 }, (_, index) => `a-${index}`);
    const { search } = cluster({ pods: [...many, 'zebra'] });
    assert.deepEqual(namesOf(await search.find('zebra', never)), ['pods zebra']);
    assert.equal((await search.find('a-', never)).length, 25);
  });

  test('searches the chosen namespace if the user may not list all namespaces', async () => {
    const { server, search } = cluster({ pods: ['web'] });
    const { answer } = server;
    server.answer = (url, request) =>
      url.pathname === '/api/v1/pods'
        ? json({ kind: 'Status', code: 403, reason: 'Forbidden' }, 403)
        : answer(url, request);
    assert.deepEqual(namesOf(await search.find('web', never)), ['pods web']);
    assert.ok(server.requests.some(({ url }) => url.pathname === '/api/v1/namespaces/n/pods'));
  });

  test('searches a single kind by a short name, also an uncommon kind', async () => {
    const { search } = cluster({ pods: ['web'], nodes: ['web'], secrets: ['web-key'] });
    assert.deepEqual(namesOf(await search.find('no web', never)), ['nodes web']);
    assert.deepEqual(namesOf(await search.find('secret web', never)), ['secrets web-key']);
  });

  test('sends no selector for hostile texts, and no request for short texts', async () => {
    const { server, search } = cluster({ pods: ['web'] });
    assert.deepEqual(await search.find('w', never), []);
    assert.equal(server.requests.length, 0);
    for (const text of ['web,metadata.namespace=x', '../../secrets', 'a=b&limit=1', '<img src=x>'])
      assert.deepEqual(await search.find(text, never), [], text);
    assert.ok(server.requests.every(({ url }) => !url.search.includes('fieldSelector')));
  });

  test('a search result links to the page of its kind, with hostile names encoded', () => {
    const found = (plural: string, group: string, namespace = 'n'): FoundObject => ({
      type: { group, version: 'v1', plural, kind: plural, namespaced: namespace !== '' },
      name: 'a/../?b#c',
      namespace,
    });
    const name = 'a%2F..%2F%3Fb%23c';
    assert.equal(pageOf(found('pods', '')), `/pods/n/${name}`);
    assert.equal(pageOf(found('pods', 'metrics.k8s.io')), `/resources/metrics.k8s.io/v1/pods/${name}?ns=n`);
    assert.equal(pageOf(found('nodes', '', '')), `/nodes/${name}`);
    assert.equal(pageOf(found('deployments', 'apps')), `/workloads/deployments/n/${name}`);
    assert.equal(pageOf(found('configmaps', '')), `/resources/core/v1/configmaps/${name}?ns=n`);
  });

  test('searches only for the last text during fast typing', async () => {
    const texts: string[] = [];
    const source = objectSource(
      (text) => {
        texts.push(text);
        return Promise.resolve([]);
      },
      () => '/',
    );
    await Promise.all([source('w'), source('we'), source('web')]);
    assert.deepEqual(texts, ['web']);
  });
});
