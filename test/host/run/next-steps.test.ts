import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { nextSteps } from '../../../src/host/run/next-steps.ts';

test('the printed next steps name only programs that are installed on the host', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-path-'));
  try {
    const program = ['/opt/hyperedge-linux-x64'];
    const common = { program, root: '/srv/lab', searchPath: `/nowhere:${directory}` };
    assert.deepEqual(nextSteps({ ...common, kubeconfig: undefined }), [
      '/opt/hyperedge-linux-x64 status --root /srv/lab',
    ]);
    assert.deepEqual(nextSteps({ ...common, kubeconfig: '/srv/lab/admin' }), [
      '/opt/hyperedge-linux-x64 status --root /srv/lab',
      '/opt/hyperedge-linux-x64 master-logs api api --tail 20 --root /srv/lab',
    ]);
    for (const name of ['kubectl', 'hyperedge']) {
      await writeFile(join(directory, name), '#!/bin/sh\n');
      await chmod(join(directory, name), 0o755);
    }
    assert.deepEqual(nextSteps({ ...common, root: '/', kubeconfig: '/etc/origin/master/admin.kubeconfig' }), [
      'hyperedge status',
      'hyperedge master-logs api api --tail 20',
      'kubectl --kubeconfig /etc/origin/master/admin.kubeconfig get nodes,pods -A',
    ]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
