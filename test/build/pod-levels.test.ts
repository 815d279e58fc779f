/** Cleanup of cgroup levels in a fake hierarchy. test/e2e/once.test.ts covers the real one. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { podLevels, removeNewPodLevels } from '../../build/pod-levels.ts';

test('keeps cgroups that existed before or contain a pod or a process', async () => {
  const mount = await mkdtemp(join(tmpdir(), 'he-levels-'));
  try {
    const mountinfo = join(mount, 'mountinfo');
    await writeFile(mountinfo, `30 20 0:25 / ${mount} rw - cgroup2 cgroup2 rw\n`);
    const at = (level: string): string => join(mount, level);
    await mkdir(at('kubepods/besteffort'), { recursive: true });
    const before = await podLevels(mountinfo);
    assert.deepEqual(before, [at('kubepods/besteffort'), at('kubepods')]);

    await mkdir(at('kubepods/burstable'), { recursive: true });
    await mkdir(at('kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice'), { recursive: true });
    await mkdir(at('kubepods.slice/kubepods-besteffort.slice'), { recursive: true });
    await writeFile(join(at('kubepods.slice/kubepods-besteffort.slice'), 'cgroup.procs'), '7\n');
    await removeNewPodLevels(before, mountinfo);
    assert.deepEqual(await podLevels(mountinfo), [
      ...before.slice(0, 2),
      ...['kubepods.slice/kubepods-burstable.slice', 'kubepods.slice/kubepods-besteffort.slice', 'kubepods.slice'].map(
        at,
      ),
    ]);

    await rm(at('kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice'), { recursive: true });
    await rm(join(at('kubepods.slice/kubepods-besteffort.slice'), 'cgroup.procs'));
    await removeNewPodLevels([], mountinfo);
    assert.deepEqual(await podLevels(mountinfo), []);
  } finally {
    await rm(mount, { recursive: true });
  }
});
