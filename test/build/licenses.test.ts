import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bundleConsole } from '../../build/console.ts';
import { thirdPartyNotices } from '../../build/licenses.ts';
import { bundle } from '../../esbuild.config.mjs';

const root = join(import.meta.dirname, '../..');

test('includes the licenses of all bundled packages, Node.js, SQLite and the native add-on', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-licenses-'));
  try {
    const { modules } = await bundle(directory);
    const web = await bundleConsole(join(directory, 'console'));
    const text = await thirdPartyNotices(root, [...modules, ...web.modules]);
    const [list = ''] = text.split('='.repeat(80));
    const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    for (const name of Object.keys(dependencies)) {
      const { version } = JSON.parse(await readFile(join(root, 'node_modules', name, 'package.json'), 'utf8'));
      assert.ok(list.includes(`  ${name} ${version} (`), name);
      const directory = join(root, 'node_modules', name);
      const file = (await readdir(directory)).find((each) => /^LICENSE(?:\.md)?$/.test(each)) ?? '';
      assert.ok(text.includes((await readFile(join(directory, file), 'utf8')).trim()), name);
    }
    assert.ok(list.includes(`  Node.js ${process.version.slice(1)} (`));
    assert.match(text, /Copyright Node\.js contributors/);
    assert.match(text, /- OpenSSL/i);
    assert.match(list, / {2}SQLite 3\.\d+\.\d+ \(blessing\)/);
    assert.match(text, /May you share freely, never taking more than you give\./);
    // A nested dependency of a dependency.
    assert.match(list, / {2}streamx \d/);
    assert.match(list, / {2}b4a \d/);
    assert.doesNotMatch(list, /biome|typescript|esbuild/);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('fails the build for a package without a license file', async () => {
  const other = await mkdtemp(join(tmpdir(), 'he-licenses-'));
  try {
    for (const name of ['better-sqlite3', 'node-addon-api', '@kubernetes/client-node', 'bare']) {
      const directory = join(other, 'node_modules', name);
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, 'package.json'), JSON.stringify({ name, version: '1.0.0', license: 'MIT' }));
      if (name !== 'bare') await writeFile(join(directory, 'LICENSE'), 'text');
    }
    await assert.rejects(
      thirdPartyNotices(other, ['node_modules/bare/index.js']),
      /^Error: bare 1\.0\.0: no licence file/,
    );
  } finally {
    await rm(other, { recursive: true });
  }
});
