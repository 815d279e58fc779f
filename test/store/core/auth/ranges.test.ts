import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isValidPermission, keyRange, mergeGrants } from '../../../../src/store/core/auth/ranges.ts';
import { type AuthPermission, PermissionType } from '../../../../src/store/core/messages/auth.ts';

/** Small seeded generator (mulberry32). */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const LETTERS = ['\0', 'a', 'b', '\xff'];

/**
 * Every key of up to three letters. Range ends have at most two letters, and a single key ends one letter later, so any
 * difference between two sets of keys shows in one of these keys.
 */
function universe(): readonly string[] {
  const keys: string[] = [];
  let longest = [''];
  for (let length = 1; length <= 3; length += 1) {
    longest = longest.flatMap((prefix) => LETTERS.map((letter) => prefix + letter));
    keys.push(...longest);
  }
  return keys;
}

function within(key: string, range: { readonly key: string; readonly end: string }): boolean {
  if (range.end === '') return key === range.key;
  return key >= range.key && (range.end === '\0' || key < range.end);
}

describe('merged permissions', () => {
  it('permits a key range exactly if every key in it is permitted', () => {
    const keys = universe();
    const random = seeded(20);
    const some = (longest: number): string => {
      let key = '';
      for (let i = 1 + random(longest); i > 0; i -= 1) key += LETTERS[random(LETTERS.length)];
      return key;
    };
    let allowed = 0;
    let refused = 0;
    for (let round = 0; round < 3000; round += 1) {
      const permissions: AuthPermission[] = [];
      for (let i = random(7); i > 0; i -= 1) {
        const permission = { type: random(3), key: some(2), end: ['', '\0', some(2), some(2)][random(4)] as string };
        if (isValidPermission(permission)) permissions.push(permission);
      }
      const grants = mergeGrants(permissions);
      for (let i = 0; i < 10; i += 1) {
        const requested = { key: some(2), end: ['', '\0', some(2)][random(3)] as string };
        const touched = keys.filter((key) => within(key, requested));
        if (touched.length === 0) continue;
        for (const [access, type] of [
          ['read', PermissionType.read],
          ['write', PermissionType.write],
        ] as const) {
          const expected = touched.every((key) =>
            permissions.some((p) => (p.type === type || p.type === PermissionType.readwrite) && within(key, p)),
          );
          const found = grants[access].contains(keyRange(requested.key, requested.end));
          assert.equal(found, expected, JSON.stringify({ round, permissions, requested, access }));
          if (expected) allowed += 1;
          else refused += 1;
        }
      }
    }
    assert.ok(allowed > 2000 && refused > 2000, `${allowed} allowed, ${refused} refused`);
  });

  it('adjacent grants permit a range that spans them, but a gap of one key does not', () => {
    const read = (key: string, end: string): AuthPermission => ({ type: PermissionType.read, key, end });
    const meeting = mergeGrants([read('b', 'c'), read('a', 'b'), read('c', '')]);
    assert.ok(meeting.read.contains(keyRange('a', 'c\0')));
    assert.ok(!meeting.write.contains(keyRange('a', '')));
    const apart = mergeGrants([read('a', 'b'), read('b\0', 'c')]);
    assert.ok(!apart.read.contains(keyRange('a', 'c')));
    assert.ok(!apart.read.contains(keyRange('b', '')));
  });

  it('rejects permissions that are invalid', () => {
    const cases: readonly (readonly [AuthPermission, boolean])[] = [
      [{ type: 0, key: 'a', end: '' }, true],
      [{ type: 2, key: 'a', end: '\0' }, true],
      [{ type: 1, key: '\0', end: '\0' }, true],
      [{ type: 0, key: '', end: '' }, false],
      [{ type: 0, key: 'b', end: 'b' }, false],
      [{ type: 0, key: 'b', end: 'a' }, false],
      [{ type: 3, key: 'a', end: '' }, false],
    ];
    for (const [permission, valid] of cases)
      assert.equal(isValidPermission(permission), valid, JSON.stringify(permission));
  });
});
