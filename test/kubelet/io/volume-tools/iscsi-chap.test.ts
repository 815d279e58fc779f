/** CHAP settings are set before discovery and login, and no error contains a password; with a fake open-iscsi. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import { createVolumeTools } from '../../../../src/kubelet/io/volume-tools/volume-tools.ts';

const target = {
  portals: ['192.0.2.1'],
  iqn: 'iqn.2001-04.com.example:disk',
  lun: 0,
  interface: 'default',
  chap: {
    discovery: { 'discovery.sendtargets.auth.username': 'd', 'discovery.sendtargets.auth.password': 'secret-d' },
    session: { 'node.session.auth.username': 's', 'node.session.auth.password': 'secret-s' },
  },
};

describe('iSCSI with CHAP', () => {
  let directory: string;
  const path = process.env['PATH'];

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-iscsi-'));
    process.env['PATH'] = `${directory}:${path}`;
  });
  after(async () => {
    process.env['PATH'] = path;
    await rm(directory, { recursive: true, force: true });
  });

  const program = async (body: string): Promise<void> => {
    await writeFile(join(directory, 'iscsiadm'), `#!/bin/sh\necho "$@" >> ${directory}/calls\n${body}\n`);
    await chmod(join(directory, 'iscsiadm'), 0o755);
  };

  it('sets CHAP names and passwords before discovery and before login', async () => {
    await program('case "$*" in *--login*) echo "login refused" >&2; exit 1 ;; esac');
    await assert.rejects(
      createVolumeTools({ createdVolumes: '/nonexistent', log: silentLog }).iscsiLogin(target),
      /login refused/,
    );
    const calls = (await readFile(join(directory, 'calls'), 'utf8')).trim().split('\n');
    const discovery = '-m discoverydb -t sendtargets -p 192.0.2.1:3260 -I default';
    const node = '-m node -p 192.0.2.1:3260 -T iqn.2001-04.com.example:disk -I default';
    assert.deepEqual(calls, [
      `${discovery} -o new`,
      `${discovery} -o update -n discovery.sendtargets.auth.authmethod -v CHAP`,
      `${discovery} -o update -n discovery.sendtargets.auth.username -v d`,
      `${discovery} -o update -n discovery.sendtargets.auth.password -v secret-d`,
      `${discovery} --discover`,
      `${node} -o update -n node.session.auth.authmethod -v CHAP`,
      `${node} -o update -n node.session.auth.username -v s`,
      `${node} -o update -n node.session.auth.password -v secret-s`,
      `${node} --login`,
    ]);
  });

  it('the error of a CHAP setting omits its value', async () => {
    await program('case "$*" in *password*) exit 7 ;; esac');
    await assert.rejects(
      createVolumeTools({ createdVolumes: '/nonexistent', log: silentLog }).iscsiLogin(target),
      (error: Error) => {
        assert.equal(error.message, 'iscsiadm: discovery.sendtargets.auth.password was not set');
        assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /secret-d/);
        return true;
      },
    );
  });

  it('lists the targets of sessions, and none if iscsiadm finds no session', async () => {
    const tools = createVolumeTools({ createdVolumes: '/nonexistent', log: silentLog });
    await program(
      "printf '%s\\n' 'tcp: [1] 192.0.2.1:3260,1 iqn.2001-04.com.example:a (non-flash)' 'iser: [12] [2001:db8::1]:3260,1 iqn.2001-04.com.example:b (non-flash)'",
    );
    assert.deepEqual(await tools.iscsiSessions(), ['iqn.2001-04.com.example:a', 'iqn.2001-04.com.example:b']);
    await program('echo "iscsiadm: No active sessions." >&2; exit 21');
    assert.deepEqual(await tools.iscsiSessions(), []);
    await program('echo "iscsiadm: can not connect to iSCSI daemon" >&2; exit 20');
    await assert.rejects(tools.iscsiSessions(), /can not connect/);
  });
});
