import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingTool } from '../../../../src/kubelet/io/volume-tools/run-tool.ts';

test('the error of a mount names the package of a missing tool', () => {
  const packages = {
    xfs_quota: 'xfsprogs',
    setquota: 'quota',
    'mkfs.ext2': 'e2fsprogs',
    'mkfs.ext3': 'e2fsprogs',
    'mkfs.xfs': 'xfsprogs',
    'mount.nfs': 'nfs-common',
  };
  for (const [tool, name] of Object.entries(packages))
    assert.equal(missingTool(tool).message, `${tool}: not installed on this node; install ${name}`);
});
