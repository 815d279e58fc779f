import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { createRuntimeLog } from '../../../src/host/node/runtime-log.ts';

test('uses the log level of the pool, and of the host without a pool', async () => {
  const root = await mkdtemp(join(tmpdir(), 'runtime-log-'));
  let lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line) };
  const host = createLog({ component: 'host', level: 2, sink, nowMs: () => 0 });
  const { log, follow } = createRuntimeLog(host, root);
  const runtime = log.named('oci');
  const output = (): string => {
    lines = [];
    runtime.error('e');
    runtime.warn('w');
    runtime.info('i');
    for (const level of [2, 4, 6]) runtime.v(level, `v${level}`);
    assert.equal(
      runtime.enabled(4),
      lines.some((line) => line.endsWith(' v4')),
    );
    return lines.map((line) => line.split(' ').at(-1)).join(' ');
  };
  const at = async (level: string): Promise<string> => {
    await writeFile(join(root, 'etc/crio/crio.conf.d/01-ctrcfg-logLevel'), `[crio]\n    log_level = "${level}"\n`);
    await follow();
    return output();
  };
  try {
    await follow();
    assert.equal(output(), 'e w i v2');
    await mkdir(join(root, 'etc/crio/crio.conf.d'), { recursive: true });
    assert.equal(await at('debug'), 'e w i v2 v4');
    assert.equal(await at('trace'), 'e w i v2 v4 v6');
    assert.equal(await at('warn'), 'e w');
    assert.equal(await at('fatal'), '');
    assert.equal(await at('other'), 'e w i v2');
  } finally {
    await rm(root, { recursive: true });
  }
});
