/** Third-party notices for the executable, from the license files of its packages. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface Notice {
  readonly name: string;
  readonly version: string;
  /** License as an SPDX expression. */
  readonly license: string;
  readonly text: string;
}

/**
 * Packages that are shipped but not in a bundle: the native add-on with its headers, and the package from which schemas
 * are generated.
 */
const UNBUNDLED = ['better-sqlite3', 'node-addon-api', '@kubernetes/client-node'];
const LICENSE_FILE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i;
const RULE = '='.repeat(80);

/**
 * Text of `hyperedge version --licenses`: Node with its bundled libraries, SQLite, every package of `modules` (the
 * bundled files, relative to `root`), and the programs in `bundled`. Throws an Error that names a package without a
 * license file.
 */
export async function thirdPartyNotices(
  root: string,
  modules: Iterable<string>,
  bundled: readonly Notice[] = [],
): Promise<string> {
  const directories = new Set(UNBUNDLED.map((name) => join('node_modules', name)));
  for (const module of modules) {
    const directory = packageOf(module);
    if (directory !== undefined) directories.add(directory);
  }
  const found = await Promise.all([...directories].map((directory) => packageNotice(join(root, directory))));
  // npm may install the same version of a package several times.
  const packages = [...new Map(found.map((each) => [`${each.name} ${each.version}`, each])).values()];
  packages.sort((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
  const notices = [await nodeNotice(root), await sqliteNotice(root), ...packages, ...bundled];
  const list = notices.map(({ name, version, license }) => `  ${`${name} ${version}`.trim()} (${license})\n`).join('');
  const texts = notices.map(
    ({ name, version, text }) => `${RULE}\n${`${name} ${version}`.trim()}\n${RULE}\n\n${text.trim()}\n`,
  );
  return `Third-party software in this executable:\n\n${list}\n${texts.join('\n')}`;
}

/**
 * Directory of the package that contains a module: `node_modules/a/node_modules/@b/c` for
 * `node_modules/a/node_modules/@b/c/lib/d.js`. Undefined for files of this project.
 */
function packageOf(module: string): string | undefined {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(module)?.[0];
}

async function packageNotice(directory: string): Promise<Notice> {
  const { name, version, license } = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'));
  const files = (await readdir(directory)).filter((file) => LICENSE_FILE.test(file)).sort();
  if (files.length === 0) throw new Error(`${name} ${version}: no licence file in ${directory}; add its text`);
  const texts = await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')));
  return { name, version, license: license.replace(/^\((.*)\)$/, '$1'), text: texts.join('\n') };
}

/** Notice of Node. Its LICENSE file includes the licenses of V8, OpenSSL, ICU and its other libraries. */
async function nodeNotice(root: string): Promise<Notice> {
  const name = `node-linux-${process.arch}`;
  const places = [join(root, 'node_modules/node/node_modules', name), join(root, 'node_modules', name)];
  const directory = places.find((place) => existsSync(join(place, 'LICENSE')));
  if (directory === undefined) throw new Error(`${name}: no LICENSE in ${places.join(' or ')}; run npm ci`);
  const notice = await packageNotice(directory);
  return { ...notice, name: 'Node.js', license: 'MIT and others' };
}

async function sqliteNotice(root: string): Promise<Notice> {
  const header = join(root, 'node_modules/better-sqlite3/deps/sqlite3/sqlite3.h');
  const source = await readFile(header, 'utf8');
  const version = /^#define SQLITE_VERSION\s+"([^"]+)"/m.exec(source)?.[1];
  const blessing = /\/\*\n([\s\S]*?)\*{20,}/.exec(source)?.[1];
  if (version === undefined || blessing === undefined) throw new Error(`${dirname(header)}: sqlite3.h has no notice`);
  return { name: 'SQLite', version, license: 'blessing', text: blessing.replaceAll(/^\*\* ?/gm, '') };
}
