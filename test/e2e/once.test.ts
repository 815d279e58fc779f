/** First command of a new user, `npm start -- --once`, in a network namespace of its own. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { emptyLevels, podLevels, removeNewPodLevels } from '../../build/pod-levels.ts';
import { eventually, projectRoot, run } from './harness.ts';

test('npm start -- --once passes every step and cleans up completely', { timeout: 180_000 }, async () => {
  const parent = await mkdtemp(join(tmpdir(), 'he-once-'));
  const root = join(parent, 'root');
  try {
    // Remove empty levels of earlier runs, which would hide levels that this run leaves.
    await removeNewPodLevels([]);
    const levels = await podLevels();
    // The namespace disappears with its last process, and with it every link and table.
    const ran = await run(
      'unshare',
      [
        '--net',
        'sh',
        '-c',
        'ip link set lo up && exec "$0" "$@"',
        process.execPath,
        join(projectRoot, 'build/start.ts'),
        '--once',
        '--root',
        root,
      ],
      { timeoutMs: 170_000 },
    );
    assert.equal(ran.code, 0, ran.stdout + ran.stderr);
    for (const line of [
      /node \S+ is Ready after [\d.]+ s; kubeconfig: /,
      /examples\/hello.yaml applied/,
      /the service answers on its cluster IP http:\/\/172\.30\.\S+\/: Hello from hyperedge/,
      /every step worked/,
    ])
      assert.match(ran.stdout, line);
    assert.equal(existsSync(root), false);
    // Other files run at the same time, and their pods are below the same levels.
    await eventually('no empty level that did not exist before', 60_000, async () => {
      const left = await emptyLevels(levels);
      return left.length === 0 ? true : undefined;
    });
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
});
