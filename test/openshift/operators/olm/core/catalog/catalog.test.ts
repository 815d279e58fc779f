import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readBlob } from '../../../../../../src/openshift/operators/olm/core/catalog/blobs.ts';
import { type Catalog, CatalogBuilder } from '../../../../../../src/openshift/operators/olm/core/catalog/catalog.ts';
import {
  channelNamed,
  installable,
  successors,
} from '../../../../../../src/openshift/operators/olm/core/catalog/graph.ts';
import { legacyDocuments } from '../../../../../../src/openshift/operators/olm/core/catalog/legacy.ts';
import { parseVersion } from '../../../../../../src/openshift/operators/olm/core/catalog/semver.ts';
import { jsonSplitter, yamlSplitter } from '../../../../../../src/openshift/operators/olm/core/splitter.ts';
import { generator } from '../../../../../support/random.ts';

const NOWHERE = { file: 0, offset: 0, length: 0 };

function catalogOf(documents: readonly unknown[]): Catalog {
  const builder = new CatalogBuilder();
  for (const each of documents) builder.add(readBlob(each), NOWHERE);
  return builder.finish();
}

const bundle = (name: string, version: string, properties: readonly object[] = []) => ({
  schema: 'olm.bundle',
  package: 'web',
  name,
  properties: [{ type: 'olm.package', value: { packageName: 'web', version } }, ...properties],
});

const web = (entries: readonly object[], versions: readonly string[], more: readonly object[] = []) => [
  { schema: 'olm.package', name: 'web', defaultChannel: 'stable' },
  { schema: 'olm.channel', package: 'web', name: 'stable', entries },
  ...versions.map((version) => bundle(`web.v${version}`, version)),
  ...more,
];

const namesOf = (bundles: readonly { readonly name: string }[]): string[] => bundles.map(({ name }) => name);

test('splits a catalog file into the same documents for any chunk size', () => {
  const documents = [{ a: '}"\\' }, { b: { c: ['{', '\n'] } }, { d: 'ü€😀' }];
  const text = ` ${documents.map((each) => JSON.stringify(each, undefined, 2)).join('\n,')}\n`;
  const yaml = 'a: 1\n---\n\nb: |\n  --- no\n--- # comment\n c: 2\n---   \nd: 3\n----\n---';
  const random = generator(3);
  for (let round = 0; round < 300; round++) {
    for (const [make, source] of [
      [jsonSplitter, text],
      [yamlSplitter, yaml],
    ] as const) {
      const bytes = Buffer.from(source);
      const splitter = make(1 << 20);
      const found: { offset: number; text: string }[] = [];
      const take = (list: ReturnType<typeof splitter.push>): void => {
        for (const { offset, bytes: own } of list) {
          found.push({ offset, text: Buffer.from(own).toString() });
          assert.deepEqual(Buffer.from(own), bytes.subarray(offset, offset + own.length));
        }
      };
      for (let at = 0; at < bytes.length; ) {
        const next = Math.min(bytes.length, at + 1 + Math.floor(random() * 9));
        // The reader reuses its buffer.
        const piece = Buffer.from(bytes.subarray(at, next));
        take(splitter.push(piece));
        piece.fill(0);
        at = next;
      }
      take(splitter.end());
      if (make === jsonSplitter)
        assert.deepEqual(
          found.map((each) => JSON.parse(each.text) as object),
          documents,
        );
      else
        assert.deepEqual(
          found.map((each) => each.text),
          ['a: 1\n', '\nb: |\n  --- no\n--- # comment\n c: 2\n', 'd: 3\n----\n'],
        );
    }
  }
});

test('rejects catalog documents that are too large, truncated or not objects', () => {
  assert.throws(() => jsonSplitter(10).push(Buffer.from('{"a":"0123456789"}')), /larger than 10 bytes/);
  assert.throws(() => yamlSplitter(10).push(Buffer.from('a: 0123456789012')), /larger than 10 bytes/);
  assert.throws(() => jsonSplitter(10).push(Buffer.from('[1]')), /expected a JSON object/);
  const unfinished = jsonSplitter(100);
  unfinished.push(Buffer.from('{"a":{'));
  assert.throws(() => unfinished.end(), /has no end/);
});

test('finds the updates of a bundle by replaces, skips and skipRange', () => {
  const catalog = catalogOf(
    web(
      [
        { name: 'web.v1.0.0' },
        { name: 'web.v1.1.0', replaces: 'web.v1.0.0' },
        { name: 'web.v1.2.0', replaces: 'web.v1.0.0', skips: ['web.v1.1.0'] },
        { name: 'web.v2.0.0', replaces: 'web.v1.2.0', skipRange: '>=1.1.0 <2.0.0' },
      ],
      ['1.0.0', '1.1.0', '1.2.0', '2.0.0'],
    ),
  );
  assert.deepEqual(catalog.problems, []);
  const owner = catalog.packages.get('web');
  const channel = owner === undefined ? undefined : channelNamed(owner, '');
  assert.ok(owner && channel);
  assert.equal(channel.head, 'web.v2.0.0');
  assert.deepEqual(namesOf(installable(owner, channel, '')), ['web.v2.0.0', 'web.v1.2.0', 'web.v1.0.0']);
  assert.deepEqual(namesOf(installable(owner, channel, 'web.v1.1.0')), ['web.v1.1.0']);
  assert.deepEqual(namesOf(installable(owner, channel, 'web.v9.0.0')), []);
  const from = (version: string): string[] =>
    namesOf(successors(owner, channel, { name: `web.v${version}`, version: parseVersion(version) }));
  assert.deepEqual(from('1.0.0'), ['web.v1.2.0']);
  assert.deepEqual(from('1.1.0'), ['web.v2.0.0', 'web.v1.2.0']);
  assert.deepEqual(from('1.2.0'), ['web.v2.0.0']);
  assert.deepEqual(from('2.0.0'), []);
  // Version 1.3.0 is in no channel, but in the skipRange of the bundle.
  assert.deepEqual(from('1.3.0'), ['web.v2.0.0']);
  assert.deepEqual(from('3.0.0'), []);
  assert.equal(channelNamed(owner, 'beta'), undefined);
});

test('excludes invalid packages of a catalog and keeps valid ones', () => {
  const cases: readonly (readonly [documents: readonly unknown[], problem: RegExp])[] = [
    [web([{ name: 'web.v1.0.0' }], []), /package web: channel stable: bundle web.v1.0.0 does not exist/],
    [
      web([{ name: 'web.v1.0.0' }, { name: 'web.v2.0.0' }], ['1.0.0', '2.0.0']),
      /channel stable: has several heads: web.v1.0.0, web.v2.0.0/,
    ],
    [
      web(
        [
          { name: 'web.v1.0.0', replaces: 'web.v2.0.0' },
          { name: 'web.v2.0.0', replaces: 'web.v1.0.0' },
        ],
        ['1.0.0', '2.0.0'],
      ),
      /has no head: replaces is a cycle/,
    ],
    [
      web(
        [
          { name: 'web.v1.0.0', replaces: 'web.v2.0.0' },
          { name: 'web.v2.0.0', replaces: 'web.v1.0.0' },
          { name: 'web.v3.0.0', replaces: 'web.v2.0.0' },
        ],
        ['1.0.0', '2.0.0', '3.0.0'],
      ),
      /replaces is a cycle/,
    ],
    [web([{ name: 'web.v1.0.0' }], ['1.0.0']).slice(1), /has no document of schema olm.package/],
    [web([{ name: 'web.v1.0.0' }], ['1.0.0'], [bundle('web.v1.0.0', '1.0.0')]), /bundle web.v1.0.0 is defined twice/],
    [web([{ name: 'web.v1.0.0', skipRange: 'nonsense' }], ['1.0.0']), /skipRange "nonsense" .* is not a version range/],
    [
      web(
        [{ name: 'web.v1.0.0' }],
        [],
        [bundle('web.v1.0.0', '1.0.0', [{ type: 'olm.constraint', value: { sql: { rule: 'true' } } }])],
      ),
      /constraint sql is not supported/,
    ],
    [
      web(
        [{ name: 'web.v1.0.0' }],
        [],
        [bundle('web.v1.0.0', '1.0.0', [{ type: 'olm.constraint', value: { cel: { rule: ' ' } } }])],
      ),
      /constraint cel has no rule/,
    ],
    [
      [
        { schema: 'olm.package', name: 'web', defaultChannel: 'beta' },
        ...web([{ name: 'web.v1.0.0' }], ['1.0.0']).slice(1),
      ],
      /default channel "beta" does not exist/,
    ],
    [[{ schema: 'olm.package', name: '../../etc' }], /name "\.\.\/\.\.\/etc" is not a name/],
    [[7], /a document is not an object/],
    [[{}], /a document has no schema/],
  ];
  const good = [
    { schema: 'olm.package', name: 'other', defaultChannel: 'c' },
    { schema: 'olm.channel', package: 'other', name: 'c', entries: [{ name: 'other.v1.0.0' }] },
    {
      schema: 'olm.bundle',
      package: 'other',
      name: 'other.v1.0.0',
      properties: [{ type: 'olm.package', value: { packageName: 'other', version: '1.0.0' } }],
    },
    { schema: 'io.example.custom', anything: true },
  ];
  for (const [documents, problem] of cases) {
    const catalog = catalogOf([...documents, ...good]);
    assert.match(catalog.problems.join('\n'), problem);
    assert.deepEqual([...catalog.packages.keys()], ['other'], String(problem));
  }
});

test('accepts package and channel names that are names of prototype properties, such as constructor', () => {
  const documents = JSON.parse(
    '[{"schema":"olm.package","name":"constructor","defaultChannel":"toString"},{"schema":"olm.channel","package":"constructor","name":"toString","entries":[{"name":"valueOf","__proto__":{"replaces":"x"}}]},{"schema":"olm.bundle","package":"constructor","name":"valueOf","properties":[{"type":"olm.package","value":{"packageName":"constructor","version":"1.0.0"}}]}]',
  ) as unknown[];
  const catalog = catalogOf(documents);
  assert.deepEqual(catalog.problems, []);
  assert.equal(catalog.packages.get('constructor')?.channels[0]?.head, 'valueOf');
});

test('converts a catalog ConfigMap of the older OLM format to a catalog', () => {
  const csv = (version: string, replaces?: string) => ({
    metadata: { name: `web.v${version}` },
    spec: {
      version,
      replaces,
      customresourcedefinitions: {
        owned: [{ name: 'webs.lab.example', version: 'v1', kind: 'Web' }],
        required: [{ name: 'dbs.lab.example', version: 'v1', kind: 'Db' }],
      },
    },
  });
  const documents = legacyDocuments(
    [{ packageName: 'web', channels: [{ name: 'alpha', currentCSV: 'web.v2.0.0' }] }],
    [csv('2.0.0', 'web.v1.0.0'), csv('1.0.0')],
    [{ kind: 'CustomResourceDefinition', metadata: { name: 'webs.lab.example' } }],
  );
  const catalog = catalogOf(documents);
  assert.deepEqual(catalog.problems, []);
  const owner = catalog.packages.get('web');
  assert.equal(owner?.defaultChannel, 'alpha');
  assert.deepEqual(namesOf(owner.channels[0]?.entries ?? []), ['web.v2.0.0', 'web.v1.0.0']);
  const found = owner.bundles.get('web.v2.0.0');
  assert.deepEqual(found?.provides, ['lab.example/v1/Web']);
  assert.deepEqual(found?.requires, [{ type: 'gvk', gvk: 'lab.example/v1/Db' }]);
  assert.equal(found?.hasObjects, true);
});
