/**
 * Replacement of etcd under a real systemd: Debian's unit with the drop-in of docs/etcd.md. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { projectRoot } from '../e2e/harness.ts';
import { NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const UNIT = '/lib/systemd/system/etcd.service';
const missing = (await whyNoNspawn()) ?? (existsSync(UNIT) ? undefined : `${UNIT} is missing: install etcd-server`);
if (missing !== undefined) console.log(`not run: ${missing}`);

/** The drop-in for `systemctl edit etcd` in the documentation. */
async function dropIn(): Promise<string> {
  const page = await readFile(join(projectRoot, 'docs/etcd.md'), 'utf8');
  const block = /```\n(\[Service\]\n.*?)```/s.exec(page)?.[1];
  if (block === undefined) throw new Error('docs/etcd.md has no drop-in');
  return block;
}

describe("Debian's unit for etcd", { skip: missing ?? false }, () => {
  let host: NspawnHost;

  before(async () => {
    host = await NspawnHost.create((line) => console.log(line));
    const at = (path: string): string => join(host.root, path);
    await copyFile(UNIT, at('etc/systemd/system/etcd.service'));
    await mkdir(at('etc/systemd/system/etcd.service.d'));
    await writeFile(at('etc/systemd/system/etcd.service.d/override.conf'), await dropIn());
    await symlink('hyperedge', at('usr/local/bin/etcd'));
    await host.boot();
    await host.must('useradd', ['--system', '--create-home', '--home-dir', '/var/lib/etcd', 'etcd']);
  });
  after(() => host?.stop());

  const show = async (property: string): Promise<string> =>
    (await host.must('systemctl', ['show', 'etcd', '--value', '-p', property])).trim();

  test("the store starts in Debian's systemd unit for etcd and notifies systemd that it is ready", async () => {
    const started = await host.inside('systemctl', ['start', 'etcd'], { timeoutMs: 100_000 });
    const journal = await host.inside('journalctl', ['-u', 'etcd', '--no-pager']);
    assert.equal(started.code, 0, `${started.stderr}${journal.stdout}`);
    assert.deepEqual([await show('Type'), await show('User'), await show('ActiveState')], ['notify', 'etcd', 'active']);
    // The store responds as soon as the unit is active.
    assert.equal(await host.must('curl', ['-s', 'http://127.0.0.1:2379/health']), '{"health":"true","reason":""}');
    assert.ok(existsSync(join(host.root, 'var/lib/etcd/default/revisions.db')));
  });

  test("the store stops cleanly when Debian's systemd unit for etcd is stopped", async () => {
    await host.must('systemctl', ['stop', 'etcd']);
    assert.deepEqual(
      [await show('ActiveState'), await show('Result'), await show('ExecMainStatus')],
      ['inactive', 'success', '0'],
    );
  });
});
