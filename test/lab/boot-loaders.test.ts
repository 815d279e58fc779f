/**
 * Kernel arguments of a pool on machines that boot from disk with a real boot loader: drain, edit, reboot, and power
 * cuts while the loader's file changes. API server and controllers run outside; in the emulated machine only the
 * machine config daemon runs. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { build } from 'esbuild';
import { resources } from '../../src/api/resources.ts';
import { ROLE_LABEL } from '../../src/openshift/machine-config/kinds/machine-config-types.ts';
import { type ControlPlane, startControlPlane } from '../controllers/harness.ts';
import { eventually } from '../e2e/harness.ts';
import type { LabBootLoader } from './support/boot-disk.ts';
import type { DaemonAccess } from './support/pool-daemon.child.ts';
import { TimeLine } from './support/time-line.ts';
import { API_OF_TEST, VmHost, whyNoVm } from './support/vm-host.ts';

const missing = await whyNoVm();
if (missing !== undefined) console.log(`not run: ${missing}`);

const DONE_MS = 420_000;
const GROUP = 'machineconfiguration.openshift.io';
const NODE = 'machine';
const FILES: Readonly<Record<LabBootLoader, string>> = {
  extlinux: '/boot/extlinux/extlinux.conf',
  grub: '/etc/default/grub.d/90-hyperedge.cfg',
};
const ONLY = process.env['HYPEREDGE_LAB_LOADER'];
const UNIT = `[Unit]
Description=machine config daemon of the lab
[Service]
ExecStart=/root/node /root/pool-daemon.cjs /root/access.json
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
`;

for (const loader of ['extlinux', 'grub'] as const) {
  const skip = missing ?? (ONLY !== undefined && ONLY !== loader ? 'another loader was named' : false);
  describe(`kernel arguments with ${loader}`, { skip, timeout: 1_500_000 }, () => {
    test('a reboot applies kernel arguments, and a power cut leaves either the old or the new arguments', async () => {
      const line = new TimeLine(loader);
      const work = await mkdtemp(join(tmpdir(), 'he-loader-'));
      let plane: ControlPlane | undefined;
      let host: VmHost | undefined;
      try {
        plane = await startControlPlane({
          controllers: { nodeMonitorGracePeriodMs: 3_600_000, nodeStartupGracePeriodMs: 3_600_000 },
        });
        await plane.addNode(NODE, ({ metadata }) => {
          if (metadata !== undefined) metadata.labels = { 'node-role.kubernetes.io/master': '' };
        });
        host = await VmHost.create(await daemonFiles(plane, work), (text) => console.log(text), loader);
        await drill(loader, line, plane, host);
      } catch (error) {
        console.log(host?.console.slice(-2_000));
        console.log((await host?.shell('journalctl -u pool-daemon --no-pager | tail -30'))?.stdout);
        throw error;
      } finally {
        await host?.stop();
        await plane?.stop();
        await rm(work, { recursive: true, force: true });
      }
    });
  });
}

/** Local paths by path in the machine. */
async function daemonFiles({ api }: ControlPlane, work: string): Promise<Record<string, string>> {
  const at = (name: string): string => join(work, name);
  await build({
    entryPoints: [join(import.meta.dirname, 'support', 'pool-daemon.child.ts')],
    outfile: at('pool-daemon.cjs'),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
    logLevel: 'error',
  });
  const { certPem, keyPem } = await api.user(`system:node:${NODE}`, 'system:nodes');
  const access: DaemonAccess = {
    server: `https://${API_OF_TEST.address}:${API_OF_TEST.port}`,
    tlsServerName: 'localhost',
    ca: api.ca.certPem,
    cert: certPem,
    key: keyPem,
    nodeName: NODE,
  };
  await writeFile(at('access.json'), JSON.stringify(access), { mode: 0o600 });
  await writeFile(at('pool-daemon.service'), UNIT);
  return {
    '/root/node': process.execPath,
    '/root/pool-daemon.cjs': at('pool-daemon.cjs'),
    '/root/access.json': at('access.json'),
    '/etc/systemd/system/pool-daemon.service': at('pool-daemon.service'),
  };
}

async function drill(loader: LabBootLoader, line: TimeLine, plane: ControlPlane, host: VmHost): Promise<void> {
  const configs = plane.of(resources.machineConfigs);
  const apply = (name: string, kernelArguments: string[]) =>
    configs.create({
      metadata: { name, labels: { [ROLE_LABEL]: 'master' } },
      spec: { config: { ignition: { version: '3.2.0' } }, kernelArguments },
    });
  const node = async () => (await plane.of(resources.nodes).get(NODE)).metadata?.annotations ?? {};
  const cmdline = (): Promise<string> => host.must('cat /proc/cmdline');
  /** Waits until the node is Done with a config that satisfies `wanted`, and returns its name. */
  const done = (what: string, wanted: (config: string) => boolean): Promise<string> =>
    line.step(what, () =>
      eventually(what, DONE_MS, async () => {
        const found = await node();
        const config = found[`${GROUP}/currentConfig`] ?? '';
        const isDone = found[`${GROUP}/state`] === 'Done' && found[`${GROUP}/desiredConfig`] === config;
        return isDone && config !== '' && wanted(config) ? config : undefined;
      }),
    );

  const boot = () => host.boot({ api: plane.api.port });
  await line.step('booted from the disk', boot);
  assert.match(await cmdline(), /^BOOT_IMAGE=/);
  const bootId = await host.must('cat /proc/sys/kernel/random/boot_id');
  await host.must('systemctl enable --now pool-daemon && sync');
  const first = await done('Done with the first config', () => true);

  await apply('50-first', ['lab.first=1', 'lab.quoted="a b"']);
  const second = await done('drained, rebooted, Done with kernel arguments', (config) => config !== first);
  assert.notEqual(await host.must('cat /proc/sys/kernel/random/boot_id'), bootId);
  assert.match(await cmdline(), /^BOOT_IMAGE=.* lab\.first=1 "?lab\.quoted="?a b"/);
  assert.match((await node())[`${GROUP}/lastAppliedDrain`] ?? '', /^uncordon-/);

  const before = await host.must(`cat ${FILES[loader]}`);
  await apply('60-bad', ['lab.bad="']);
  await eventually('a host that does not follow', DONE_MS, async () =>
    /quote that does not end/.test((await node())[`${GROUP}/reason`] ?? '') ? true : undefined,
  );
  assert.equal(await host.must(`cat ${FILES[loader]}`), before);
  await configs.delete('60-bad');
  await done('Done again without the bad argument', (config) => config === second);

  await apply('70-second', ['lab.second=2']);
  await eventually('a change of the boot loader', DONE_MS, async () =>
    (await host.shell(`grep -q lab.second ${FILES[loader]}`, 10_000)).code === 0 ? true : undefined,
  );
  await host.cutPower();
  await line.step('booted after the power cut', boot);
  line.note(`after the power cut: ${await cmdline()}`);
  assert.match(await cmdline(), /^BOOT_IMAGE=.* lab\.first=1/);
  await done('Done after the power cut', (config) => config !== second);
  assert.match(await cmdline(), / lab\.first=1 .*lab\.second=2/);

  await configs.delete('50-first');
  await configs.delete('70-second');
  await done('Done without kernel arguments', (config) => config === first);
  assert.doesNotMatch(await cmdline(), /lab\./);
}
