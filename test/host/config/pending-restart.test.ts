import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { watchBootstrap } from '../../../src/host/config/pending-restart.ts';

const HEAD = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n';

test('names the fields of the bootstrap file and its drop-ins that changed since the start', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-pending-'));
  const file = join(directory, 'bootstrap.yaml');
  try {
    const none = await watchBootstrap(file);
    assert.equal(await none(), undefined);
    await writeFile(file, `${HEAD}roles: [node]\nlogLevel: 2\nlabels: {a: "1", b: "2"}\n`);
    assert.deepEqual((await none())?.fields, ['labels.a', 'labels.b', 'logLevel', 'roles']);

    const pending = await watchBootstrap(file);
    // Other spellings of the same values are no change.
    await writeFile(file, `${HEAD}# comment\nlabels:\n  b: '2'\n  a: "1"\nlogLevel: 2\nroles:\n- node\n`);
    assert.equal(await pending(), undefined);
    await mkdir(`${file}.d`);
    const forward = '{type: syslog, url: "tls://logs.example:6514"}';
    await writeFile(join(`${file}.d`, '10-logs.yaml'), `${HEAD}logLevel: 4\nlogging:\n  forward: ${forward}\n`);
    assert.deepEqual(await pending(), { fields: ['logLevel', 'logging.forward'] });
    await writeFile(file, `${HEAD}wrong: 1\n`);
    assert.match((await pending())?.problem ?? '', /bootstrap\.yaml:3: wrong: unknown field/);
    await rm(`${file}.d`, { recursive: true });
    await writeFile(file, `${HEAD}roles: [node]\nlogLevel: 2\nlabels: {a: "1", b: "2"}\n`);
    assert.equal(await pending(), undefined);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
