import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { withLogFile } from '../../../src/host/openshift/machine-config-log.ts';
import { eventually } from '../../e2e/harness.ts';

test('writes lines to the log, and with readable quotes to a file that is truncated at a size limit', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'mc-log-'));
  try {
    const lines: string[] = [];
    const sink = { write: (line: string) => void lines.push(line) };
    const base = createLog({ component: 'host', level: 0, sink, nowMs: () => 0 });
    const path = join(directory, 'run/daemon.log');
    const log = withLogFile(base, path, () => 0, 400);
    const text = (): Promise<string> => readFile(path, 'utf8').catch(() => '');
    log.warn('config drift detected', { difference: 'content mismatch for file "/etc/a"' });
    log.info('second\nline');
    await eventually('two lines', 5_000, async () => ((await text()).includes('second') ? true : undefined));
    assert.match(await text(), /^1970\S+ W machine-config-daemon config drift.*content mismatch for file "\/etc\/a"/);
    assert.equal((await text()).trimEnd().split('\n').length, 2);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal(lines.length, 2);
    for (let count = 0; count < 9; count++) log.error('failed', { count, why: 'x'.repeat(60) });
    await eventually('the last line', 5_000, async () => ((await text()).includes('count=8') ? true : undefined));
    assert.ok((await stat(path)).size <= 400);
    assert.doesNotMatch(await text(), /second/);

    await writeFile(join(directory, 'file'), '');
    withLogFile(base, join(directory, 'file/daemon.log'), () => 0).info('no directory');
    assert.match(lines.at(-1) ?? '', /no directory/);
  } finally {
    await rm(directory, { recursive: true });
  }
});
