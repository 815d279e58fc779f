/**
 * Fixes that cannot run on the host of the tests, applied to copies: a shell runs the printed text in a mount namespace
 * in which /boot is that of the fake machine, and programs such as reboot and date are stubs.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CHECKS, diagnose } from '../../../src/doctor/core/index.ts';
import type { CheckReport, DoctorReport } from '../../../src/doctor/port.ts';
import { runDoctor } from '../../../src/host/doctor/doctor.ts';
import { gathered, HEALTHY, NOW_MS } from '../../doctor/facts.ts';
import { type FakeMachine, withMachine } from '../../doctor/machine.ts';

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const helper = [process.execPath, main, 'doctor-probe'];

async function resultOf({ machine, root }: FakeMachine, id: string): Promise<CheckReport> {
  const { checks } = await runDoctor({ machine, root, helper, only: [id] });
  const [check] = checks;
  assert.ok(check !== undefined);
  return check;
}

const fixOf = ({ findings }: CheckReport): string => findings.find(({ result }) => result !== 'ok')?.fix ?? '';

/** Runs the fix as root pastes it, with stubs before the programs of the host. Returns its output. */
async function paste(fix: string, stubs: Readonly<Record<string, string>>, setup = ':'): Promise<string> {
  const bin = await mkdtemp(join(tmpdir(), 'doctor-stubs-'));
  try {
    for (const [name, text] of Object.entries(stubs))
      await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
    const script = `set -e\n${setup}\nset +e\n${fix}`;
    return execFileSync('unshare', ['--mount', 'sh', '-c', script], { encoding: 'utf8', env });
  } finally {
    await rm(bin, { recursive: true, force: true });
  }
}

/** The kernel's view after a boot with the command line of the firmware and of the file. */
async function boot({ put, machine }: FakeMachine, file: string, firmware: string): Promise<string> {
  const text = (await readFile(join(machine, file), 'utf8')).trimEnd();
  assert.ok(!text.includes('\n'), 'cmdline.txt has a single line');
  const words = `${firmware} ${text}`.split(/\s+/);
  // The last option about the controller decides.
  const last = words.findLast((word) => /^cgroup_(?:enable|disable)=\S*memory/.test(word)) ?? '';
  const isEnabled = !last.startsWith('cgroup_disable');
  await put('proc/cmdline', `${words.join(' ').trim()}\n`);
  await put('proc/cgroups', `#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t90\t${isEnabled ? 1 : 0}\n`);
  await put('sys/fs/cgroup/cgroup.controllers', `cpuset cpu io ${isEnabled ? 'memory ' : ''}pids\n`);
  return text;
}

const COMMAND_LINES: readonly (readonly [what: string, file: string, firmware: string, text: string])[] = [
  [
    'the firmware disables the controller',
    'boot/firmware/cmdline.txt',
    'cgroup_disable=memory',
    'console=tty1 rootwait\n',
  ],
  [
    'the file disables the controller',
    'boot/firmware/cmdline.txt',
    '',
    'console=tty1 cgroup_disable=memory rootwait\n',
  ],
  ['cgroup_disable is the first word', 'boot/cmdline.txt', '', 'cgroup_disable=memory console=tty1 rootwait\n'],
  [
    'memory is the last of several disabled controllers',
    'boot/cmdline.txt',
    '',
    'console=tty1 cgroup_disable=io,memory rootwait\n',
  ],
  [
    'memory is the first of several disabled controllers',
    'boot/cmdline.txt',
    '',
    'console=tty1 cgroup_disable=memory,io rootwait\n',
  ],
  ['the file has no final newline', 'boot/firmware/cmdline.txt', 'cgroup_disable=memory', 'console=tty1 rootwait'],
  [
    'the file already has one of the options',
    'boot/firmware/cmdline.txt',
    'cgroup_disable=memory',
    'console=tty1 cgroup_memory=1\n',
  ],
];

for (const [what, file, firmware, text] of COMMAND_LINES)
  test(`memory-cgroup: the printed change of ${file} enables the controller if ${what}`, () =>
    withMachine(async (fake) => {
      await fake.remove('boot/firmware/cmdline.txt');
      await fake.put(file, text);
      await boot(fake, file, firmware);
      const found = await resultOf(fake, 'memory-cgroup');
      assert.equal(found.result, 'error', JSON.stringify(found));
      const fix = fixOf(found);
      const mount = `mount --bind '${join(fake.machine, 'boot')}' /boot`;
      assert.equal(await paste(fix, { reboot: 'echo rebooted' }, mount), 'rebooted\n', fix);

      const after = await boot(fake, file, firmware);
      assert.equal((await resultOf(fake, 'memory-cgroup')).result, 'ok', after);
      assert.doesNotMatch(after, /(?:^|\s),/, 'no part of an option is left');
      assert.deepEqual(
        after.split(' ').filter((word) => word !== '' && !word.startsWith('cgroup_')),
        text
          .trim()
          .split(' ')
          .filter((word) => !word.startsWith('cgroup_')),
        'other options are kept',
      );
      assert.equal(new Set(after.split(' ')).size, after.split(' ').length, 'no option is there twice');
    }));

for (const offsetMs of [-3_600_000, 5_000, 90_000])
  test(`clock-skew: the printed command sets a clock that is ${offsetMs} ms off to the time of its peers`, async () => {
    const ring = HEALTHY.ring.map((each) => (each.self ? { ...each, clockOffsetMs: offsetMs } : each));
    const checks = CHECKS.filter(({ id }) => id === 'clock-skew');
    const [found] = diagnose(checks, gathered({ ring }));
    assert.ok(found !== undefined && found.result !== 'ok', JSON.stringify(found));
    // The clock of the tests must not change: date only prints the time that it would set.
    const stubs = { timedatectl: 'exit 1', date: 'shift 2; exec /bin/date -u -d "$1" +%s' };
    const seconds = Number(await paste(fixOf(found), stubs));
    assert.ok(Math.abs(seconds * 1000 - (NOW_MS - offsetMs)) <= 1000, `${seconds}: ${fixOf(found)}`);

    const remaining = offsetMs + (seconds * 1000 - NOW_MS);
    const set = HEALTHY.ring.map((each) => (each.self ? { ...each, clockOffsetMs: remaining } : each));
    assert.equal(diagnose(checks, gathered({ ring: set }))[0]?.result, 'ok', `${remaining} ms remain`);
    // If the host has a time service, the second command does not run.
    assert.equal(await paste(fixOf(found), { timedatectl: 'echo "$*"', date: 'echo set' }), 'set-ntp true\n');
  });

test('file-system: the printed commands move a data directory from tmpfs to a disk with its contents', async () => {
  const base = await mkdtemp(join(tmpdir(), 'doctor-tmpfs-'));
  try {
    const root = join(base, 'root');
    const data = join(root, 'var/lib/origin');
    await mkdir(data, { recursive: true });
    execFileSync('truncate', ['-s', '16M', join(base, 'disk')]);
    execFileSync('mkfs.ext4', ['-q', '-F', join(base, 'disk')]);
    const doctor = `'${process.execPath}' '${main}' doctor --root '${root}' -o json --check file-system`;
    const setup = `mount -t tmpfs tmpfs '${data}'; mkdir '${data}/store'; echo kept > '${data}/store/file'`;
    const findingOf = (text: string): CheckReport => {
      const { checks }: DoctorReport = JSON.parse(text);
      assert.ok(checks[0] !== undefined, text);
      return checks[0];
    };
    const isVolatile = ({ evidence }: { evidence: string }): boolean =>
      evidence.startsWith(`${data} `) && evidence.includes('tmpfs');
    const found = findingOf(await paste(`${doctor} || true`, {}, setup)).findings.find(isVolatile);
    assert.match(found?.evidence ?? '', /is on tmpfs at .*, which is lost at a boot$/);
    const fix = (found?.fix ?? '').replaceAll('DEVICE', join(base, 'disk'));
    const after = await paste(
      `${fix}\ncat '${data}/store/file' >&2\n${doctor} || true`,
      {},
      `${setup}\nexec 2>'${base}/kept'`,
    );
    assert.equal(await readFile(join(base, 'kept'), 'utf8'), 'kept\n', fix);
    assert.deepEqual(findingOf(after).findings.filter(isVolatile), []);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
});

test('leftover-mounts: the printed command keeps the file systems of the host that a bind mount shows', async () => {
  const base = await mkdtemp(join(tmpdir(), 'doctor-leftovers-'));
  try {
    const [host, left] = [join(base, 'host'), join(base, 'left')];
    await mkdir(host);
    await mkdir(left);
    const setup = [
      `mount -t tmpfs tmpfs '${host}'`,
      `mount --make-shared '${host}'`,
      `mkdir '${host}/inner'`,
      `mount -t tmpfs tmpfs '${host}/inner'`,
      `mount --rbind '${host}' '${left}'`,
    ].join('\n');
    const show = `\ngrep -o '${base}/[^ ]*' /proc/self/mountinfo`;
    const checks = CHECKS.filter(({ id }) => id === 'leftover-mounts');
    const leftovers = { mounts: [join(left, 'inner'), left], namespaces: [] };
    const [found] = diagnose(checks, gathered({ leftovers }));
    assert.ok(found !== undefined);
    const fix = found.findings.map((each) => each.fix ?? '').join('\n');
    assert.equal(await paste(fix + show, {}, setup), `${host}\n${host}/inner\n`);
    // A lazy unmount alone also unmounts the file system of the host.
    assert.equal(await paste(`umount -l '${left}'${show}`, {}, setup), `${host}\n`);
  } finally {
    await rm(base, { recursive: true, force: true });
  }
});
