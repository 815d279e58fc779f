/**
 * Writer of Debian binary packages without Debian's tools: an ar archive with `debian-binary`, `control.tar.gz` and
 * `data.tar.gz`. The output depends on the arguments only. Source: deb(5), ar(5).
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { type Entry, withParents, writeTarGz } from './tar.ts';

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: 'amd64' | 'arm64';
  readonly maintainer: string;
  readonly depends: readonly string[];
  readonly section: string;
  readonly homepage: string;
  readonly summary: string;
  /** Lines of the long description. */
  readonly description: readonly string[];
  readonly entries: readonly Entry[];
  /** Absolute paths of configuration files that dpkg keeps when the administrator has changed them. */
  readonly conffiles: readonly string[];
  /** Maintainer scripts by name, such as `postinst`. */
  readonly scripts: Readonly<Record<string, string>>;
}

const HEADER_BYTES = 60;
const KIB = 1024;

/** Writes the package to a temporary file and renames the file. `epoch`: time of all members, in seconds since 1970. */
export async function writeDeb(path: string, given: DebianPackage, epoch: number): Promise<void> {
  const entries = withParents(given.entries);
  const sums: string[] = [];
  let kib = 0;
  for (const entry of entries) {
    if (entry.type !== 'file' && entry.type !== 'copy') {
      kib += 1;
      continue;
    }
    kib += Math.ceil((entry.type === 'file' ? entry.content.length : entry.size) / KIB);
    if (!given.conffiles.includes(entry.path)) sums.push(`${await md5(entry)}  ${entry.path.slice(1)}\n`);
  }
  const control: Entry[] = [
    { path: '/control', type: 'file', content: Buffer.from(controlText(given, kib)) },
    { path: '/md5sums', type: 'file', content: Buffer.from(sums.join('')) },
    ...Object.entries(given.scripts).map(
      ([name, text]): Entry => ({ path: `/${name}`, type: 'file', mode: 0o755, content: Buffer.from(text) }),
    ),
  ];
  if (given.conffiles.length > 0) {
    const content = Buffer.from(given.conffiles.map((each) => `${each}\n`).join(''));
    control.push({ path: '/conffiles', type: 'file', content });
  }
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', 0o644);
  try {
    await file.write('!<arch>\n');
    await member(file, 'debian-binary', epoch, async () => void (await file.write('2.0\n')));
    await member(file, 'control.tar.gz', epoch, () => writeTarGz(file, withParents(control), epoch));
    await member(file, 'data.tar.gz', epoch, () => writeTarGz(file, entries, epoch));
    await file.close();
    await rename(temporary, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Writes a member of the archive. The header is written again after the content, when the size is known. */
async function member(file: FileHandle, name: string, epoch: number, write: () => Promise<void>): Promise<void> {
  const { size: start } = await file.stat();
  const header = (size: number): string =>
    `${name.padEnd(16)}${String(epoch).padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}${String(size).padEnd(10)}\`\n`;
  await file.write(header(0));
  await write();
  const { size: end } = await file.stat();
  const size = end - start - HEADER_BYTES;
  await file.write(header(size), start);
  // Members begin at even offsets. Writing the header at a given position has not moved the position of the file.
  if (size % 2 === 1) await file.write('\n');
}

function controlText(given: DebianPackage, kib: number): string {
  const { name, version, architecture, maintainer, depends, section, homepage, summary, description } = given;
  return (
    `Package: ${name}\nVersion: ${version}\nArchitecture: ${architecture}\nMaintainer: ${maintainer}\n` +
    `Installed-Size: ${kib}\n${depends.length === 0 ? '' : `Depends: ${depends.join(', ')}\n`}` +
    `Section: ${section}\nPriority: optional\nHomepage: ${homepage}\nDescription: ${summary}\n` +
    description.map((line) => (line === '' ? ' .\n' : ` ${line}\n`)).join('')
  );
}

async function md5(entry: Entry & { readonly type: 'file' | 'copy' }): Promise<string> {
  const hash = createHash('md5');
  if (entry.type === 'file') return hash.update(entry.content).digest('hex');
  for await (const chunk of createReadStream(entry.source)) hash.update(chunk);
  return hash.digest('hex');
}

/**
 * Version in Debian's notation, in which a pre-release sorts before its release. Further hyphens become periods, because
 * a hyphen begins a Debian revision.
 */
export const debianVersion = (version: string): string => version.replace(/^([^+-]*)-/, '$1~').replaceAll('-', '.');
