/** AppArmor profiles, with files in place of the kernel's, so that the kernel need not support AppArmor. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type AppArmorFiles, appArmorEnabled, appArmorProfile } from '../../../../src/runtime/oci/spec/apparmor.ts';

console.log(`AppArmor of this kernel: ${(await appArmorEnabled()) ? 'yes' : 'no'}`);

describe('AppArmor profiles', () => {
  let directory: string;
  let files: AppArmorFiles;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-apparmor-'));
    files = {
      enabled: join(directory, 'enabled'),
      profiles: join(directory, 'profiles'),
      parser: join(directory, 'parser'),
    };
    await writeFile(files.enabled, 'Y\n');
    await writeFile(files.profiles, 'docker-default (enforce)\nown (complain)\n');
    await writeFile(files.parser, `#!/bin/sh\ncat > ${directory}/loaded; echo "$@" > ${directory}/arguments\n`);
    await chmod(files.parser, 0o755);
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('rejects a container whose AppArmor profile of type Localhost is not loaded', async () => {
    assert.equal(await appArmorProfile({ appArmor: { type: 'localhost', profile: 'own' } }, files), 'own');
    await assert.rejects(appArmorProfile({ appArmor: { type: 'localhost', profile: 'ow' } }, files), {
      code: 'create-failed',
      message: 'apparmor profile not found ow',
    });
  });

  it('loads the default AppArmor profile on first use', async () => {
    const name = await appArmorProfile({ appArmor: { type: 'runtime/default' } }, files);
    assert.equal(name, 'hyperedge-default');
    assert.match(await readFile(join(directory, 'loaded'), 'utf8'), /\nprofile hyperedge-default flags=/);
    assert.equal(await readFile(join(directory, 'arguments'), 'utf8'), '--replace\n');
  });

  it('uses no AppArmor profile if unconfined, and rejects a required profile if the kernel lacks AppArmor', async () => {
    assert.equal(await appArmorProfile({}, files), undefined);
    assert.equal(await appArmorProfile({ appArmor: { type: 'unconfined' } }, files), undefined);
    const without = { ...files, enabled: join(directory, 'absent') };
    assert.equal(await appArmorEnabled(without), false);
    await assert.rejects(appArmorProfile({ appArmor: { type: 'runtime/default' } }, without), {
      message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host',
    });
  });
});
