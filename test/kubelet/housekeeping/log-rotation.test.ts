/** Log rotation while a container writes as fast as it can: every line appears once and in order. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { rotatedLogs } from '../../../src/kubelet/server/log-chain.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const LINES = 100_000;
const HALVES = 2;
const PADDING = 'x'.repeat(80);

describe('logs under load', { timeout: 120_000 }, () => {
  const api = new MemoryApi();
  let lab: KubeletLab;
  const pod = (): Pod | undefined => api.get(resources.pods, 'default/writer');
  const logs = async (query = ''): Promise<string[]> => {
    const { code, body } = await lab.get(`/containerLogs/default/writer/main${query}`);
    assert.equal(code, 200, body.slice(0, 200));
    return body.replaceAll(` ${PADDING}`, '').split('\n').slice(0, -1);
  };
  const numbers = (from: number, to: number): string[] =>
    Array.from({ length: to - from + 1 }, (_, index) => String(from + index));

  before(async () => {
    lab = await createKubeletLab({
      containerLogMaxBytes: 200_000,
      containerLogMaxFiles: 1_000,
      containerLogMonitorMs: 10,
    });
    const half = LINES / HALVES;
    const write = (from: number, to: number): string =>
      `awk 'BEGIN { for (i = ${from}; i <= ${to}; i++) print i " ${PADDING}" }'`;
    // Pause in the middle, so that a timestamp between two lines exists.
    const script = `${write(1, half)}; sleep 2; ${write(half + 1, LINES)}; echo done; sleep 1000`;
    api.put(resources.pods, {
      metadata: { name: 'writer', namespace: 'default', uid: 'uid-writer' },
      spec: {
        nodeName: NODE,
        hostNetwork: true,
        terminationGracePeriodSeconds: 1,
        containers: [
          { name: 'main', image: IMAGE, imagePullPolicy: 'IfNotPresent', command: ['/bin/sh', '-c', script] },
        ],
      },
      status: { phase: 'Pending' },
    });
    await lab.boot(api.access());
    await eventually('running', () => pod()?.status?.phase === 'Running' || undefined);
  });
  after(() => lab?.cleanUp());

  it('delivers each line once and in order to a follower and to a later reader', async () => {
    const followed = logs(
      `?follow=true&limitBytes=${numbers(1, LINES).join('\n').length + 1 + LINES * (PADDING.length + 1)}`,
    );
    await eventually('all written', async () => (await logs('?tailLines=1')).at(-1) === 'done' || undefined, 60_000);
    const expected = numbers(1, LINES);
    assert.deepEqual(await followed, expected);
    const path = (await lab.runtime().listContainers())[0]?.logPath ?? '';
    const rotations = (await rotatedLogs(createKubeletFiles(createMounter()).logs, path)).length;
    console.log(`${LINES} lines through ${rotations} rotations`);
    assert.ok(rotations >= 2, `${rotations} rotations`);
    assert.deepEqual(await logs(), [...expected, 'done']);
  });

  it('kubectl logs --tail counts lines across rotated logs', async () => {
    for (const count of [0, 1, 1_000, 70_000, LINES + 1, LINES + 5]) {
      const lines = [...numbers(1, LINES), 'done'];
      assert.deepEqual(await logs(`?tailLines=${count}`), count === 0 ? [] : lines.slice(-count), `${count}`);
    }
  });

  it('kubectl logs --since starts with the first line after the given time', async () => {
    const stamped = await logs('?timestamps=true');
    const [time = '', number] = (stamped[LINES / HALVES] ?? '').split(' ');
    assert.equal(number, String(LINES / HALVES + 1));
    const since = new Date(Math.floor(Date.parse(time) / 1000) * 1000).toISOString();
    assert.deepEqual(await logs(`?sinceTime=${since}`), [...numbers(LINES / HALVES + 1, LINES), 'done']);
    assert.deepEqual(await logs(`?sinceTime=${since}&tailLines=3`), [String(LINES - 1), String(LINES), 'done']);
  });
});
