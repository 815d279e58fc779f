import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planFiles } from '../../../../../src/openshift/machine-config/core/host-files/plan.ts';
import {
  EMPTY,
  type PathFacts,
  type Recorded,
  type State,
  type TreePath,
} from '../../../../../src/openshift/machine-config/core/host-files/port.ts';

const ROOT = { mode: 0o644, uid: 0, gid: 0 };
const file = (sha256: string): Recorded => ({ kind: 'file', sha256, size: 1, ...ROOT });
const wanted = (path: string, sha256: string, present: Recorded, more: Partial<TreePath> = {}): TreePath => ({
  path,
  content: { kind: 'file', bytes: Buffer.from(sha256), owner: ROOT },
  record: file(sha256),
  present,
  missing: [],
  directoryOwner: { ...ROOT, mode: 0o755 },
  isShared: false,
  ...more,
});
const stateWith = (originals: State['originals'], directories: readonly string[] = []): State => ({
  ...EMPTY,
  originals,
  directories,
});
const plan = (state: State, tree: readonly TreePath[], left: readonly PathFacts[] = []) =>
  planFiles(state, { tree, left, hasState: true }, 'note');

describe('plan for a change of host files', () => {
  it('saves the original of a host file before replacing it', () => {
    const { next, batch } = plan(EMPTY, [wanted('/etc/a', 'new', file('old'), { unsaved: Buffer.from('old') })]);
    assert.deepEqual(
      batch.replacements.map(({ path, present }) => [path, present]),
      [
        ['/var/lib/origin/machine-config/originals/1', false],
        ['/etc/a', true],
        ['/var/lib/origin/machine-config/state.json', true],
      ],
    );
    assert.deepEqual(next.originals['/etc/a'], { kind: 'file', stored: '1', ...ROOT });
    assert.deepEqual(next.entries['/etc/a'], file('new'));
    assert.equal(next.note, 'note');
  });

  it('writes no host file that already has the requested content', () => {
    const state = stateWith({ '/etc/a': { kind: 'file', stored: '7', ...ROOT } });
    const { next, batch } = plan(state, [wanted('/etc/a', 'same', file('same'))]);
    assert.deepEqual(
      batch.replacements.map(({ path }) => path),
      ['/var/lib/origin/machine-config/state.json'],
    );
    assert.deepEqual(next.originals, state.originals);
    assert.deepEqual(batch.leftFiles, []);
  });

  it('never reuses the file name of a saved original for another original', () => {
    const state = stateWith({ '/etc/a': { kind: 'file', stored: '7', ...ROOT } });
    const { next } = plan(state, [wanted('/etc/b', 'new', file('old'), { unsaved: Buffer.from('old') })]);
    assert.deepEqual(next.originals, { '/etc/b': { kind: 'file', stored: '8', ...ROOT } });
  });

  it('restores the original of a path that the config no longer contains, and deletes the saved copy', () => {
    const state = stateWith({ '/etc/x/a': { kind: 'file', stored: '3', ...ROOT } }, ['/etc/x']);
    const { isShared: _, ...left } = wanted('/etc/x/a', 'old', file('new'));
    const { next, batch } = plan(state, [], [left]);
    assert.deepEqual(batch.replacements[0], { path: '/etc/x/a', content: left.content, present: true });
    assert.deepEqual(batch.leftFiles, ['/var/lib/origin/machine-config/originals/3']);
    assert.deepEqual(batch.leftDirectories, ['/etc/x']);
    assert.deepEqual([next.entries, next.originals, next.directories], [{}, {}, []]);
  });

  it('creates each missing directory once, parents before children, with the owner of the first file', () => {
    const first = { mode: 0o700, uid: 5, gid: 5 };
    const { next, batch } = plan(EMPTY, [
      wanted('/etc/x/y/a', 'new', { kind: 'absent' }, { missing: ['/etc/x', '/etc/x/y'], directoryOwner: first }),
      wanted('/etc/x/b', 'new', { kind: 'absent' }, { missing: ['/etc/x'] }),
    ]);
    assert.deepEqual(batch.directories, [
      { path: '/etc/x', owner: first },
      { path: '/etc/x/y', owner: first },
    ]);
    assert.deepEqual(next.directories, ['/etc/x', '/etc/x/y']);
    assert.deepEqual(next.originals['/etc/x/b'], { kind: 'absent' });
  });

  it('edits a shared host file without saving an original', () => {
    const { next, batch } = plan(EMPTY, [wanted('/etc/a', 'new', file('old'), { isShared: true })]);
    assert.deepEqual(
      batch.replacements.map(({ path }) => path),
      ['/etc/a', '/var/lib/origin/machine-config/state.json'],
    );
    assert.deepEqual([next.entries, next.originals], [{}, {}]);
  });
});
