import assert from 'node:assert/strict';
import { mkdtemp, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { followFile } from '../../../src/host/config/followed-file.ts';
import { eventually } from '../../client/clocks.ts';

describe('a followed file', () => {
  const directories: string[] = [];
  after(() => Promise.all(directories.map((each) => rm(each, { recursive: true }))));

  const follow = async (names: readonly string[]) => {
    const directory = await mkdtemp(join(tmpdir(), 'he-followed-'));
    directories.push(directory);
    const files = names.map((name) => join(directory, name));
    const put = async (index: number, text: string): Promise<void> => {
      await writeFile(join(directory, 'new'), text);
      await rename(join(directory, 'new'), files[index] ?? '');
    };
    // The time stamps are so old that the files count as unchanged.
    for (const file of files) {
      await writeFile(file, 'first');
      await utimes(file, 1, 1);
    }
    let reads = 0;
    const read = async (): Promise<string> => {
      reads += 1;
      return (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join();
    };
    const parse = (text: string): string => {
      const parts = new Set(text.split(','));
      if (parts.size > 1) throw new Error('the files do not belong together');
      return text;
    };
    const followed = await followFile(files.join(), { what: 'test', log: silentLog, first: read, read, files, parse });
    return { followed, put, reads: () => reads };
  };

  it('reads a followed file again after a change, but not while its time stamps are unchanged', async () => {
    const { followed, put, reads } = await follow(['one']);
    try {
      await put(0, 'second');
      await eventually('the new text is used', () => followed.current === 'second');
      // Recent files are read again, because a second write may not change the time stamp.
      await eventually('a fresh file is read again', () => reads() >= 3);
      await new Promise((resolve) => setTimeout(resolve, 7_000));
      const calm = reads();
      await new Promise((resolve) => setTimeout(resolve, 4_500));
      assert.equal(reads(), calm);
    } finally {
      followed.stop();
    }
  });

  it('keeps the old value while files that belong together do not match', async () => {
    const { followed, put } = await follow(['certificate', 'key']);
    try {
      await put(0, 'second');
      await eventually('half of the pair is refused', () => followed.reloads.failure?.count === 1);
      assert.equal(followed.current, 'first,first');
      await put(1, 'second');
      await eventually('the pair is used', () => followed.current === 'second,second');
    } finally {
      followed.stop();
    }
  });
});
