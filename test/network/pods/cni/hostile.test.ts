/** CNI plug-ins with invalid results, plug-ins that do not exit, and records that cannot be read. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { silentLog as log } from '../../../../src/base/log.ts';
import { createCniNetwork } from '../../../../src/network/pods/cni/network.ts';

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cni-'));
  await mkdir(join(directory, 'bin'));
  // Replaces nsenter, which brings up loopback in a namespace that does not exist here.
  await writeFile(join(directory, 'true'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
});
after(() => rm(directory, { recursive: true, force: true }));

let attached = 0;

async function attach(script: string): Promise<{ ips: readonly string[] }> {
  const file = join(directory, 'bin/plug');
  await writeFile(file, `#!/bin/sh\ncat > /dev/null\n${script}\n`);
  await chmod(file, 0o755);
  const network = createCniNetwork({
    config: { name: 'n', cniVersion: '1.0.0', disableCheck: false, plugins: [{ type: 'plug' }] } as never,
    pluginDirectories: [join(directory, 'bin')],
    stateDirectory: join(directory, 'state'),
    nsenterPath: join(directory, 'true'),
    log,
  });
  attached += 1;
  const endpoint = { sandboxId: `s${attached}`, namespace: 'a', name: 'b', uid: 'u', portMappings: [] };
  return network.attach('/none', endpoint as never);
}

const result = (value: unknown): string => `cat <<'END'\n${JSON.stringify(value)}\nEND`;

test("rejects invalid results of CNI plug-ins and addresses that a pod cannot have, with the plug-in's name", async () => {
  const cases: readonly (readonly [script: string, message: RegExp])[] = [
    ['echo nonsense', /not JSON/],
    [result([]), /not JSON/],
    [result({ ips: 'x' }), /ips is not a list/],
    [result({ ips: null }), /gave the pod no address/],
    [result({ ips: [null] }), /ips is not a list/],
    [result({ ips: Array.from({ length: 65 }, () => ({ address: '10.0.0.1/24' })) }), /at most 64/],
    [result({ ips: [{ address: '10.0.0.1/24', interface: 0 }], interfaces: { 0: {} } }), /interfaces is not a list/],
    [result({ ips: [{ address: '10.0.0.1/24', interface: '__proto__' }] }), /no address/],
    [result({ ips: [{}] }), /undefined is not a valid pod address/],
    ...[
      'x',
      '127.0.0.1/8',
      '0.0.0.0/0',
      '169.254.169.254/32',
      '::1/128',
      '::ffff:127.0.0.1/128',
      'fe80::1/64',
      '224.0.0.1/4',
    ].map((address): readonly [string, RegExp] => [result({ ips: [{ address }] }), /is not a valid pod address/]),
    [
      `printf '{"msg":"'; head -c 900000 /dev/zero | tr '\\0' x; printf '"}'; exit 1`,
      /: CNI plug-in plug ADD: x{4096}$/,
    ],
    ['head -c 3000000 /dev/zero', /not JSON/],
  ];
  for (const [script, message] of cases) await assert.rejects(attach(script), message, script.slice(0, 200));
  assert.deepEqual(await attach(result({ ips: [{ address: '10.0.0.9/24' }, { address: 'fd00::9/64' }] })), {
    ips: ['10.0.0.9', 'fd00::9'],
  });
});

test('does not wait for a background process of a CNI plug-in that holds its output open', async () => {
  const began = performance.now();
  const { ips } = await attach(`${result({ ips: [{ address: '10.0.0.9/24' }] })}\nsleep 8 &`);
  assert.deepEqual(ips, ['10.0.0.9']);
  assert.ok(performance.now() - began < 5_000);
});

test('keeps a network record that cannot be read, and releases its sandbox with the plug-ins when it ends', async () => {
  const stateDirectory = join(directory, 'unreadable');
  const calls = join(directory, 'calls');
  await mkdir(join(stateDirectory, 'unreadable.cni'), { recursive: true });
  await writeFile(join(stateDirectory, 'damaged.cni'), '{"sandboxId":"dam');
  await writeFile(join(stateDirectory, 'torn.cni'), '');
  await writeFile(
    join(directory, 'bin/recorder'),
    `#!/bin/sh\ncat > /dev/null\necho "$CNI_COMMAND $CNI_CONTAINERID" >> ${calls}\n`,
    { mode: 0o755 },
  );
  const errors: unknown[] = [];
  const network = createCniNetwork({
    config: { name: 'n', cniVersion: '1.0.0', disableCheck: false, plugins: [{ type: 'recorder' }] } as never,
    pluginDirectories: [join(directory, 'bin')],
    stateDirectory,
    log: { ...log, error: (_, fields) => void errors.push(fields?.['file']) },
  });
  await network.retain(new Set(['damaged', 'unreadable']));
  assert.equal(await readFile(calls, 'utf8'), 'DEL torn\n');
  assert.deepEqual((await readdir(stateDirectory)).sort(), ['damaged.cni', 'unreadable.cni']);
  assert.deepEqual(
    errors.sort(),
    ['damaged', 'torn', 'unreadable'].map((name) => join(stateDirectory, `${name}.cni`)),
  );
  await assert.rejects(network.check('damaged'), /sandbox damaged: its network record could not be read/);
  await network.detach('damaged');
  assert.equal(await readFile(calls, 'utf8'), 'DEL torn\nDEL damaged\n');
  assert.deepEqual(await readdir(stateDirectory), ['unreadable.cni']);
});
