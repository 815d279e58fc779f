/** Image digests from the reports of nodes, which are not trusted by themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { reportedDigest } from '../../../src/apiserver/computed-resources/image-streams/resolve.ts';
import { parsePullSpec } from '../../../src/openshift/image-streams/core/index.ts';

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;
const node = (name: string, names: readonly string[], isMaster = false): Node => ({
  metadata: { name, ...(isMaster ? { labels: { 'node-role.kubernetes.io/master': 'true' } } : {}) },
  status: { images: [{ names: [...names], sizeBytes: 1 }] },
});
const APP = 'docker.io/library/app';
const has = (name: string, letter: string, isMaster = false): Node =>
  node(name, [`${APP}:1`, `${APP}@${digest(letter)}`], isMaster);
const resolved = (nodes: readonly Node[], name = 'app:1'): string => {
  const wanted = parsePullSpec(name);
  if (wanted === undefined) throw new Error(name);
  const found = reportedDigest(nodes, wanted);
  return found.digest ?? found.problem;
};

test('ignores a report of a tag with an image of another repository', () => {
  const liar = node('liar', [`${APP}:1`, `evil.lab/app@${digest('e')}`]);
  assert.match(resolved([liar, node('other', [])]), /not found in the image store/);
  assert.match(resolved([liar, node('other', [])], `app@${digest('e')}`), /not found in the image store/);
  assert.equal(resolved([liar, has('a', 'a'), has('b', 'a')]), digest('a'));
});

test('the report of one node does not change the image of a tag, except from a master or the only node', () => {
  const liar = has('liar', 'e');
  assert.match(resolved([liar, node('other', [])]), /is reported by one node only/);
  assert.match(resolved([liar, has('a', 'a')]), /is not the same image/);
  assert.match(resolved([liar, has('a', 'a'), has('b', 'a')]), /is not the same image/);
  assert.equal(resolved([liar, has('m', 'a', true)]), digest('a'));
  assert.equal(resolved([has('a', 'a')]), digest('a'));
  assert.equal(resolved([has('a', 'a'), has('b', 'a'), node('c', [])]), digest('a'));
  assert.match(resolved([has('m', 'a', true), has('n', 'b', true)]), /is not the same image/);
});

test('a digest resolves to itself although nodes report another digest', () => {
  const liar = node('liar', [`${APP}@${digest('a')}`, `${APP}@${digest('e')}`]);
  assert.equal(resolved([liar, node('other', [])], `app@${digest('a')}`), digest('a'));
});
