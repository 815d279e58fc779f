import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseNetworkConfig, readNetworkConfig } from '../../../../src/network/pods/cni/config.ts';

test('uses the CNI configuration with the lowest file name, and ignores other files and a missing directory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-cni-'));
  try {
    assert.equal(await readNetworkConfig(join(directory, 'absent')), undefined);
    await writeFile(join(directory, '00-readme.txt'), 'x');
    assert.equal(await readNetworkConfig(directory), undefined);
    await writeFile(
      join(directory, '20-b.conflist'),
      '{"name":"b","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}',
    );
    await writeFile(join(directory, '10-a.conf'), '{"name":"a","cniVersion":"0.4.0","type":"ptp","mtu":1400}');
    const found = await readNetworkConfig(directory);
    assert.equal(found?.file, join(directory, '10-a.conf'));
    assert.deepEqual(
      [found?.config.name, found?.config.plugins[0]?.type, found?.config.plugins[0]?.['mtu']],
      ['a', 'ptp', 1400],
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('reports an invalid CNI configuration in one line with the file and the field', () => {
  const cases: readonly [string, RegExp][] = [
    ['{', /^f: not valid JSON/],
    ['[]', /^f: is not a JSON object/],
    ['{"cniVersion":"1.0.0","plugins":[{"type":"x"}]}', /^f: name:/],
    ['{"name":"a b","cniVersion":"1.0.0","plugins":[{"type":"x"}]}', /^f: name:/],
    ['{"name":"a","plugins":[{"type":"x"}]}', /^f: cniVersion: "0\.1\.0" is not supported/],
    ['{"name":"a","cniVersion":"1.0.0","plugins":[]}', /^f: plugins: give 1 to 32/],
    ['{"name":"a","cniVersion":"1.0.0","plugins":[{"type":"../sh"}]}', /^f: plugins\[0\]\.type:/],
    ['{"name":"a","cniVersion":"1.0.0","plugins":[{"type":"ok"},7]}', /^f: plugins\[1\]\.type:/],
  ];
  for (const [text, message] of cases)
    assert.throws(() => parseNetworkConfig('f', text), { code: 'bad-config', message });
});
