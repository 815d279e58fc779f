import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogFiles, OpenLog } from '../../../src/kubelet/ports/files-port.ts';
import { readLog } from '../../../src/kubelet/server/container-logs.ts';

const line = (text: string): string => `2026-01-01T00:00:00Z stdout F ${text}\n`;

/** Log file to which `late` is appended after its size was determined and before it is read. */
function growingLog(text: string, late: string): Pick<LogFiles, 'open'> {
  const bytes = (content: string): OpenLog => ({
    size: () => Promise.resolve(content.length),
    read: (buffer: Buffer, offset: number) => Promise.resolve(Buffer.from(content).copy(buffer, 0, offset)),
    identity: () => Promise.resolve('one'),
    close: () => Promise.resolve(),
  });
  let opened = 0;
  return { open: () => Promise.resolve(bytes(opened++ === 0 ? text : text + late)) };
}

async function lastLine(files: Pick<LogFiles, 'open'>): Promise<string> {
  const source = {
    path: '/log',
    running: () => true,
    onChange: () => () => {},
    files: files as LogFiles,
    fileWatch: { watch: () => ({ close: () => {} }) },
    signal: new AbortController().signal,
  };
  const options = { follow: false, sinceMs: undefined, timestamps: false, limitBytes: undefined } as const;
  const chunks: Buffer[] = [];
  for await (const chunk of readLog(source, { ...options, tailLines: 1, stream: 'All' })) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('returns exactly the requested number of last lines while the log grows', async () => {
  assert.equal(await lastLine(growingLog(line('one') + line('two'), line('three'))), 'two\n');
});

test('returns the last complete line while a further line is being written', async () => {
  const half = line('three').slice(0, -3);
  assert.equal(await lastLine(growingLog(line('one') + line('two') + half, '')), 'two\n');
});
