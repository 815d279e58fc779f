import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogFiles, OpenLog } from '../../../src/components/kubelet/files-port.ts';
import { readLog } from '../../../src/components/kubelet/server/container-logs.ts';

const line = (text: string): string => `2026-01-01T00:00:00Z stdout F ${text}\n`;

/** A log to which `late` is written after its end was looked for and before it is read. */
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

test('the last lines of a log that grows meanwhile are as many as were asked for', async () => {
  const source = {
    path: '/log',
    running: () => true,
    onChange: () => () => {},
    files: growingLog(line('one') + line('two'), line('three')) as LogFiles,
    fileWatch: { watch: () => ({ close: () => {} }) },
    signal: new AbortController().signal,
  };
  const options = { follow: false, sinceMs: undefined, timestamps: false, limitBytes: undefined } as const;
  const chunks: Buffer[] = [];
  for await (const chunk of readLog(source, { ...options, tailLines: 1, stream: 'All' })) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), 'two\n');
});
