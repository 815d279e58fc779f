/**
 * Kernel arguments of a pool on machines that boot from their disk by a real boot loader: drained, edited, rebooted; and
 * the power cut while the loader's file changes. Minutes for each. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '../e2e/harness.ts';
import { kubectls } from '../kubectls.ts';
import type { LabBootLoader } from './boot-disk.ts';
import { TimeLine } from './time-line.ts';
import { VmHost, whyNoVm } from './vm-host.ts';

const missing = await whyNoVm();
if (missing !== undefined) console.log(`not run: ${missing}`);

const READY_MS = 600_000;
const GROUP = 'machineconfiguration.openshift.io';
const FILES: Readonly<Record<LabBootLoader, string>> = {
  extlinux: '/boot/extlinux/extlinux.conf',
  grub: '/etc/default/grub.d/90-hyperedge.cfg',
};
const ONLY = process.env['HYPEREDGE_LAB_LOADER'];

const machineConfig = (name: string, kernelArguments: readonly string[]): string =>
  JSON.stringify({
    apiVersion: `${GROUP}/v1`,
    kind: 'MachineConfig',
    metadata: { name, labels: { [`${GROUP}/role`]: 'master' } },
    spec: { config: { ignition: { version: '3.2.0' } }, kernelArguments },
  });

for (const loader of ['extlinux', 'grub'] as const) {
  const skip = missing ?? (ONLY !== undefined && ONLY !== loader ? 'another loader was named' : false);
  describe(`kernel arguments by ${loader}`, { skip, timeout: 1_700_000 }, () => {
    const line = new TimeLine(loader);

    test('a reboot brings them, and after a power cut the machine boots with the old or the new ones', async () => {
      const host = await VmHost.create(
        { '/usr/local/bin/kubectl': kubectls()[0]?.path ?? 'kubectl' },
        (text) => console.log(text),
        loader,
      );
      const kubectl = (args: string): Promise<string> =>
        host.must(`kubectl --kubeconfig /etc/origin/master/admin.kubeconfig ${args}`);
      const apply = (text: string): Promise<string> => kubectl(`apply -f - <<'END'\n${text}\nEND`);
      const cmdline = (): Promise<string> => host.must('cat /proc/cmdline');
      const node = async (): Promise<Readonly<Record<string, string>>> =>
        JSON.parse(await kubectl('get nodes -o "jsonpath={.items[0].metadata.annotations}"'));
      /** Done with a config that `wanted` takes; its name. */
      const done = (what: string, wanted: (config: string) => boolean): Promise<string> =>
        line.step(what, () =>
          eventually(what, READY_MS, async () => {
            const found = await node().catch(() => undefined);
            const config = found?.[`${GROUP}/currentConfig`] ?? '';
            const same = found?.[`${GROUP}/desiredConfig`] === config;
            return found?.[`${GROUP}/state`] === 'Done' && same && config !== '' && wanted(config) ? config : undefined;
          }),
        );
      try {
        await line.step('booted from the disk', () => host.boot());
        assert.match(await cmdline(), /^BOOT_IMAGE=/);
        await host.must('systemctl enable --now hyperedge', READY_MS);
        const first = await done('node Done with its first config', () => true);
        const bootId = await host.must('cat /proc/sys/kernel/random/boot_id');

        await apply(machineConfig('50-first', ['lab.first=1', 'lab.quoted="a b"']));
        const second = await done('node Done with kernel arguments', (config) => config !== first);
        assert.notEqual(await host.must('cat /proc/sys/kernel/random/boot_id'), bootId);
        assert.match(await cmdline(), /^BOOT_IMAGE=.* lab\.first=1 "?lab\.quoted="?a b"/);

        // Refused before anything is touched.
        const before = await host.must(`cat ${FILES[loader]}`);
        await apply(machineConfig('60-bad', ['lab.bad="']));
        await eventually('a node that does not follow', READY_MS, async () =>
          /quote that does not end/.test((await node())[`${GROUP}/reason`] ?? '') ? true : undefined,
        );
        assert.equal(await host.must(`cat ${FILES[loader]}`), before);
        await kubectl('delete mc 60-bad');
        await done('node Done again', (config) => config === second);

        await apply(machineConfig('70-second', ['lab.second=2']));
        await eventually('a change of the boot loader', READY_MS, async () =>
          (await host.shell(`grep -q lab.second ${FILES[loader]}`)).code === 0 ? true : undefined,
        );
        await host.cutPower();
        await line.step('booted after the power cut', () => host.boot());
        const after = await cmdline();
        line.note(`after the power cut: ${after}`);
        assert.match(after, /^BOOT_IMAGE=.* lab\.first=1/);
        await done('node Done after the power cut', (config) => config !== second);
        assert.match(await cmdline(), / lab\.first=1 .*lab\.second=2/);

        await kubectl('delete mc 50-first 70-second');
        await done('node Done without kernel arguments', (config) => config === first);
        assert.doesNotMatch(await cmdline(), /lab\./);
      } catch (error) {
        console.log(host.console.slice(-3_000));
        console.log((await host.shell('journalctl -u hyperedge --no-pager | tail -40')).stdout);
        throw error;
      } finally {
        await host.stop();
      }
    });
  });
}
