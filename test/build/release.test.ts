/** Files of a release from a small executable: reproducible, signed, readable by Debian's tools. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash, generateKeyPairSync, verify } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { assembleRelease } from '../../build/release/assemble.ts';
import { debianVersion, writeDeb } from '../../build/release/deb.ts';
import { releaseNotes } from '../../build/release/notes.ts';
import { debianLicenses, sbomText } from '../../build/release/sbom.ts';
import { type Entry, withParents } from '../../build/release/tar.ts';
import { completionScript } from '../../src/cli/completion/scripts.ts';

const run = promisify(execFile);
const EPOCH = 1_700_000_000;
const NAME = 'hyperedge_1.2.3_amd64.deb';
const noDpkg = existsSync('/usr/bin/dpkg-deb') ? false : 'dpkg-deb is not installed: apt-get install dpkg';
const noLintian = existsSync('/usr/bin/lintian') ? false : 'lintian is not installed: apt-get install lintian';
const LOCK = {
  packages: {
    '': { name: 'hyperedge', version: '1.2.3' },
    'node_modules/@a/b': { version: '1.0.0', license: '(MIT OR GPL-2.0)', integrity: 'sha512-AAEC' },
    'node_modules/builder': { version: '2.0.0', license: 'MIT', dev: true },
  },
};
const BUNDLED = new Map([['amd64', [{ name: 'runc', version: '1:1.1.5+ds1-1', text: 'License: Apache-2.0\n' }]]]);

describe('release', () => {
  let work = '';
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');

  before(async () => {
    work = await mkdtemp(join(tmpdir(), 'he-release-'));
    for (const checkout of ['one', 'another-checkout']) {
      const changelog = '# Changelog\n\n## 1.2.3 (today)\n\n- A change.\n\n## 1.2.2\n\n- Old.\n';
      await mkdir(join(work, checkout));
      await writeFile(join(work, checkout, 'CHANGELOG.md'), changelog);
      await assemble(checkout);
    }
  });
  after(() => rm(work, { recursive: true, force: true }));

  /** A checkout with its own file times; `release` in it is the result. */
  async function assemble(name: string): Promise<void> {
    const checkout = join(work, name);
    const executable = join(checkout, 'executable');
    await writeFile(executable, '#!/bin/sh\necho hello\n', { mode: 0o755 });
    await writeFile(join(checkout, 'lock.json'), JSON.stringify(LOCK));
    await utimes(executable, checkout.length, checkout.length);
    await assembleRelease({
      directory: join(checkout, 'release'),
      version: '1.2.3',
      epoch: EPOCH,
      key: privateKey,
      executables: new Map([['x64', executable] as const]),
      bundled: BUNDLED,
      lock: join(checkout, 'lock.json'),
      changelog: join(checkout, 'CHANGELOG.md'),
      say: () => undefined,
    });
  }
  const at = (name: string): string => join(work, 'one/release', name);

  test('release is byte-identical from two checkouts', async () => {
    const names = (await readdir(at(''))).sort();
    assert.deepEqual(names, [
      'RELEASE-NOTES.md',
      'SHA256SUMS',
      'SHA256SUMS.sig',
      'hyperedge-1.2.3.cdx.json',
      'hyperedge-linux-x64',
      NAME,
    ]);
    for (const name of names)
      assert.deepEqual(await readFile(join(work, 'another-checkout/release', name)), await readFile(at(name)), name);
  });

  test('lists the digest of every file in a signed file', async () => {
    const sums = await readFile(at('SHA256SUMS'), 'utf8');
    for (const line of sums.trimEnd().split('\n')) {
      const [digest = '', name = ''] = line.split('  ');
      assert.equal(
        createHash('sha256')
          .update(await readFile(at(name)))
          .digest('hex'),
        digest,
        name,
      );
    }
    assert.equal(sums.trimEnd().split('\n').length, 4);
    const signature = Buffer.from(await readFile(at('SHA256SUMS.sig'), 'utf8'), 'base64');
    assert.ok(verify(undefined, Buffer.from(sums), publicKey, signature));
    assert.ok(!verify(undefined, Buffer.from(`${sums} `), publicKey, signature));
  });

  test('release notes are the section of the version; a version without a section is refused', async () => {
    assert.equal(await readFile(at('RELEASE-NOTES.md'), 'utf8'), '# hyperedge 1.2.3\n\n- A change.\n');
    assert.throws(() => releaseNotes('## 1.2.3\n\n- x\n', '1.2.4'), /has no section "## 1\.2\.4"; add it/);
    assert.throws(() => releaseNotes('## 1.2.3\n\n## 1.2.2\n', '1.2.3'), /"## 1\.2\.3" is empty/);
  });

  test('lists npm packages and bundled programs with version and licence in the SBOM, without development packages', async () => {
    const sbom = JSON.parse(await readFile(at('hyperedge-1.2.3.cdx.json'), 'utf8'));
    assert.equal(sbom.bomFormat, 'CycloneDX');
    assert.equal(sbom.metadata.timestamp, '2023-11-14T22:13:20Z');
    assert.match(sbom.serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    const shown = sbom.components.map((each: { purl: string; licenses: unknown; hashes?: unknown }) => ({
      purl: each.purl,
      licenses: each.licenses,
      hashes: each.hashes,
    }));
    assert.deepEqual(shown, [
      {
        purl: 'pkg:deb/debian/runc@1%3A1.1.5%2Bds1-1?arch=amd64&distro=debian-12',
        licenses: [{ license: { name: 'Apache-2.0' } }],
        hashes: undefined,
      },
      {
        purl: 'pkg:npm/%40a/b@1.0.0',
        licenses: [{ expression: 'MIT OR GPL-2.0-only' }],
        hashes: [{ alg: 'SHA-512', content: '000102' }],
      },
    ]);
    const other = sbomText({ version: '1.2.3', epoch: EPOCH + 1, lock: LOCK, bundled: BUNDLED });
    assert.notEqual(JSON.parse(other).serialNumber, sbom.serialNumber);
  });

  test('takes licences from the fields of a Debian copyright file, or from the common licences that the file names', () => {
    assert.deepEqual(debianLicenses('License: GPL-2+\n\nLicense: BSD-3-clause\nLicense: GPL-2+\n'), [
      'BSD-3-clause',
      'GPL-2+',
    ]);
    assert.deepEqual(debianLicenses('see /usr/share/common-licenses/LGPL-2.1.'), ['LGPL-2.1']);
  });

  test('builds a Debian package that dpkg-deb can read', { skip: noDpkg }, async () => {
    const fields = (await run('dpkg-deb', ['--field', at(NAME), 'Package', 'Version', 'Architecture'])).stdout;
    assert.equal(fields, 'Package: hyperedge\nVersion: 1.2.3\nArchitecture: amd64\n');
    const tree = join(work, 'tree');
    await run('dpkg-deb', ['--raw-extract', at(NAME), tree]);
    assert.equal((await run(join(tree, 'usr/bin/hyperedge'), [])).stdout, 'hello\n');
    assert.equal(
      await readFile(join(tree, 'DEBIAN/conffiles'), 'utf8'),
      '/etc/origin/bootstrap.yaml.d/00-package.yaml\n',
    );
    const contents = (await run('dpkg-deb', ['--contents', at(NAME)])).stdout;
    for (const line of contents.trimEnd().split('\n')) assert.match(line, /^\S+ root\/root .* 2023-11-14 22:13 \.\//);
    for (const path of [
      'lib/hyperedge/bin/kubelet',
      'share/man/man1/hyperedge.1.gz',
      'lib/systemd/system/hyperedge.slice',
    ])
      assert.ok(existsSync(join(tree, 'usr', path)), path);
    await run('md5sum', ['--quiet', '--check', 'DEBIAN/md5sums'], { cwd: tree });
    for (const script of ['postinst', 'prerm', 'postrm']) await run('sh', ['-n', join(tree, 'DEBIAN', script)]);
  });

  test('packages man pages and the completion of three shells', { skip: noDpkg }, async () => {
    const share = join(work, 'tree/usr/share');
    for (const [path, shell] of [
      ['bash-completion/completions/hyperedge', 'bash'],
      ['zsh/vendor-completions/_hyperedge', 'zsh'],
      ['fish/vendor_completions.d/hyperedge.fish', 'fish'],
    ] as const)
      assert.equal(await readFile(join(share, path), 'utf8'), completionScript(shell));
    const page = await run('zcat', [join(share, 'man/man1/hyperedge-token-create.1.gz')]);
    assert.match(page.stdout, /^\.TH HYPEREDGE-TOKEN-CREATE 1 "2023-11-14" "hyperedge 1\.2\.3"/);
  });

  test('lintian reports no error for the package', { skip: noDpkg || noLintian }, async () => {
    const ran = await run('lintian', ['--fail-on', 'none', '--allow-root', at(NAME)]).catch((error) => error);
    // The executable of this test is a script.
    const errors = ran.stdout.split('\n').filter((line: string) => line.startsWith('E: '));
    assert.deepEqual(errors, []);
  });

  test('keeps an earlier release when a later build fails', async () => {
    await writeFile(join(work, 'another-checkout/CHANGELOG.md'), '# Changelog\n');
    await assert.rejects(assemble('another-checkout'), /has no section "## 1\.2\.3"/);
    assert.deepEqual((await readdir(join(work, 'another-checkout'))).sort(), [
      ...['CHANGELOG.md', 'executable', 'lock.json', 'release'],
    ]);
  });

  test('refuses a duplicate path in a package, and sorts parent directories first', async () => {
    const file = (path: string): Entry => ({ path, type: 'file', content: Buffer.from('') });
    assert.throws(() => withParents([file('/a'), file('/a')]), /^Error: \/a: is given twice$/);
    assert.deepEqual(
      withParents([file('/b/c/d'), file('/a')]).map(({ path }) => path),
      ['/a', '/b', '/b/c', '/b/c/d'],
    );
  });

  test('pads members with an odd length in a Debian package', { skip: noDpkg }, async () => {
    for (const length of [1, 2, 3]) {
      const path = join(work, `odd-${length}.deb`);
      const content = createHash('sha512')
        .update(String(length))
        .digest()
        .subarray(0, length * 7);
      await writeDeb(
        path,
        {
          name: 'odd',
          version: '1',
          architecture: 'amd64',
          maintainer: 'M <m@example.com>',
          depends: [],
          section: 'admin',
          homepage: 'https://example.com',
          summary: 'odd',
          description: ['odd'],
          entries: [{ path: '/odd', type: 'file', content }],
          conffiles: [],
          scripts: {},
        },
        EPOCH,
      );
      await run('dpkg-deb', ['--contents', path]);
    }
  });

  test('sorts Debian versions as semantic versions, and without a Debian revision', { skip: noDpkg }, async () => {
    assert.equal(debianVersion('1.2.3-rc.1'), '1.2.3~rc.1');
    assert.equal(debianVersion('1.2.3+build-7'), '1.2.3+build.7');
    const ascending = ['1.2.2', '1.2.3-rc.1', '1.2.3-rc-a.1', '1.2.3-rc-a-b.1', '1.2.3'].map(debianVersion);
    for (const [index, version] of ascending.entries()) {
      assert.doesNotMatch(version, /-/);
      for (const later of ascending.slice(index + 1)) await run('dpkg', ['--compare-versions', version, 'lt', later]);
    }
  });
});
