import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import {
  type Fragment,
  isUnchanged,
  type MachineConfigSpec,
  machineConfigDifference,
  renderMachineConfigs,
} from '../../../../../src/openshift/machine-config/core/ignition/index.ts';
import { generator } from '../../../../support/random.ts';

const inflate = (bytes: Uint8Array, maxOutputLength: number): Uint8Array => gunzipSync(bytes, { maxOutputLength });
const options = { inflate };
const ignition = { version: '3.2.0' };

function rendered(fragments: readonly Fragment[]) {
  const rendering = renderMachineConfigs(fragments, options);
  assert.ok('spec' in rendering, JSON.stringify(rendering));
  return rendering.spec;
}

test('merges files and units of MachineConfigs by field in the order of names, and appends other lists', () => {
  const spec = rendered([
    {
      name: '99-b',
      role: 'worker',
      spec: {
        config: {
          ignition,
          storage: {
            files: [
              { path: '/c', contents: { source: 'data:,c' } },
              { path: '/a', mode: 0o600 },
            ],
          },
          systemd: {
            units: [{ name: 'u.service', enabled: false, dropins: [{ name: '2.conf', contents: '[Unit]' }] }],
          },
          passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['one', 'two'] }] },
        },
        kernelArguments: ['b'],
        fips: true,
      },
    },
    {
      name: '00-a',
      role: 'worker',
      spec: {
        config: {
          ignition,
          storage: { files: [{ path: '/a', contents: { source: 'data:,a' }, mode: 0o644 }] },
          systemd: {
            units: [
              {
                name: 'u.service',
                contents: '[Unit]',
                enabled: true,
                dropins: [{ name: '1.conf', contents: '[Unit]' }],
              },
            ],
          },
          passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['zero', 'one'] }] },
        },
        kernelArguments: ['a'],
      },
    },
    { name: '50-empty', role: 'worker', spec: {} },
  ]);
  assert.deepEqual(spec.config, {
    ignition: { version: '3.2.0' },
    passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['zero', 'one', 'two'] }] },
    storage: {
      files: [
        { contents: { source: 'data:,a' }, mode: 0o600, overwrite: true, path: '/a' },
        { contents: { source: 'data:,c' }, overwrite: true, path: '/c' },
      ],
    },
    systemd: {
      units: [
        {
          contents: '[Unit]',
          dropins: [
            { contents: '[Unit]', name: '1.conf' },
            { contents: '[Unit]', name: '2.conf' },
          ],
          enabled: false,
          name: 'u.service',
        },
      ],
    },
  });
  assert.deepEqual(spec.kernelArguments, ['a', 'b']);
  assert.deepEqual([spec.kernelType, spec.fips, spec.osImageURL], ['default', true, '']);
});

test('MachineConfigs of a custom pool override those of worker, regardless of names', () => {
  const of = (name: string, role: string, text: string): Fragment => ({
    name,
    role,
    spec: { config: { ignition, storage: { files: [{ path: '/a', contents: { source: `data:,${text}` } }] } } },
  });
  const spec = rendered([of('99-worker', 'worker', 'worker'), of('01-infra', 'infra', 'infra')]);
  assert.equal(spec.config.storage?.files?.[0]?.contents?.source, 'data:,infra');
});

test('names the MachineConfig that is invalid or has a disks section, which hosts cannot apply', () => {
  const bad = renderMachineConfigs([{ name: '10-bad', role: 'worker', spec: { config: { storage: {} } } }], options);
  assert.match('error' in bad ? bad.error : '', /^10-bad: spec\.config\.ignition\.version: .*invalid version/);
  const kernel = renderMachineConfigs([{ name: '10-bad', role: 'worker', spec: { kernelType: 'fast' } }], options);
  assert.deepEqual(kernel, { error: '10-bad: kernelType=fast is invalid' });
  const config = { ignition, storage: { disks: [{ device: '/one' }] } };
  const disks = renderMachineConfigs([{ name: '10-disk', role: 'worker', spec: { config } }], options);
  assert.ok('spec' in disks);
  assert.match(disks.refused[0] ?? '', /^10-disk: spec\.config\.storage\.disks: Forbidden/);
  const difference = machineConfigDifference({}, disks.spec, options);
  assert.match(
    difference.unreconcilable ?? '',
    /^ignition disks section contains changes: spec\.config\.storage\.disks/,
  );
});

test("reports changes that a running host cannot apply as Unreconcilable, with upstream's reasons", () => {
  const reason = (to: MachineConfigSpec): string | undefined => machineConfigDifference({}, to, options).unreconcilable;
  assert.equal(reason({ fips: true }), 'detected change to FIPS flag; refusing to modify FIPS on a running cluster');
  assert.match(reason({ kernelType: 'realtime' }) ?? '', /^spec\.kernelType: realtime needs another kernel/);
  assert.match(reason({ extensions: ['usbguard'] }) ?? '', /^spec\.extensions/);
  assert.match(reason({ osImageURL: 'lab.local/os' }) ?? '', /^spec\.osImageURL/);
  const groups = { ignition, passwd: { groups: [{ name: 'a' }] } };
  assert.match(reason({ config: groups }) ?? '', /^ignition Passwd Groups section contains changes/);
  assert.equal(reason({ kernelArguments: ['quiet'], kernelType: 'default', extensions: [] }), undefined);
  assert.match(reason({ config: { ignition: { version: '9' } } }) ?? '', /^invalid ignition V3 config found/);
});

/** Oracle with maps of files and units: fields of later fragments replace those of earlier ones. */
function oracle(fragments: readonly Fragment[]): { readonly files: object; readonly units: object } {
  const files: Record<string, object> = {};
  const units: Record<string, object> = {};
  for (const { spec } of fragments.toSorted((left, right) => (left.name < right.name ? -1 : 1))) {
    const config = spec.config as Drawn;
    for (const file of config.storage.files) files[file.path] = { ...files[file.path], ...file };
    for (const unit of config.systemd.units) units[unit.name] = { ...units[unit.name], ...unit };
  }
  return { files, units };
}
interface Drawn {
  readonly storage: { readonly files: readonly { readonly path: string }[] };
  readonly systemd: { readonly units: readonly { readonly name: string }[] };
}

test('rendering and comparing configs give the same result as a simple map in 2,000 random pools', () => {
  const random = generator(16);
  const below = (count: number): number => Math.floor(random() * count);
  const draw = (): Fragment => {
    const paths = [0, 1, 2, 3, 4].filter(() => random() < 0.5);
    const names = [0, 1, 2].filter(() => random() < 0.5);
    return {
      name: `${below(90) + 10}-${below(1_000_000)}`,
      role: 'worker',
      spec: {
        config: {
          ignition,
          storage: {
            files: paths.map((path) => ({
              path: `/f${path}`,
              ...(random() < 0.7 ? { contents: { source: `data:,${below(3)}` } } : {}),
              ...(random() < 0.4 ? { mode: below(0o777) } : {}),
            })),
          },
          systemd: {
            units: names.map((name) => ({
              name: `u${name}.service`,
              ...(random() < 0.5 ? { enabled: random() < 0.5 } : {}),
              ...(random() < 0.5 ? { contents: `[Unit]\nDescription=${below(3)}` } : {}),
            })),
          },
        },
        kernelArguments: random() < 0.3 ? [`k${below(5)}`] : [],
      },
    };
  };
  for (let round = 0; round < 2_000; round += 1) {
    const pool = Array.from({ length: below(5) }, draw);
    const next = pool.map((fragment) => (random() < 0.6 ? fragment : draw()));
    const [left, right] = [rendered(pool), rendered(next)];
    const expected = [oracle(pool), oracle(next)] as const;
    const asMaps = (spec: typeof left) => ({
      files: Object.fromEntries((spec.config.storage?.files ?? []).map(({ overwrite, ...file }) => [file.path, file])),
      units: Object.fromEntries((spec.config.systemd?.units ?? []).map((unit) => [unit.name, unit])),
    });
    assert.deepEqual(asMaps(left), expected[0]);
    const changed = (part: 'files' | 'units'): string[] => {
      const [before, after] = [new Map(Object.entries(expected[0][part])), new Map(Object.entries(expected[1][part]))];
      const all = [...new Set([...before.keys(), ...after.keys()])].sort();
      const text = (value: unknown): string => JSON.stringify(Object.entries(value ?? {}).sort());
      return all.filter((key) => text(before.get(key)) !== text(after.get(key)));
    };
    const { changes, unreconcilable } = machineConfigDifference(left, right, options);
    assert.equal(unreconcilable, undefined);
    assert.deepEqual([changes.files, changes.units], [changed('files'), changed('units')]);
    assert.ok(isUnchanged(machineConfigDifference(right, right, options).changes));
    const order = pool.toSorted((one, other) => (one.name < other.name ? -1 : 1));
    assert.deepEqual(
      left.kernelArguments,
      order.flatMap(({ spec }) => spec.kernelArguments ?? []),
    );
    assert.deepEqual(rendered(pool.toReversed()), left);
  }
});
