import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, readlink, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileConfig, PREFIX, type World, withWorld } from './harness.ts';

const root = { skip: process.getuid?.() !== 0 };
const done = (world: World, config: string) => () =>
  world.annotation('state') === 'Done' && world.annotation('currentConfig') === config;

test('applies a changed file without a reboot, and restores the original when the file is dropped', root, () =>
  withWorld(async (world) => {
    await world.write('etc/motd', 'original');
    world.configs.set('rendered-worker-1', fileConfig({ '/etc/motd': 'hello', '/etc/new/x': 'x' }));
    world.configs.set('rendered-worker-2', fileConfig({}));
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    assert.deepEqual([await world.read('etc/motd'), await world.read('etc/new/x')], ['hello', 'x']);
    assert.deepEqual(world.steps, []);
    world.desire('rendered-worker-2');
    await world.until(done(world, 'rendered-worker-2'));
    assert.deepEqual([await world.read('etc/motd'), await world.read('etc/new/x')], ['original', undefined]);
    assert.equal(world.annotation('reason'), '');
  }),
);

test('writes, enables and starts a systemd unit, and stops it when the config drops the unit', root, () =>
  withWorld(async (world) => {
    const contents = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
    const dropins = [{ name: '10-a.conf', contents: '[Service]\nNice=1\n' }];
    const units = [
      { name: 'a.service', enabled: true, contents, dropins },
      { name: 'host.timer', enabled: true },
      { name: 'noise.service', mask: true },
    ];
    await world.write('usr/lib/systemd/system/host.timer', '[Install]\nWantedBy=timers.target\n');
    world.configs.set('rendered-worker-1', fileConfig({}, { systemd: { units } }));
    world.configs.set('rendered-worker-2', fileConfig({}));
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    assert.equal(await world.read('etc/systemd/system/a.service'), contents);
    assert.equal(await world.read('etc/systemd/system/a.service.d/10-a.conf'), '[Service]\nNice=1\n');
    const link = (path: string) => readlink(join(world.root, 'etc/systemd/system', path));
    assert.equal(await link('multi-user.target.wants/a.service'), '/etc/systemd/system/a.service');
    assert.equal(await link('timers.target.wants/host.timer'), '/usr/lib/systemd/system/host.timer');
    assert.equal(await link('noise.service'), '/dev/null');
    assert.deepEqual(world.steps, ['daemon-reload', 'stop noise.service', 'restart a.service', 'restart host.timer']);
    world.steps.length = 0;
    world.desire('rendered-worker-2');
    await world.until(done(world, 'rendered-worker-2'));
    assert.deepEqual(world.steps, ['daemon-reload', 'stop a.service', 'stop host.timer', 'stop noise.service']);
    assert.equal(await world.read('etc/systemd/system/a.service'), undefined);
    await assert.rejects(link('multi-user.target.wants/a.service'));
  }),
);

test('follows the node disruption policy, and reloads kubelet.conf and registries.conf in place', root, () =>
  withWorld(async (world) => {
    const files = { '/etc/kubernetes/kubelet.conf': '{}', '/etc/containers/registries.conf': '', '/etc/app/a': 'a' };
    world.configs.set('rendered-worker-1', fileConfig(files));
    world.policies = {
      spec: {
        nodeDisruptionPolicy: {
          files: [
            { path: '/etc/app', actions: [{ type: 'Drain' }, { type: 'Reload', reload: { serviceName: 'app' } }] },
          ],
        },
      },
    };
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(() => world.annotation('desiredDrain') === 'drain-rendered-worker-1');
    assert.equal(world.annotation('state'), 'Working');
    assert.equal(await world.read('etc/app/a'), undefined);
    world.annotate({ [`${PREFIX}lastAppliedDrain`]: 'drain-rendered-worker-1' });
    await world.until(() => world.annotation('desiredDrain') === 'uncordon-rendered-worker-1');
    assert.deepEqual(world.steps, ['reload app.service', 'reload-images', 'restart-kubelet']);
    assert.equal(world.annotation('state'), 'Working');
    world.annotate({ [`${PREFIX}lastAppliedDrain`]: 'uncordon-rendered-worker-1' });
    await world.until(done(world, 'rendered-worker-1'));
  }),
);

test('reports a change that a running host does not support as Unreconcilable, and applies the next config', root, () =>
  withWorld(async (world) => {
    const disks = { storage: { disks: [{ device: '/one' }], files: [{ path: '/etc/a' }] } };
    world.configs.set('rendered-worker-bad', fileConfig({}, disks));
    world.configs.set('rendered-worker-good', fileConfig({ '/etc/a': 'a' }));
    world.configs.set('rendered-worker-shadow', fileConfig({ '/etc/shadow': 'root::' }));
    await world.restart();
    world.desire('rendered-worker-bad');
    await world.until(() => world.annotation('state') === 'Unreconcilable');
    assert.match(world.annotation('reason'), /^can't reconcile config none with rendered-worker-bad: ignition disks/);
    assert.equal(await world.read('etc/a'), undefined);
    world.desire('rendered-worker-good');
    await world.until(done(world, 'rendered-worker-good'));
    world.desire('rendered-worker-shadow');
    await world.until(() => world.annotation('state') === 'Unreconcilable');
    assert.match(
      world.annotation('reason'),
      /files\[0\]\.path: Forbidden: \/etc\/shadow: the file contains the accounts/,
    );
    world.desire('rendered-worker-kernel');
    world.configs.set('rendered-worker-kernel', { ...fileConfig({}), kernelArguments: ['nosmt'] });
    await world.until(() => world.annotation('reason').includes('kernelArguments'));
    assert.match(world.annotation('reason'), /edit \/etc\/kernel\/cmdline on the host: nosmt/);
  }),
);

test('rolls back a config after which the host is not Ready, and does not retry the config', root, () =>
  withWorld(async (world) => {
    await world.write('etc/network', 'up');
    world.configs.set('rendered-worker-1', fileConfig({ '/etc/a': '1' }));
    world.configs.set('rendered-worker-2', fileConfig({ '/etc/a': '2', '/etc/network': 'down' }));
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    // The config removes the network, so the API server is unreachable afterwards.
    Object.defineProperty(world, 'reachable', {
      get: () => readFileSync(join(world.root, 'etc/network'), 'utf8') !== 'down',
    });
    world.desire('rendered-worker-2');
    await world.until(async () => (await world.read('etc/network')) === 'down');
    await world.until(async () => (await world.read('etc/network')) === 'up');
    await world.until(() => world.annotation('state') === 'Degraded');
    const reason = 'rolled back from rendered-worker-2 to rendered-worker-1: API server not reached within 0m2s';
    assert.ok(world.annotation('reason').startsWith(reason), world.annotation('reason'));
    assert.equal(await world.read('etc/a'), '1');
    assert.equal(world.annotation('currentConfig'), 'rendered-worker-1');
    assert.ok(world.events.some((event) => event.startsWith('Warning ConfigRolledBack')));
    await world.restart();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(await world.read('etc/a'), '1');
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
  }),
);

const networkUnit = (script: string) => ({
  systemd: {
    units: [
      {
        name: 'network.service',
        enabled: true,
        contents: `[Service]\nExecStart=${script}\n[Install]\nWantedBy=a.target\n`,
      },
    ],
  },
});

test('rolls back a unit that disconnects the host later, together with a later config', root, () =>
  withWorld(async (world) => {
    world.settleMs = 2_000;
    world.configs.set('rendered-worker-1', fileConfig({ '/etc/a': '1' }));
    world.configs.set('rendered-worker-2', fileConfig({ '/etc/a': '2' }, networkUnit('/bin/down-in-20-s')));
    world.configs.set('rendered-worker-3', fileConfig({ '/etc/a': '3' }, networkUnit('/bin/down-in-20-s')));
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    world.desire('rendered-worker-2');
    await world.until(done(world, 'rendered-worker-2'));
    // The killed process had the record of the old config on disk, not only in memory.
    world.steps.length = 0;
    await world.restart();
    await world.until(done(world, 'rendered-worker-2'));
    world.desire('rendered-worker-3');
    await world.until(done(world, 'rendered-worker-3'));
    assert.deepEqual(world.steps, []);
    world.reachable = false;
    await world.until(async () => (await world.read('etc/a')) === '1');
    world.reachable = true;
    await world.until(() => world.annotation('state') === 'Degraded');
    assert.match(
      world.annotation('reason'),
      /^rolled back from rendered-worker-3 to rendered-worker-1: API server not reached for 0m2s, soon after/,
    );
    assert.equal(await world.read('etc/systemd/system/network.service'), undefined);
    assert.deepEqual(world.steps, ['daemon-reload', 'stop network.service']);
  }),
);

test('keeps an unconfirmed config when the next config fails, until the unconfirmed config itself fails', root, () =>
  withWorld(async (world) => {
    world.settleMs = 4_000;
    world.configs.set('rendered-worker-1', fileConfig({ '/etc/a': '1' }, networkUnit('/bin/first')));
    world.configs.set('rendered-worker-2', fileConfig({ '/etc/a': '2' }, networkUnit('/bin/second')));
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    world.failing = 'restart network.service';
    world.desire('rendered-worker-2');
    await world.until(() => world.annotation('state') === 'Degraded');
    assert.match(world.annotation('reason'), /^rolled back from rendered-worker-2 to rendered-worker-1: restart/);
    assert.equal(await world.read('etc/a'), '1');
    world.reachable = false;
    await world.until(async () => (await world.read('etc/a')) === undefined);
    world.reachable = true;
    await world.until(() => world.annotation('reason').startsWith('rolled back from rendered-worker-1 to no config'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(await world.read('etc/a'), undefined);
  }),
);

test('does not roll back a config that was confirmed by a Ready host when the network fails later', root, () =>
  withWorld(async (world) => {
    const isConfirmed = async (): Promise<boolean> =>
      !('trial' in JSON.parse((await world.read('var/lib/origin/machine-config/state.json')) ?? '').note);
    world.configs.set('rendered-worker-1', fileConfig({ '/etc/a': '1' }));
    world.configs.set('rendered-worker-2', fileConfig({ '/etc/a': '1' }, networkUnit('/bin/true')));
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    assert.equal(await isConfirmed(), true);
    world.settleMs = 600;
    await world.restart();
    world.desire('rendered-worker-2');
    await world.until(done(world, 'rendered-worker-2'));
    assert.equal(await isConfirmed(), false);
    // The period in which a host must stay Ready starts again when the host was not Ready.
    const began = performance.now();
    world.ready = false;
    await new Promise((resolve) => setTimeout(resolve, 300));
    world.ready = true;
    await world.until(isConfirmed);
    assert.ok(performance.now() - began >= 800);
    world.reachable = false;
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    assert.notEqual(await world.read('etc/systemd/system/network.service'), undefined);
  }),
);

test('rolls back a config that removes the address of a master, even if its own API server stays reachable', root, () =>
  withWorld(async (world) => {
    world.configs.set('rendered-master-1', fileConfig({ '/etc/netplan/50.yaml': 'network: {}' }));
    await world.restart();
    world.desire('rendered-master-1');
    await world.until(async () => (await world.read('etc/netplan/50.yaml')) !== undefined);
    world.addresses = ['127.0.0.1'];
    await world.until(() => world.annotation('state') === 'Degraded');
    assert.match(world.annotation('reason'), /no config: no link has the address 192\.0\.2\.1 of the node/);
    assert.equal(await world.read('etc/netplan/50.yaml'), undefined);
  }),
);

test('the machine config daemon restores all files when one step of a config fails', root, () =>
  withWorld(async (world) => {
    const units = [{ name: 'a.service', enabled: true, contents: '[Install]\nWantedBy=x.target\n' }];
    world.configs.set('rendered-worker-1', fileConfig({ '/etc/a': 'a' }, { systemd: { units } }));
    world.failing = 'restart a.service';
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(() => world.annotation('state') === 'Degraded');
    assert.match(
      world.annotation('reason'),
      /rolled back from rendered-worker-1 to no config: restart a\.service: job/,
    );
    assert.equal(await world.read('etc/systemd/system/a.service'), undefined);
    assert.equal(world.steps.at(-1), 'stop a.service');
  }),
);

test(
  'changes kernel arguments with a drain, the boot loader file, a reboot and a check of the running kernel',
  root,
  () =>
    withWorld(async (world) => {
      await world.write('boot/firmware/cmdline.txt', 'console=tty1 rootwait\n');
      const spec = { ...fileConfig({}), kernelArguments: ['isolcpus=2,3', 'nosmt'] };
      world.configs.set('rendered-worker-1', spec);
      world.configs.set('rendered-worker-2', { ...spec, kernelArguments: ['nosmt', 'never=1'] });
      await world.restart();
      world.desire('rendered-worker-1');
      await world.until(() => world.annotation('desiredDrain') !== '');
      world.annotate({ [`${PREFIX}lastAppliedDrain`]: world.annotation('desiredDrain') });
      await world.until(() => world.steps.includes('reboot'));
      assert.equal(await world.read('boot/firmware/cmdline.txt'), 'console=tty1 rootwait isolcpus=2,3 nosmt\n');
      assert.equal(world.annotation('state'), 'Working');
      world.annotate({ touched: 'meanwhile' });
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.equal(world.steps.filter((step) => step === 'reboot').length, 1);
      Object.assign(world, { bootId: 'boot-2', cmdline: 'console=tty1 rootwait isolcpus=2,3 nosmt' });
      await world.restart();
      await world.until(() => world.annotation('desiredDrain') === 'uncordon-rendered-worker-1');
      world.annotate({ [`${PREFIX}lastAppliedDrain`]: 'uncordon-rendered-worker-1' });
      await world.until(done(world, 'rendered-worker-1'));
      // Simulates a boot loader that does not pass the arguments.
      world.desire('rendered-worker-2');
      await world.until(() => world.annotation('desiredDrain') === 'drain-rendered-worker-2');
      world.annotate({ [`${PREFIX}lastAppliedDrain`]: 'drain-rendered-worker-2' });
      await world.until(() => world.steps.filter((step) => step === 'reboot').length === 2);
      world.bootId = 'boot-3';
      await world.restart();
      await world.until(() => world.annotation('state') === 'Degraded');
      assert.match(world.annotation('reason'), /kernel arguments not in effect after the reboot: never=1/);
      assert.equal(await world.read('boot/firmware/cmdline.txt'), 'console=tty1 rootwait isolcpus=2,3 nosmt\n');
    }),
);

/** Runs until the reboot for the config's kernel arguments starts. */
async function rebooting(world: World, config: string): Promise<void> {
  world.desire(config);
  await world.until(() => world.annotation('desiredDrain') === `drain-${config}`);
  world.annotate({ [`${PREFIX}lastAppliedDrain`]: `drain-${config}` });
  const before = world.steps.filter((step) => step === 'reboot').length;
  await world.until(() => world.steps.filter((step) => step === 'reboot').length > before);
}

async function booted(world: World, config: string, cmdline: string): Promise<void> {
  Object.assign(world, { bootId: `${world.bootId}+`, cmdline });
  await world.restart();
  await world.until(() => world.annotation('desiredDrain') === `uncordon-${config}`);
  world.annotate({ [`${PREFIX}lastAppliedDrain`]: `uncordon-${config}` });
  await world.until(done(world, config));
}

test('changes kernel arguments in boot loader entries that a kernel package has rewritten', root, () =>
  withWorld(async (world) => {
    const file = 'boot/extlinux/extlinux.conf';
    await world.write(file, 'label l0\n kernel /vmlinuz-1\n append root=/dev/sda1\n');
    world.configs.set('rendered-worker-1', { ...fileConfig({}), kernelArguments: ['nosmt'] });
    world.configs.set('rendered-worker-2', fileConfig({}));
    world.configs.set('rendered-worker-3', fileConfig({ '/etc/a': 'a' }));
    await world.restart();
    await rebooting(world, 'rendered-worker-1');
    assert.equal(await world.read(file), 'label l0\n kernel /vmlinuz-1\n append root=/dev/sda1 nosmt\n');
    await booted(world, 'rendered-worker-1', 'root=/dev/sda1 nosmt');
    await world.write(file, 'label l0\n kernel /vmlinuz-2\n append root=/dev/sda1 nosmt\n');
    await rebooting(world, 'rendered-worker-2');
    assert.equal(await world.read(file), 'label l0\n kernel /vmlinuz-2\n append root=/dev/sda1\n');
    await booted(world, 'rendered-worker-2', 'root=/dev/sda1');
    world.desire('rendered-worker-3');
    await world.until(done(world, 'rendered-worker-3'));
    assert.equal(await world.read(file), 'label l0\n kernel /vmlinuz-2\n append root=/dev/sda1\n');
  }),
);

test('reboots again after a power failure that occurred before the boot loader file was written', root, () =>
  withWorld(async (world) => {
    await world.write('boot/cmdline.txt', 'console=tty1\n');
    world.configs.set('rendered-worker-1', { ...fileConfig({}), kernelArguments: ['nosmt'] });
    await world.restart();
    await rebooting(world, 'rendered-worker-1');
    const state = 'var/lib/origin/machine-config/state.json';
    const text = (await world.read(state)) ?? '';
    assert.match(text, /"readyToBoot":true/);
    await world.write(state, text.replace(',"readyToBoot":true', ''));
    world.bootId = 'after the cut';
    await world.restart();
    await world.until(() => world.steps.filter((step) => step === 'reboot').length === 2);
    await booted(world, 'rendered-worker-1', 'console=tty1 nosmt');
    assert.equal(await world.read('boot/cmdline.txt'), 'console=tty1 nosmt\n');
  }),
);

test('changes no files and retries when the boot partition is read-only or full', root, () =>
  withWorld(async (world) => {
    const boot = join(world.root, 'boot/firmware');
    await mkdir(boot, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', boot]);
    try {
      await world.write('boot/firmware/cmdline.txt', 'console=tty1\n');
      await world.write('boot/firmware/kernel.img', 'x'.repeat(4_096));
      world.configs.set('rendered-worker-1', { ...fileConfig({ '/etc/a': 'a' }), kernelArguments: ['nosmt'] });
      await world.restart();
      world.desire('rendered-worker-1');
      await world.until(() => world.annotation('desiredDrain') !== '');
      world.annotate({ [`${PREFIX}lastAppliedDrain`]: 'drain-rendered-worker-1' });
      await world.until(() => world.annotation('state') === 'Degraded');
      assert.match(world.annotation('reason'), /^\/boot\/firmware\/cmdline\.txt: no space left on device; free space/);
      execFileSync('mount', ['-o', 'remount,ro', boot]);
      await world.until(() => /cmdline\.txt: read-only file system/.test(world.annotation('reason')));
      assert.deepEqual(
        [await world.read('boot/firmware/cmdline.txt'), await world.read('etc/a')],
        ['console=tty1\n', undefined],
      );
      assert.deepEqual(world.steps, []);
      execFileSync('mount', ['-o', 'remount,rw,size=64k', boot]);
      await world.until(() => world.steps.includes('reboot'));
      assert.equal(await world.read('boot/firmware/cmdline.txt'), 'console=tty1 nosmt\n');
    } finally {
      execFileSync('umount', ['-l', boot]);
    }
  }),
);

test('detects drift of a file within a second, and either reports path and difference or repairs the file', root, () =>
  withWorld(async (world) => {
    world.configs.set('rendered-worker-1', fileConfig({ '/etc/a': 'right' }));
    world.pools.set('worker', {});
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    let began = performance.now();
    await world.write('etc/a', 'wrong');
    await world.until(() => world.annotation('state') === 'Degraded');
    const noticed = performance.now() - began;
    const reason = 'unexpected on-disk state validating against rendered-worker-1: content mismatch for file "/etc/a"';
    assert.ok(world.annotation('reason').startsWith(reason), world.annotation('reason'));
    const detected = (): number => world.events.filter((event) => event.includes('ConfigDriftDetected')).length;
    // The daemon writes the event after the annotations.
    await world.until(() => detected() > 0);
    assert.equal(detected(), 1);
    await world.write('etc/a', 'right');
    await world.until(done(world, 'rendered-worker-1'));
    world.pools.set('worker', { 'hyperedge.dev/on-drift': 'repair' });
    began = performance.now();
    await rm(join(world.root, 'etc/a'));
    await world.until(async () => (await world.read('etc/a')) === 'right');
    assert.ok(noticed < 1_000 && performance.now() - began < 2_000);
    await world.until(() => world.events.some((event) => event.includes('ConfigDriftRepaired')));
    assert.equal(world.annotation('state'), 'Done');
    // The settings of the pool change while the daemon is stopped.
    world.pools.set('worker', {});
    await world.restart();
    await world.until(done(world, 'rendered-worker-1'));
  }),
);

test('detects at its start drift that occurred while the daemon was stopped', root, () =>
  withWorld(async (world) => {
    world.configs.set('rendered-worker-1', fileConfig({ '/etc/a': 'right' }));
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    world.annotate({ [`${PREFIX}state`]: 'Done' });
    await rm(join(world.root, 'etc/a'));
    await world.restart();
    await world.until(() => world.annotation('reason').includes('could not stat file "/etc/a"'));
    await world.write('run/machine-config-daemon-force', '');
    await world.until(done(world, 'rendered-worker-1'));
    assert.equal(await world.read('etc/a'), 'right');
    assert.equal(await world.read('run/machine-config-daemon-force'), undefined);
    await rm(join(world.root, 'etc/a'));
    await world.until(() => world.annotation('state') === 'Degraded');
  }),
);

test('writes SSH keys of the configured user, and rejects a user that the host does not have', root, () =>
  withWorld(async (world) => {
    await world.write('etc/passwd', 'root:x:0:0::/root:/bin/sh\ncore:x:1234:1234::/home/core:/bin/sh\n');
    await world.write('etc/group', 'core:x:1234:\n');
    const keys = (name: string) =>
      fileConfig({}, { passwd: { users: [{ name, sshAuthorizedKeys: ['ssh-rsa A', 'ssh-rsa B'] }] } });
    world.configs.set('rendered-worker-1', keys('core'));
    await world.restart();
    world.desire('rendered-worker-1');
    await world.until(done(world, 'rendered-worker-1'));
    assert.equal(await world.read('home/core/.ssh/authorized_keys'), 'ssh-rsa A\nssh-rsa B\n');
    const found = await stat(join(world.root, 'home/core/.ssh/authorized_keys'));
    assert.deepEqual([found.uid, found.gid, found.mode & 0o777], [1234, 1234, 0o600]);
    assert.deepEqual(world.steps, []);
    await world.write('etc/passwd', 'root:x:0:0::/root:/bin/sh\n');
    world.configs.set('rendered-worker-2', { ...keys('core'), kernelArguments: [] });
    world.desire('rendered-worker-2');
    await world.until(() => world.annotation('state') === 'Degraded');
    assert.match(world.annotation('reason'), /user core not found on this host/);
  }),
);
