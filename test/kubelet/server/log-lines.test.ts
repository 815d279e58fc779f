import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { parseLogLine, tailOf, tailOffset } from '../../../src/kubelet/server/log-lines.ts';

const { logs } = createKubeletFiles(createMounter());
let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubelet-log-'));
});
after(async () => {
  await rm(directory, { recursive: true, force: true });
});

describe('log lines', () => {
  it('parses log lines in the format of the container runtime', () => {
    const parse = (text: string) => {
      const line = parseLogLine(Buffer.from(text));
      return line === undefined ? undefined : `${line.stream}${line.partial ? '+' : ''}:${line.text}`;
    };
    assert.equal(parse('2026-01-01T00:00:00.1Z stdout F hello world'), 'stdout:hello world');
    assert.equal(parse('2026-01-01T00:00:00.1Z stderr P part'), 'stderr+:part');
    assert.equal(parse('2026-01-01T00:00:00.1Z stdout F '), 'stdout:');
    assert.equal(parse('2026-01-01T00:00:00.1Z stdout F'), 'stdout:');
    for (const broken of ['', 'x', 'time stdin F x', 'time stdout X x', 'half']) assert.equal(parse(broken), undefined);
  });

  it('reading log lines backwards yields the same tail as counting from the start', async () => {
    const path = join(directory, 'log');
    for (const [count, width] of [
      [0, 1],
      [1, 10],
      [5, 70_000],
      [3000, 60],
    ] as const) {
      const lines = Array.from({ length: count }, (_, index) => `${index}${'x'.repeat(width)}`);
      const text = lines.map((line) => `${line}\n`).join('');
      await writeFile(path, text);
      for (const wanted of [0, 1, 2, count - 1, count, count + 1].filter((each) => each >= 0)) {
        const oracle = lines
          .slice(Math.max(0, count - wanted))
          .map((line) => `${line}\n`)
          .join('');
        const offset = await tailOffset(logs, path, wanted);
        assert.equal(text.slice(offset), wanted === 0 ? '' : oracle, `${wanted} of ${count}`);
      }
    }
  });

  it('log lines are counted once if a rotation splits their parts into two files', async () => {
    const at = async (name: string, text: string) => {
      const path = join(directory, name);
      await writeFile(path, text);
      return logs.open(path);
    };
    const older = await at('older', 't stdout F one\nt stdout F two\nt stdout P thr\n');
    const newer = await at('newer', 't stdout F ee\nt stdout F four\n');
    try {
      const last = await tailOf(newer, 2);
      assert.deepEqual(last, { offset: 0, found: 2, stream: 'stdout' });
      assert.deepEqual(await tailOf(older, 0, last.stream), { offset: 30, found: 0, stream: 'stdout' });
      assert.deepEqual(await tailOf(older, 1, last.stream), { offset: 15, found: 1, stream: 'stdout' });
      assert.deepEqual(await tailOf(older, 9, last.stream), { offset: 0, found: 2, stream: 'stdout' });
      assert.deepEqual(await tailOf(older, 1), { offset: 30, found: 1, stream: 'stdout' });
    } finally {
      await older.close();
      await newer.close();
    }
  });
});
