import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CriLines, MAX_TEXT_BYTES } from '../../../src/logging/core/cri-lines.ts';
import { generator } from '../../support/random.ts';

const NOW = Date.UTC(2026, 0, 2);
const TIME = '2026-01-02T03:04:05.123456789Z';
const entry = (text: string, tag = 'F', stream = 'stdout'): string => `${TIME} ${stream} ${tag} ${text}\n`;
const bytes = (text: string): Buffer => Buffer.from(text);
const textsOf = (lines: readonly { text: string }[]): string[] => lines.map(({ text }) => text);

describe('parser of container logs in CRI format', () => {
  it('joins partial CRI log lines, separately for standard output and standard error', () => {
    const lines = new CriLines(0);
    const log = `${entry('one')}${entry('tw', 'P')}${entry('err', 'F', 'stderr')}${entry('o')}${entry('')}`;
    assert.deepEqual(lines.push(bytes(log), NOW), [
      { time: TIME, stream: 'stdout', text: 'one' },
      { time: TIME, stream: 'stderr', text: 'err' },
      { time: TIME, stream: 'stdout', text: 'two' },
      { time: TIME, stream: 'stdout', text: '' },
    ]);
    assert.equal(lines.safePosition, log.length);
  });

  it('parses the same log lines for any read size, and resumes at the safe position without loss', () => {
    const random = generator(4);
    for (let run = 0; run < 100; run += 1) {
      const words = Array.from({ length: 20 }, () => 'ä€x'.repeat(Math.floor(random() * 30)));
      const log = bytes(
        words
          .map((word) => (random() < 0.3 ? `${entry(word.slice(0, 5), 'P')}${entry(word.slice(5))}` : entry(word)))
          .join(''),
      );
      const found: string[] = [];
      let parser = new CriLines(0);
      let at = 0;
      while (at < log.length) {
        const end = Math.min(log.length, at + 1 + Math.floor(random() * 60));
        found.push(...textsOf(parser.push(log.subarray(at, end), NOW)));
        at = end;
        // The process restarts.
        if (random() < 0.1) {
          at = parser.safePosition;
          parser = new CriLines(at);
        }
      }
      assert.deepEqual(found, words, `run ${run}`);
    }
  });

  it('copies partial log lines, so that the caller can reuse its read buffer', () => {
    const log = bytes(`${entry('begin ', 'P')}${entry('end')}${entry('next')}`);
    for (let size = 1; size < log.length; size += 1) {
      const buffer = Buffer.alloc(size);
      const lines = new CriLines(0);
      const found: string[] = [];
      for (let at = 0; at < log.length; at += size) {
        const length = log.copy(buffer, 0, at, Math.min(log.length, at + size));
        found.push(...textsOf(lines.push(buffer.subarray(0, length), NOW)));
      }
      assert.deepEqual(found, ['begin end', 'next'], `reads of ${size} bytes`);
    }
  });

  it('splits a log line of 10 MB into records of bounded size without loss', () => {
    const lines = new CriLines(0);
    const part = 'x'.repeat(16_384);
    const found: string[] = [];
    for (let index = 0; index < 640; index += 1) found.push(...textsOf(lines.push(bytes(entry(part, 'P')), NOW)));
    found.push(...textsOf(lines.push(bytes(entry('end')), NOW)));
    assert.ok(found.every(({ length }) => length <= MAX_TEXT_BYTES + part.length));
    assert.equal(found.join(''), `${part.repeat(640)}end`);
  });

  it('keeps multi-byte characters intact when a log line is split into several records', () => {
    const lines = new CriLines(0);
    // Runtimes divide lines by bytes: every entry ends within a character.
    const text = Buffer.from(`x${'я'.repeat(100_000)}`);
    const entryOf = (bytes: Uint8Array, tag: string): Buffer =>
      Buffer.concat([Buffer.from(`${TIME} stdout ${tag} `), bytes, Buffer.from('\n')]);
    const found: string[] = [];
    for (let at = 0; at < text.length; at += 16_384) {
      const part = text.subarray(at, at + 16_384);
      found.push(...textsOf(lines.push(entryOf(part, at + 16_384 < text.length ? 'P' : 'F'), NOW)));
      if (at === 0) assert.deepEqual(textsOf(lines.push(bytes(entry('другое', 'F', 'stderr')), NOW)), ['другое']);
    }
    assert.equal(found.length, 4);
    assert.ok(found.join('') === text.toString(), 'the text has replacement characters');
    assert.deepEqual(textsOf(lines.push(bytes(entry('next')), NOW)), ['next']);
  });

  it('converts binary log data to text with replacement characters, even without a newline', () => {
    const lines = new CriLines(0);
    const found = textsOf(lines.push(Buffer.alloc(100_000, 0xff), NOW));
    assert.equal(found.length, 3);
    assert.match(found[0] ?? '', /^\uFFFD+$/);
    assert.ok(lines.safePosition >= 90_000);
    assert.deepEqual(textsOf(new CriLines(0).push(bytes(`no time\n${entry('ok')}`), NOW)), ['no time', 'ok']);
  });

  it('returns incomplete log lines at the end of the file', () => {
    const lines = new CriLines(0);
    assert.deepEqual(lines.push(bytes(`${entry('begin', 'P')}${TIME} stderr F cut`), NOW), []);
    assert.deepEqual(textsOf(lines.finish(NOW)).sort(), ['begin', 'cut']);
  });
});
