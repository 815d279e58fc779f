import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import {
  clusterPolicies,
  type Disruption,
  type DisruptionPolicies,
  disruptionOf,
  type IgnitionConfig,
  kernelArgumentsError,
  type MachineConfigSpec,
  machineConfigDifference,
  missingKernelArguments,
  splitKernelArguments,
  treeOf,
  withKernelArguments,
} from '../../../../../src/openshift/machine-config/core/ignition/index.ts';

const inflate = (bytes: Uint8Array, maxOutputLength: number): Uint8Array => gunzipSync(bytes, { maxOutputLength });
const ignition = { version: '3.2.0' };
const host = { inflate, homeOf: () => undefined, unitFile: () => undefined };

function needs(from: MachineConfigSpec, to: MachineConfigSpec, policies?: DisruptionPolicies): Disruption {
  const { changes, to: config } = machineConfigDifference(from, to, { inflate });
  assert.ok(config !== undefined);
  return disruptionOf(changes, config, clusterPolicies(policies));
}
const withFiles = (...paths: string[]): MachineConfigSpec => ({
  config: { ignition, storage: { files: paths.map((path) => ({ path })) } },
});
const withUnits = (...units: object[]): MachineConfigSpec => ({ config: { ignition, systemd: { units } } });
const steps = ({ steps: list, drain }: Disruption): string[] => [
  ...(drain ? ['drain'] : []),
  ...list.map((step) => ('unit' in step ? `${step.kind} ${step.unit}` : step.kind)),
];

test('selects the least disruptive post-config actions for a change of a machine config', () => {
  assert.deepEqual(steps(needs({}, withFiles('/etc/any'))), []);
  assert.deepEqual(steps(needs(withFiles('/etc/any'), {})), []);
  assert.deepEqual(steps(needs({}, withFiles('/etc/kubernetes/kubelet.conf'))), ['restart-kubelet']);
  assert.deepEqual(steps(needs({}, withFiles('/etc/crio/crio.conf.d/01-ctrcfg-pidsLimit'))), ['restart-kubelet']);
  const registries = ['registries.conf', 'policy.json', 'registries.d/a.yaml'].map((name) => `/etc/containers/${name}`);
  for (const path of registries) assert.deepEqual(steps(needs({}, withFiles(path))), ['reload-images'], path);
  const unit = (more: object): string[] => steps(needs({}, withUnits({ name: 'a.service', ...more })));
  assert.deepEqual(unit({ enabled: true, contents: '[Unit]' }), ['daemon-reload', 'restart a.service']);
  assert.deepEqual(unit({ dropins: [{ name: 'a.conf' }] }), ['daemon-reload', 'try-restart a.service']);
  assert.deepEqual(unit({ mask: true }), ['daemon-reload', 'stop a.service']);
  assert.deepEqual(unit({ enabled: false }), ['daemon-reload', 'stop a.service']);
  assert.deepEqual(steps(needs({}, withUnits({ name: 'a@.service', contents: '[Unit]' }))), ['daemon-reload']);
  const keys = { config: { ignition, passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['a'] }] } } };
  assert.deepEqual(steps(needs({}, keys)), []);
  assert.deepEqual(steps(needs({}, { kernelArguments: ['nosmt'] })), ['drain', 'reboot']);
});

test('applies the node disruption policy with the longest matching path, and runs each action once and in order', () => {
  const app = { serviceName: 'app' };
  const policies: DisruptionPolicies = {
    files: [
      { path: '/etc', actions: [{ type: 'None' }] },
      { path: '/etc/app', actions: [{ type: 'Restart', restart: app }, { type: 'Drain' }, { type: 'DaemonReload' }] },
      { path: '/etc/crio', actions: [{ type: 'Reload', reload: { serviceName: 'crio.service' } }] },
      { path: '/etc/containers/policy.json', actions: [{ type: 'None' }] },
      { path: '/etc/kubelet', actions: [{ type: 'Restart', restart: { serviceName: 'kubelet.service' } }] },
    ],
    units: [{ name: 'b.service', actions: [{ type: 'Reload', reload: { serviceName: 'b.service' } }] }],
    sshkey: { actions: [{ type: 'Restart', restart: { serviceName: 'sshd.service' } }] },
  };
  const of = (...paths: string[]): string[] => steps(needs({}, withFiles(...paths), policies));
  assert.deepEqual(of('/etc/other', '/etc/containers/policy.json'), []);
  assert.deepEqual(of('/etc/app/a', '/etc/app/b'), ['drain', 'daemon-reload', 'restart app.service']);
  assert.deepEqual(of('/etc/crio/a', '/etc/kubelet/a'), ['reload-images', 'restart-kubelet']);
  assert.deepEqual(of('/etcetera'), []);
  assert.deepEqual(steps(needs({}, withUnits({ name: 'b.service', enabled: true }), policies)), [
    'daemon-reload',
    'reload b.service',
  ]);
  const keys = { config: { ignition, passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['a'] }] } } };
  assert.deepEqual(steps(needs({}, keys, policies)), ['restart sshd.service']);
});

test('converts systemd units of an Ignition config to files and to the links of systemctl enable', () => {
  const config: IgnitionConfig = {
    ignition,
    systemd: {
      units: [
        {
          name: 'a@one.service',
          enabled: true,
        },
        {
          name: 'a@.service',
          contents: '[Install]\nWantedBy=x@%i.target y.target\nWantedBy=\nWantedBy=%p-%i.target\n',
        },
        {
          name: 'b.service',
          enabled: true,
          contents: '[Install]\nRequiredBy=c.target\nAlias=d.service\nAlso=b.socket\n',
        },
        { name: 'b.socket', contents: '[Install]\nWantedBy=sockets.target\n' },
        { name: 'off.service', enabled: false, contents: '[Install]\nWantedBy=z.target \\\n  w.target\n' },
        { name: 'drop.service', dropins: [{ name: '1.conf', contents: '[Unit]\n' }, { name: '2.conf' }] },
      ],
    },
  };
  const tree = treeOf(config, host);
  const links = [...tree].flatMap(([path, entry]) =>
    entry.kind === 'file'
      ? []
      : [`${path.slice('/etc/systemd/system/'.length)} ${'target' in entry ? entry.target : '-'}`],
  );
  assert.deepEqual(links.sort(), [
    'a-one.target.wants/a@one.service /etc/systemd/system/a@.service',
    'c.target.requires/b.service /etc/systemd/system/b.service',
    'd.service /etc/systemd/system/b.service',
    'sockets.target.wants/b.socket /etc/systemd/system/b.socket',
    'w.target.wants/off.service -',
    'z.target.wants/off.service -',
  ]);
  assert.ok(
    tree.has('/etc/systemd/system/drop.service.d/1.conf') && !tree.has('/etc/systemd/system/drop.service.d/2.conf'),
  );
  const missing = { ignition, systemd: { units: [{ name: 'none.service', enabled: true }] } };
  assert.throws(() => treeOf(missing, host), /unit none\.service cannot be enabled; no file of it/);
  const hostile = { name: 'e.service', enabled: true, contents: '[Install]\nWantedBy=../../x\n' };
  assert.throws(
    () => treeOf({ ignition, systemd: { units: [hostile] } }, host),
    /\[Install\] refers to "\.\.\/\.\.\/x"/,
  );
  for (const field of ['Alias=hyperedge.service', 'RequiredBy=hyperedge.service', 'Alias=%p.service']) {
    const unit = { name: field.includes('%') ? 'hyperedge@x.service' : 'e.service', contents: `[Install]\n${field}\n` };
    const treeWith = (enabled: boolean) => treeOf({ ignition, systemd: { units: [{ ...unit, enabled }] } }, host);
    assert.throws(() => treeWith(true), /\[Install\] changes \/etc\/systemd\/system\/hyperedge\.service/, field);
    assert.deepEqual([...treeWith(false).keys()], [`/etc/systemd/system/${unit.name}`], field);
  }
});

test('adds kernel arguments to and removes them from boot loader configuration files', () => {
  assert.deepEqual(splitKernelArguments(['a b="c d"', ' e ']), ['a', 'b="c d"', 'e']);
  // Forms in which GRUB and extlinux of Debian 12 pass arguments.
  for (const running of ['ro "b=c d" e', 'ro b="c d" e'])
    assert.deepEqual(missingKernelArguments(running, ['b="c d"', 'e', 'b="c e"', 'c']), ['b="c e"', 'c']);
  const line = withKernelArguments('cmdline', 'console=tty1 quiet rw\n', [], ['quiet', 'isolcpus=1']);
  assert.equal(line, 'console=tty1 quiet rw quiet isolcpus=1\n');
  assert.equal(
    withKernelArguments('cmdline', line, ['quiet', 'isolcpus=1'], ['nosmt']),
    'console=tty1 quiet rw nosmt\n',
  );
  assert.equal(withKernelArguments('cmdline', line, ['quiet isolcpus=1'], []), 'console=tty1 quiet rw\n');
  const extlinux = 'default l0\nlabel l0\n\tkernel /vmlinuz\n\tappend root=/dev/sda1 ro\nlabel l1\n  APPEND single\n';
  assert.equal(
    withKernelArguments('extlinux', extlinux, [], ['x=1']),
    'default l0\nlabel l0\n\tkernel /vmlinuz\n\tappend root=/dev/sda1 ro x=1\nlabel l1\n  APPEND single x=1\n',
  );
  const grub = withKernelArguments('grub', 'old', [], ['a=$(reboot)', 'b="c d"']);
  assert.equal(grub, 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX a=\\$(reboot) b=\\"c d\\""\n');
});

test('edits boot loader files with comments, CRLF line ends, tabs and quoted arguments', () => {
  const cmdline = (text: string, wanted: readonly string[] = ['x=1']): string =>
    withKernelArguments('cmdline', text, [], wanted);
  assert.equal(cmdline('root=/dev/sda1 quiet'), 'root=/dev/sda1 quiet x=1\n');
  assert.equal(cmdline('root=/dev/sda1 quiet\r\n'), 'root=/dev/sda1 quiet x=1\n');
  assert.equal(cmdline('\n\n  root=/dev/sda1\n# old: root=/dev/sdb1\n'), 'root=/dev/sda1 x=1\n');
  assert.equal(cmdline('a="b c"  d', ['e="f  g"']), 'a="b c" d e="f  g"\n');
  assert.equal(withKernelArguments('cmdline', 'a e="f  g" b\n', ['e="f  g"'], []), 'a b\n');
  const extlinux = [
    'TIMEOUT 50\r',
    'LABEL l0\r',
    '\tLINUX /vmlinuz\r',
    '\tAPPEND root=/dev/sda1 ro\r',
    'LABEL memtest',
    '\tLINUX /memtest',
    'LABEL local',
    '\tAPPEND -',
    'LABEL empty',
    '\tappend',
  ];
  const changed = withKernelArguments('extlinux', extlinux.join('\n'), [], ['x=1']).split('\n');
  assert.equal(changed.length, extlinux.length);
  assert.equal(changed[3], '\tAPPEND root=/dev/sda1 ro x=1\r');
  assert.deepEqual(changed.slice(4, 8), extlinux.slice(4, 8));
  assert.equal(changed[9], '\tappend x=1');
  const back = withKernelArguments('extlinux', changed.join('\n'), ['x=1'], []).split('\n');
  assert.deepEqual(back, extlinux);
});

test('rejects kernel arguments that the boot loader would truncate or interpret', () => {
  const error = kernelArgumentsError;
  assert.equal(error('cmdline', 'a b="c d"', ['b="c d"']), undefined);
  assert.match(error('cmdline', '', ['a="b']) ?? '', /"a=\\"b" has a quote that does not end/);
  assert.match(error('cmdline', '', ['a\nb']) ?? '', /control character/);
  assert.match(error('cmdline', 'x'.repeat(3_000), ['a']) ?? '', /accepts 2047 characters; .* pass 3000/);
  assert.match(error('extlinux', `label a\n append ${'x'.repeat(2_100)}`, ['a']) ?? '', /pass 2100/);
  assert.match(error('extlinux', 'label a\n kernel /x', ['a']) ?? '', /no entry has a line "append"/);
  for (const argument of ['a=b;reboot', 'a=$(x)', 'a={}', "a='b'", 'a="$b"', 'a=b|c', 'a=\\'])
    assert.match(error('grub', '', [argument]) ?? '', /GRUB interprets/, argument);
  for (const argument of ['isolcpus=2,3', 'dyndbg="file a.c +p; file b.c +p"', 'console=ttyS0,115200n8', 'a=b:c@d%e'])
    assert.equal(error('grub', '', [argument]), undefined, argument);
  assert.equal(error('cmdline', '', ['a=b;c']), undefined);
});
