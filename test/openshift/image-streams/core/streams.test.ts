import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  latestEvent,
  parsePullSpec,
  planTriggers,
  recordFailure,
  recordImage,
  removeTag,
  setSpecTag,
  splitTagName,
  tagNames,
  tagsToImport,
} from '../../../../src/openshift/image-streams/core/index.ts';
import { numberTags } from '../../../../src/openshift/image-streams/kinds/imagestreams/index.ts';
import type { ImageStream } from '../../../../src/openshift/image-streams/kinds/imagestreams/types.ts';

function sequence(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

const imageOf = (letter: string) => ({
  image: `sha256:${letter.repeat(64)}`,
  pullSpec: `lab.local/app@sha256:${letter.repeat(64)}`,
});

test('records the history of an image stream tag like a plain list of images', () => {
  const below = sequence(11);
  for (let round = 0; round < 50; round++) {
    const stream: ImageStream = {};
    const oracle = new Map<string, string[]>();
    for (let step = 0; step < 60; step++) {
      const tag = ['a', 'b', 'c'][below(3)] ?? 'a';
      const found = imageOf(['0', '1', '2', '3'][below(4)] ?? '0');
      const images = oracle.get(tag) ?? [];
      if (below(10) === 0) {
        assert.equal(removeTag(stream, tag), oracle.delete(tag));
        continue;
      }
      const isNew = images[0] !== found.image;
      assert.equal(recordImage(stream, tag, found, step, '2026-01-01T00:00:00Z'), isNew);
      oracle.set(tag, isNew ? [found.image, ...images].slice(0, 50) : images);
      assert.equal(latestEvent(stream, tag)?.generation, step);
    }
    assert.deepEqual(tagNames(stream), [...oracle.keys()].sort());
    for (const { tag = '', items = [] } of stream.status?.tags ?? [])
      assert.deepEqual(
        items.map(({ image }) => image),
        oracle.get(tag),
      );
  }
});

test('imports an image stream tag when its spec changes, and retries a failed import', () => {
  const stream: ImageStream = { metadata: { name: 's', generation: 1 } };
  const from = { kind: 'DockerImage', name: 'lab.local/app:1' };
  setSpecTag(stream, { name: '1', from });
  numberTags(stream, undefined);
  const due = (): [string | undefined, boolean][] => tagsToImport(stream).map(({ tag, again }) => [tag.name, again]);
  assert.deepEqual(due(), [['1', false]]);
  recordFailure(stream, '1', { reason: 'NotFound', message: 'no' }, 1, '2026-01-01T00:00:00Z');
  assert.deepEqual(due(), [['1', true]]);
  recordImage(stream, '1', imageOf('0'), 1, '2026-01-01T00:00:00Z');
  assert.deepEqual(due(), []);
  const before = structuredClone(stream);
  setSpecTag(stream, { name: '1', from: { ...from, name: 'lab.local/app:2' } });
  numberTags(stream, before);
  assert.deepEqual(due(), [['1', false]]);
  setSpecTag(stream, { name: '1', from, reference: true });
  assert.deepEqual(due(), []);
});

test('adds the default registry, repository and tag to image names, and rejects invalid names', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const names: readonly [string, string | undefined][] = [
    ['busybox', 'docker.io/library/busybox:latest'],
    ['lab.local/app:1', 'lab.local/app:1'],
    ['localhost:5000/a/b', 'localhost:5000/a/b:latest'],
    [`lab.local/app:1@${digest}`, `lab.local/app@${digest}`],
    ['docker://lab.local/app:1', 'lab.local/app:1'],
    ['lab.local/App:1', undefined],
    ['lab.local/app:1@sha256:short', undefined],
    ['../etc', undefined],
    ['a b', undefined],
    ['x'.repeat(500), undefined],
  ];
  for (const [name, whole] of names) assert.equal(parsePullSpec(name)?.name, whole, name);
  assert.deepEqual(splitTagName('app:1'), { stream: 'app', tag: '1' });
  assert.equal(splitTagName('app'), undefined);
  assert.equal(splitTagName('app:1:2'), undefined);
  assert.deepEqual(splitTagName('app', 'latest'), { stream: 'app', tag: 'latest' });
});

test('an image trigger changes only the image of the container that it names', () => {
  const workload = (triggers: unknown, path: 'spec' | 'job' = 'spec') => {
    const containers = [
      { name: 'a', image: 'old' },
      { name: 'b', image: 'old' },
    ];
    const template = { spec: { containers } };
    const spec = path === 'spec' ? { template } : { jobTemplate: { spec: { template } } };
    const annotations = { 'image.openshift.io/triggers': JSON.stringify(triggers) };
    return { metadata: { name: 'w', namespace: 'ns', annotations }, spec };
  };
  const pullSpec = (namespace: string, tag: string): string | undefined =>
    tag === 'app:1' ? `${namespace}/new` : undefined;
  const images = (object: unknown): string[] =>
    [...JSON.stringify(object).matchAll(/"image":"([^"]*)"/g)].map(([, one = '']) => one);
  const from = { kind: 'ImageStreamTag', name: 'app:1' };
  const field = (suffix: string, base = 'spec.template.spec'): string => `${base}.containers${suffix}.image`;
  const cases: readonly [unknown, string[] | undefined][] = [
    [[{ from, fieldPath: field('[?(@.name=="b")]') }], ['old', 'ns/new']],
    [[{ from, fieldPath: field('[0]') }], ['ns/new', 'old']],
    [[{ from: { ...from, namespace: 'other' }, fieldPath: field('[0]') }], ['other/new', 'old']],
    [[{ from, fieldPath: field('[0]'), paused: true }], undefined],
    [[{ from: { ...from, name: 'app:2' }, fieldPath: field('[0]') }], undefined],
    [[{ from, fieldPath: field('[7]') }], undefined],
    [[{ from, fieldPath: 'metadata.name' }], undefined],
    [[{ from, fieldPath: '__proto__.x.containers[0].image' }], undefined],
    ['no list', undefined],
    [[null, 3], undefined],
  ];
  for (const [triggers, expected] of cases) {
    const object = workload(triggers);
    const planned = planTriggers(object, pullSpec);
    assert.deepEqual(planned === undefined ? undefined : images(planned), expected, JSON.stringify(triggers));
    assert.deepEqual(images(object), ['old', 'old']);
    if (planned !== undefined) assert.equal(planTriggers(planned, pullSpec), undefined);
  }
  const job = workload([{ from, fieldPath: field('[1]', 'spec.jobTemplate.spec.template.spec') }], 'job');
  assert.deepEqual(images(planTriggers(job, pullSpec)), ['old', 'ns/new']);
});
