/** Volumes whose file system never answers delay only their own pods. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createKubeletFiles } from '../../../../src/kubelet/io/files/index.ts';
import { createHostFacts, createMounter } from '../../../../src/kubelet/io/host-facts/index.ts';
import { trees } from '../../../../src/runtime/directory-removal/index.ts';
import { HungFileSystem } from '../../../support/hung-file-system.ts';

const mounts = createMounter();
const helper = [process.execPath, join(import.meta.dirname, '../../../../src/main.ts'), 'volume-call', '--'];

describe("paths outside of the kubelet's directories", { skip: process.getuid?.() !== 0 }, () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'he-foreign-'));
  });
  after(async () => {
    await mounts.unmountTree(directory);
    rmSync(directory, { recursive: true, force: true });
  });

  it("paths outside of the kubelet's directories are accessed by child processes with the same results as in this process", async () => {
    const { foreign } = createKubeletFiles(mounts, { helper, isOwn: () => false });
    const at = (name: string): string => join(directory, name);
    assert.equal(await foreign.makeDirectory(at('d/e')), true);
    assert.equal(await foreign.makeDirectory(at('d/e')), false);
    await foreign.makeFile(at('d/f/g'));
    symlinkSync('nowhere', at('d/dangling'));
    symlinkSync('/etc', at('d/out'));
    assert.deepEqual(
      await Promise.all(['d', 'd/f/g', 'd/dangling', 'd/none'].map((name) => foreign.kindOf(at(name)))),
      ['Directory', 'File', undefined, undefined],
    );
    assert.deepEqual(await Promise.all(['d', 'd/dangling', 'd/f/g/h'].map((name) => foreign.isPresent(at(name)))), [
      true,
      true,
      false,
    ]);
    assert.equal(await foreign.kindOf('/dev/null'), 'CharDevice');
    writeFileSync(at('d/f/g'), 'content');
    await foreign.bindSubPath(at('d'), 'f/g', at('target/file'));
    assert.equal(readFileSync(at('target/file'), 'utf8'), 'content');
    await foreign.bindSubPath(at('d'), '', at('target/whole'));
    assert.equal(readFileSync(at('target/whole/f/g'), 'utf8'), 'content');
    await assert.rejects(foreign.bindSubPath(at('d'), 'out', at('target/out')), /leaves the volume/);
    await assert.rejects(foreign.bindSubPath(at('d'), '../x', at('target/out')), /leaves the volume/);
    await foreign.ownByGroup(at('d'), 4242, undefined);
    assert.equal(statSync(at('d/f/g')).gid, 4242);
  });

  it("paths outside of the kubelet's directories may hang without blocking the operations of this process", {
    timeout: 60_000,
  }, async () => {
    const hung = await HungFileSystem.mount(join(directory, 'hung'));
    const deadlines = { quickMs: 1_500, bindMs: 1_500, ownMs: 1_500 };
    const { foreign } = createKubeletFiles(mounts, { helper, isOwn: () => false, deadlines });
    const facts = createHostFacts({ root: '/', nowMs: () => 0 });
    const pattern = /did not answer within|not measured within|still does not answer/;
    try {
      const inside = (name: string): string => join(hung.path, name);
      const waiting = [
        ...Array.from({ length: 8 }, (_, at) => foreign.kindOf(inside(`k${at}`))),
        ...Array.from({ length: 4 }, (_, at) => foreign.isPresent(inside(`p${at}`))),
        foreign.makeDirectory(inside('d')),
        foreign.makeFile(inside('f')),
        foreign.ownByGroup(hung.path, 4242),
        foreign.bindSubPath(inside('volume'), 'x', join(directory, 'target/hung')),
        trees.usage([hung.path], { unit: 'bytes', timeoutMs: 1_500 }),
        facts.foreignFileSystem(hung.path),
      ].map((each) => assert.rejects(each as Promise<unknown>, pattern));
      for (let at = 0; at < 20; at++) {
        const beganMs = performance.now();
        await stat('/proc/self');
        assert.equal(await mounts.isMountPoint(hung.path), true);
        const tookMs = performance.now() - beganMs;
        assert.ok(tookMs < 2_000, `a file operation took ${tookMs} ms`);
      }
      await Promise.all(waiting);
      await mounts.unmountTree(hung.path);
      assert.equal(await mounts.isMountPoint(hung.path), false);
    } finally {
      await hung.release();
    }
  });

  it("paths outside of the kubelet's directories are accessed in this process if they belong to the host", async () => {
    const own = join(directory, 'own');
    mkdirSync(own);
    const { foreign } = createKubeletFiles(mounts, { helper: ['/none'], isOwn: (path) => path.startsWith(own) });
    assert.equal(await foreign.kindOf(own), 'Directory');
    await foreign.makeFile(join(own, 'f'));
    await foreign.bindSubPath(own, 'f', join(directory, 'target/own'));
    await foreign.ownByGroup(own, 4242);
  });
});
