import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  EMPTY_SET,
  type FieldSet,
  fieldDifference,
  fieldUnion,
  formatPath,
  intersection,
  isEmpty,
  members,
  parseFieldSet,
  recursiveDifference,
  sorted,
} from '../../../../src/apiserver/core/patch/field-set.ts';
import { Choices } from './choices.ts';

/** Oracle: a set of joined paths. */
const flat = (set: FieldSet): Set<string> => new Set([...members(set)].map((path) => path.join(' ')));

function build(paths: Iterable<string>): FieldSet {
  interface Node {
    member: boolean;
    readonly below: Map<string, Node>;
  }
  const root: Node = { member: false, below: new Map() };
  for (const path of paths) {
    let at = root;
    for (const element of path.split(' ')) {
      const next = at.below.get(element) ?? { member: false, below: new Map() };
      at.below.set(element, next);
      at = next;
    }
    at.member = true;
  }
  const render = (node: Node): FieldSet => ({
    ...(node.member && node.below.size > 0 ? { '.': {} } : {}),
    ...Object.fromEntries([...node.below].map(([element, below]) => [element, render(below)])),
  });
  return render(root);
}

const PATHS = [
  'f:a',
  'f:a f:b',
  'f:a f:b f:c',
  'f:a f:c',
  'f:b',
  'f:b k:{"name":"x"}',
  'f:b k:{"name":"x"} f:c',
  'f:c f:a f:b',
];

describe('field sets', () => {
  it('field sets support union, difference and intersection like sets of paths', () => {
    for (let seed = 1; seed <= 5000; seed++) {
      const choices = new Choices(seed);
      const a = new Set(choices.some(PATHS, 0, 6));
      const b = new Set(choices.some(PATHS, 0, 6));
      const [left, right] = [build(a), build(b)];
      const before = JSON.stringify([left, right]);
      assert.deepEqual(flat(left), a);
      assert.deepEqual(flat(fieldUnion(left, right)), a.union(b), `seed ${seed} union ${before}`);
      assert.deepEqual(flat(fieldDifference(left, right)), a.difference(b), `seed ${seed} difference ${before}`);
      assert.deepEqual(flat(intersection(left, right)), a.intersection(b), `seed ${seed} intersection ${before}`);
      const beneath = new Set(
        [...a].filter((path) => ![...b].some((cut) => path === cut || path.startsWith(`${cut} `))),
      );
      assert.deepEqual(flat(recursiveDifference(left, right)), beneath, `seed ${seed} recursive ${before}`);
      assert.deepEqual(
        JSON.parse(JSON.stringify(sorted(fieldUnion(left, right)))),
        JSON.parse(JSON.stringify(sorted(build(a.union(b))))),
      );
      assert.equal(JSON.stringify([left, right]), before);
    }
  });

  it('operations on field sets return the same object if nothing changes, and produce no empty nodes', () => {
    const set = build(PATHS);
    assert.equal(fieldUnion(set, build(['f:a'])), set);
    assert.equal(fieldDifference(set, build(['f:x', 'f:a f:z'])), set);
    assert.equal(intersection(set, build(PATHS)), set);
    assert.ok(isEmpty(fieldDifference(set, set)));
    assert.ok(isEmpty(intersection(set, EMPTY_SET)));
    assert.deepEqual(fieldDifference(build(['f:a f:b']), build(['f:a f:b'])), {});
  });

  it('field sets format paths as upstream does', () => {
    const path = ['f:spec', 'f:containers', 'k:{"containerPort":80,"protocol":"TCP"}', 'f:list', 'v:"x"', 'i:3'];
    assert.equal(formatPath(path), '.spec.containers[containerPort=80,protocol="TCP"].list[="x"][3]');
  });

  it('field sets sort as upstream does', () => {
    const set = { 'v:"b"': {}, 'k:{"a":1}': {}, 'f:b': {}, '.': {}, 'f:a': {}, 'v:"a"': {} };
    assert.deepEqual(Object.keys(sorted(set)), ['.', 'f:a', 'f:b', 'k:{"a":1}', 'v:"a"', 'v:"b"']);
  });

  it('the union of a field set with its subset returns the same object', () => {
    const text = '{"f:a":{},"f:b":{".":{},"f:c":{},"k:{\\"n\\":1}":{".":{},"f:d":{}}}}';
    const set = parseFieldSet(JSON.parse(text)) as FieldSet;
    assert.equal(fieldUnion(set, parseFieldSet(JSON.parse(text)) as FieldSet), set);
    assert.equal(fieldUnion(set, { 'f:b': { 'f:c': {} } }), set);
    assert.notEqual(fieldUnion(set, { 'f:b': { 'f:e': {} } }), set);
  });

  it('field sets are undefined for invalid input', () => {
    for (const text of ['[]', '1', '{"x":{}}', '{"f:a":1}', '{"__proto__":{}}', '{"f:a":{"constructor":{}}}']) {
      assert.equal(parseFieldSet(JSON.parse(text)), undefined, text);
    }
    assert.equal(parseFieldSet(JSON.parse(`${'{"f:a":'.repeat(5000)}{}${'}'.repeat(5000)}`)), undefined);
    assert.deepEqual(parseFieldSet({ 'f:__proto__': {} }), { 'f:__proto__': {} });
  });
});
