/** Manifests of the control plane on a host whose update was rolled back. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { rewriteGenerated } from '../../../src/host/config/generated-file.ts';
import { type Settings, settingsOf } from '../../../src/host/config/settings.ts';
import { withExecutable, writeStaticPods } from '../../../src/host/control/static-pods.ts';
import { operandFiles } from '../../../src/host/openshift/revision-inputs.ts';
import { selfCommand } from '../../../src/host/process/assets.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { RevisionInstaller } from '../../../src/openshift/revisions/installer.ts';
import type { OperandFiles } from '../../../src/openshift/revisions/port.ts';
import { createTurn } from '../../../src/openshift/revisions/turn.ts';

const PORTS = { etcd: [], api: [], controllers: [] } as unknown as Parameters<typeof writeStaticPods>[2];
const NEW = { version: '9.0.0', command: ['/usr/local/bin/hyperedge-9.0.0'] };

let root: string;
let settings: Settings;
let manifest: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-rolled-back-'));
  for (const directory of ['etc/origin/master', 'etc/etcd', 'etc/origin/node/pods'])
    await mkdir(join(root, directory), { recursive: true });
  await writeFile(join(root, 'etc/origin/master/master-config.yaml'), 'a: 1\n');
  await writeFile(join(root, 'etc/origin/master/master.env'), 'OPTIONS=--loglevel=2\n');
  settings = settingsOf({ root, bootstrapFile: 'bootstrap.yaml', host: { defaultRouteLink: undefined, byLink: [] } });
  manifest = join(settings.paths.staticPods, 'apiserver.yaml');
});
afterEach(() => rm(root, { recursive: true, force: true }));

const filesOf = (release?: typeof NEW): OperandFiles => {
  const files = operandFiles(settings, release).get('kube-apiserver');
  assert.ok(files);
  return files;
};

/** A start of the host process whose API server does not run. */
const start = async (files: OperandFiles): Promise<void> => {
  const installer = new RevisionInstaller({
    operand: 'kube-apiserver',
    files,
    process: { health: async () => ({ state: 'starting', message: '' }), restart: async () => {} },
    target: () => undefined,
    apiAwayMs: () => 0,
    turn: createTurn(() => {}),
    reported: () => {},
    clock: systemClock,
    log: silentLog,
  });
  await installer.prepare(false);
};

/** Writes the manifest of a newer release. */
const writeNewer = async (): Promise<void> => {
  const text = await readFile(manifest, 'utf8');
  const newer = rewriteGenerated(withExecutable(text, NEW.command), (body) =>
    body.replace('args:\n', 'args:\n        - --flag-of-the-newer-release\n'),
  );
  assert.match(newer, /--flag-of-the-newer-release/);
  await writeFile(manifest, newer);
};

test('starts the API server with the executable and flags of the previous release after a rollback', async () => {
  await writeStaticPods(settings, undefined, PORTS);
  await start(filesOf());
  await writeNewer();
  await start(filesOf(NEW));
  assert.match(await readFile(manifest, 'utf8'), /hyperedge-9\.0\.0/);
  // The former release starts twice: after the rollback and after a reboot.
  for (let boot = 0; boot < 2; boot++) {
    await writeStaticPods(settings, undefined, PORTS);
    await start(filesOf());
    const text = await readFile(manifest, 'utf8');
    assert.doesNotMatch(text, /9\.0\.0|--flag-of-the-newer-release/);
    assert.equal(withExecutable(text, selfCommand()), text);
  }
});

test('an update keeps edits of a manifest, and sets the executable of the new release', async () => {
  await writeStaticPods(settings, undefined, PORTS);
  const text = await readFile(manifest, 'utf8');
  const edited = withExecutable(text.replace(/cpu: \d+m/, 'cpu: 75m'), ['/usr/local/bin/hyperedge-0.0.1']);
  await writeFile(manifest, edited);
  assert.deepEqual(await writeStaticPods(settings, undefined, PORTS), [manifest]);
  const kept = await readFile(manifest, 'utf8');
  assert.match(kept, /cpu: 75m/);
  assert.doesNotMatch(kept, /hyperedge-0\.0\.1/);
  assert.equal(withExecutable(kept, selfCommand()), kept);
});
