import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readHostNetworkRecord } from '../../../../../src/network/pods/io/index.ts';

const execute = promisify(execFile);
const scenario = fileURLToPath(new URL('removal.scenario.ts', import.meta.url));
const skip = process.getuid?.() === 0 ? false : 'needs root for a network namespace of its own';

test("removes only the network objects in the host's record, and keeps objects of another instance", {
  skip,
}, async () => {
  const { stdout } = await execute('unshare', ['--net', process.execPath, scenario]);
  assert.deepEqual(JSON.parse(stdout), {
    absent: true,
    left: [],
    removed: {
      links: ['he-abcdef', 'he-abcdef-dns'],
      tables: ['table ip hyperedge-abcdef', 'table ip hyperedge-abcdef-pods'],
      routes: ['10.128.2.0/23', '10.129.200.0/24', '10.130.200.0/24'],
    },
    addresses: ['10.128.0.1', '172.30.0.10', '192.0.2.1'],
  });
});

test('reports an invalid host network record as an error instead of treating it as empty', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-record-'));
  try {
    const file = join(directory, 'host-network.json');
    await writeFile(file, '{"links":["hyper0"]}');
    await assert.rejects(readHostNetworkRecord(file), /host-network\.json: record: tables: must be a list/);
  } finally {
    await rm(directory, { recursive: true });
  }
});
