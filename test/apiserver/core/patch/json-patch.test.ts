import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, JsonValue } from '../../../../src/api/meta/object.ts';
import { ApiError } from '../../../../src/api/meta/status.ts';
import { jsonPatch, mergePatch } from '../../../../src/apiserver/core/patch/index.ts';
import { Choices } from './choices.ts';

const parse = (text: string): JsonObject => JSON.parse(text);

function failure(run: () => unknown): ApiError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: 'no error was thrown' });
}

/** Oracle: RFC 6902, where every operation walks a fresh copy from its root. Undefined if the patch does not fit. */
function oracle(document: JsonValue, patch: readonly JsonObject[]): JsonValue | undefined {
  let current: JsonValue = structuredClone(document);
  const tokens = (pointer: JsonValue | undefined): string[] =>
    String(pointer)
      .split('/')
      .slice(1)
      .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  /** Index of a number token. Negative numbers count from the end. */
  const place = (token: string, count: number): number => {
    if (!/^[+-]?\d+$/.test(token)) return Number.NaN;
    return Number(token) < 0 ? count + Number(token) : Number(token);
  };
  const read = (path: readonly string[]): JsonValue | undefined => {
    let at: JsonValue | undefined = current;
    for (const token of path) {
      if (Array.isArray(at)) at = at[place(token, at.length)];
      else if (typeof at === 'object' && at !== null) at = Object.hasOwn(at, token) ? at[token] : undefined;
      else return undefined;
    }
    return at;
  };
  const cut = (path: readonly string[]): boolean => {
    if (read(path) === undefined) return false;
    const last = path.at(-1);
    const parent = read(path.slice(0, -1));
    if (last === undefined) current = null;
    else if (Array.isArray(parent)) parent.splice(place(last, parent.length), 1);
    else delete (parent as JsonObject)[last];
    return true;
  };
  const put = (path: readonly string[], value: JsonValue): boolean => {
    const last = path.at(-1);
    const parent = read(path.slice(0, -1));
    if (last === undefined) {
      current = value;
      return true;
    }
    if (Array.isArray(parent)) {
      const index = last === '-' ? parent.length : place(last, parent.length + 1);
      if (!(index >= 0 && index <= parent.length)) return false;
      parent.splice(index, 0, value);
      return true;
    }
    if (typeof parent !== 'object' || parent === null) return false;
    parent[last] = value;
    return true;
  };
  for (const step of patch) {
    const path = tokens(step['path']);
    const from = tokens(step['from']);
    const value = structuredClone(step['value'] ?? null);
    switch (step['op']) {
      case 'add':
        if (!put(path, value)) return undefined;
        break;
      case 'remove':
        if (!cut(path)) return undefined;
        break;
      case 'replace':
        // As in upstream's library, a missing key is added, but a list item must exist.
        {
          const last = path.at(-1) ?? '';
          const parent = read(path.slice(0, -1));
          // The index is computed before an item is removed, because negative indexes depend on the length.
          const at = Array.isArray(parent) ? [...path.slice(0, -1), String(place(last, parent.length))] : path;
          if ((!cut(path) && Array.isArray(parent)) || !put(at, value)) return undefined;
        }
        break;
      case 'copy': {
        const found = read(from);
        if (found === undefined || !put(path, structuredClone(found))) return undefined;
        break;
      }
      case 'move': {
        const found = read(from);
        const inside = path.length > from.length && from.every((token, index) => token === path[index]);
        if (found === undefined || inside) return undefined;
        if (String(step['from']) === String(step['path'])) break;
        if (!cut(from) || !put(path, found)) return undefined;
        break;
      }
      default: {
        try {
          assert.deepEqual(read(path) ?? null, value);
        } catch {
          return undefined;
        }
      }
    }
  }
  return typeof current === 'object' && current !== null && !Array.isArray(current) ? current : undefined;
}

function randomPointer(choices: Choices, document: JsonValue): string {
  let pointer = '';
  let at = document;
  for (let depth = choices.below(4); depth > 0; depth--) {
    if (typeof at !== 'object' || at === null) break;
    const keys: string[] = Array.isArray(at) ? [...at.keys()].map(String) : Object.keys(at);
    const key =
      choices.chance(0.2) || keys.length === 0
        ? choices.one(['a', 'new', '0', '1', '-', '01', '-1', '-2'])
        : choices.one(keys);
    pointer += `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    at = (Array.isArray(at) ? at[Number(key)] : Object.hasOwn(at, key) ? at[key] : null) ?? null;
  }
  return pointer;
}

describe('JSON patch', () => {
  it('a JSON patch has the same result as a reference implementation, and does not change its arguments', () => {
    let fitting = 0;
    for (let seed = 1; seed <= 4000; seed++) {
      const choices = new Choices(seed);
      const document = choices.object(3, true);
      const patch = Array.from({ length: 1 + choices.below(4) }, (): JsonObject => {
        const op = choices.one(['add', 'remove', 'replace', 'move', 'copy', 'test']);
        const path = randomPointer(choices, document);
        if (op === 'remove') return { op, path };
        if (op === 'move' || op === 'copy') return { op, path, from: randomPointer(choices, document) };
        return { op, path, value: choices.value(2, true) };
      });
      const before = JSON.stringify([document, patch]);
      const expected = oracle(document, patch);
      let actual: JsonValue | undefined;
      try {
        actual = jsonPatch(document, patch);
        fitting++;
      } catch (error) {
        assert.ok(error instanceof ApiError && error.reason === 'Invalid', `seed ${seed}: ${error}`);
      }
      assert.deepEqual(actual, expected, `seed ${seed}: ${before}`);
      assert.equal(JSON.stringify([document, patch]), before);
    }
    assert.ok(fitting > 500, `only ${fitting} patches fitted`);
  });

  it('JSON patch does not share values with the patch', () => {
    const value = { list: [1] };
    const patched = jsonPatch({}, [{ op: 'add', path: '/a', value }]);
    assert.notEqual(patched['a'], value);
  });

  it('treats prototype names as plain data', () => {
    const patched = jsonPatch({}, [
      { op: 'add', path: '/__proto__', value: { polluted: true } },
      { op: 'add', path: '/constructor', value: { prototype: {} } },
      { op: 'copy', from: '/__proto__', path: '/b' },
      { op: 'add', path: '/__proto__/more', value: 1 },
    ]);
    assert.equal(
      JSON.stringify(patched),
      '{"__proto__":{"polluted":true,"more":1},"constructor":{"prototype":{}},"b":{"polluted":true}}',
    );
    assert.equal(Object.getPrototypeOf(patched), Object.prototype);
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
    const error = failure(() => jsonPatch({}, [{ op: 'add', path: '/__proto__/polluted', value: true }]));
    assert.equal(error.reason, 'Invalid');
    assert.equal(JSON.stringify(jsonPatch({}, [{ op: 'replace', path: '/toString', value: 1 }])), '{"toString":1}');
    failure(() => jsonPatch({}, [{ op: 'replace', path: '/missing/key', value: 1 }]));
    failure(() => jsonPatch({ list: [] }, [{ op: 'replace', path: '/list/0', value: 1 }]));
    assert.deepEqual(jsonPatch({}, [{ op: 'test', path: '/missing', value: null }]), {});
  });

  const malformed: readonly (readonly [string, JsonValue])[] = [
    ['a JSON patch that is not a list', {}],
    ['a JSON patch operation that is not an object', ['add']],
    ['a JSON patch operation without a path', [{ op: 'remove' }]],
    ['a JSON patch operation whose op is not a string', [{ op: 1, path: '/a' }]],
    ['a JSON pointer with an invalid escape', [{ op: 'remove', path: '/a~2' }]],
    ['a JSON patch add without a value', [{ op: 'add', path: '/a' }]],
    ['a JSON patch move without from', [{ op: 'move', path: '/a' }]],
  ];
  for (const [what, patch] of malformed) {
    it(`rejects ${what} with 400`, () => {
      assert.equal(failure(() => jsonPatch({}, patch)).httpCode, 400);
    });
  }

  it('a JSON patch with an unknown operation or a missing path fails when the operation is applied', () => {
    assert.equal(failure(() => jsonPatch({}, [{ op: 'delete', path: '/a' }])).httpCode, 422);
    assert.equal(failure(() => jsonPatch({}, [{ path: '/a' }])).httpCode, 422);
    assert.equal(failure(() => jsonPatch({ a: 1 }, [{ op: 'remove', path: 'a' }])).httpCode, 422);
  });

  it('accepts null as an empty patch, and counts negative indexes from the end, as upstream’s library does', () => {
    assert.deepEqual(jsonPatch({ a: 1 }, null), { a: 1 });
    const list = (patch: JsonObject): JsonValue | undefined => jsonPatch({ list: ['a', 'b'] }, [patch])['list'];
    assert.deepEqual(list({ op: 'add', path: '/list/-1', value: 'c' }), ['a', 'b', 'c']);
    assert.deepEqual(list({ op: 'add', path: '/list/-3', value: 'c' }), ['c', 'a', 'b']);
    assert.deepEqual(list({ op: 'add', path: '/list/01', value: 'c' }), ['a', 'c', 'b']);
    assert.deepEqual(list({ op: 'remove', path: '/list/-1' }), ['a']);
    assert.deepEqual(list({ op: 'replace', path: '/list/-2', value: 'c' }), ['c', 'b']);
    assert.deepEqual(list({ op: 'test', path: '/list/-1', value: 'b' }), ['a', 'b']);
    assert.equal(failure(() => list({ op: 'add', path: '/list/-4', value: 'c' })).httpCode, 422);
    assert.equal(failure(() => list({ op: 'remove', path: '/list/-3' })).httpCode, 422);
    assert.equal(failure(() => list({ op: 'remove', path: '/list/-' })).httpCode, 422);
  });

  it('the error of a JSON patch names the failed test operation', () => {
    const error = failure(() => jsonPatch({ a: 1 }, [{ op: 'test', path: '/a', value: 2 }]));
    assert.equal(error.httpCode, 422);
    assert.match(error.message, /^the server rejected our request due to an error in our request: .*"\/a" failed/);
    assert.equal(error.details, undefined, 'kubectl prints causes instead of the message');
  });

  it('rejects JSON patches with 10,001 operations, growth by copying, or deep nesting', () => {
    const many = (count: number): JsonValue =>
      Array.from({ length: count }, () => ({ op: 'add', path: '/a', value: 1 }));
    assert.deepEqual(jsonPatch({}, many(10_000)), { a: 1 });
    assert.equal(failure(() => jsonPatch({}, many(10_001))).httpCode, 413);
    const doubling = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '', path: `/k${index}` }));
    const startedMs = performance.now();
    assert.equal(failure(() => jsonPatch({ a: 'x'.repeat(1000) }, doubling)).httpCode, 413);
    assert.ok(performance.now() - startedMs < 2000);
    const deepening = Array.from({ length: 900 }, (_, index) =>
      index % 3 === 0
        ? { op: 'add', path: '/t', value: {} }
        : index % 3 === 1
          ? { op: 'move', from: '/a', path: '/t/a' }
          : { op: 'move', from: '/t', path: '/a' },
    );
    assert.ok(jsonPatch({ a: {} }, deepening));
    assert.equal(failure(() => jsonPatch({ a: {} }, [...deepening, ...deepening])).httpCode, 400);
  });
});

describe('JSON merge patch', () => {
  /** Oracle: the pseudocode of RFC 7386, section 2. */
  const rfc = (target: JsonValue, patch: JsonValue): JsonValue => {
    if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
    const result: JsonObject =
      typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
    for (const [name, value] of Object.entries(patch)) {
      if (value === null) delete result[name];
      else result[name] = rfc(result[name] ?? null, value);
    }
    return result;
  };

  it('a JSON merge patch has the results of RFC 7386, and does not change its arguments', () => {
    for (let seed = 1; seed <= 3000; seed++) {
      const choices = new Choices(seed);
      const document = choices.object(3, false);
      const patch = choices.object(3, true);
      const before = JSON.stringify([document, patch]);
      assert.deepEqual(mergePatch(document, patch), rfc(document, patch), `seed ${seed}: ${before}`);
      assert.equal(JSON.stringify([document, patch]), before);
    }
  });

  it('treats prototype names as plain data', () => {
    const patched = mergePatch(
      parse('{"a":1}'),
      parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"x":1}}}'),
    );
    assert.equal(JSON.stringify(patched), '{"a":1,"__proto__":{"polluted":true},"constructor":{"prototype":{"x":1}}}');
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
    assert.equal(
      JSON.stringify(mergePatch(patched, parse('{"__proto__":null}'))),
      '{"a":1,"constructor":{"prototype":{"x":1}}}',
    );
  });

  it('rejects JSON merge patches that are not objects or are nested too deeply', () => {
    assert.equal(failure(() => mergePatch({}, [])).httpCode, 400);
    assert.equal(failure(() => mergePatch({}, parse(`${'{"a":'.repeat(600)}1${'}'.repeat(600)}`))).httpCode, 400);
  });
});

describe('a JSON patch that shifts long lists', () => {
  it('a JSON patch that shifts long lists is rejected before it blocks the event loop', () => {
    const list = Array.from({ length: 200_000 }, () => 0);
    for (const operation of [
      { op: 'add', path: '/x/0', value: 0 },
      { op: 'move', from: '/x/1', path: '/x/0' },
      { op: 'copy', from: '/x/1', path: '/x/0' },
    ]) {
      const patch = [{ op: 'add', path: '/x', value: list }, ...Array.from({ length: 9_999 }, () => operation)];
      assert.match(failure(() => jsonPatch({}, patch)).message, /may not shift more than 100000000 items of lists/);
    }
    const appended = Array.from({ length: 9_999 }, () => ({ op: 'add', path: '/x/-', value: 0 }));
    const whole = jsonPatch({}, [{ op: 'add', path: '/x', value: list }, ...appended]);
    assert.equal((whole['x'] as unknown[]).length, 209_999);
  });
});
