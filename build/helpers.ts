/**
 * Programs in the executable for hosts without them (runc, conmon, nft, ip, bridge, socat, setfattr), with their loader
 * and libraries. They come from Debian packages through the configured apt sources and are cached in dist/cache; delete
 * the cache to get newer ones.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import { HELPER_PREFIX, type HelperManifest } from '../src/host/process/helper-manifest.ts';
import type { Notice } from './licenses.ts';

type Architecture = 'x64' | 'arm64';

const run = promisify(execFile);
const compress = promisify(zstdCompress);

/** Programs and the Debian packages that contain them. */
const PROGRAMS = {
  runc: 'runc',
  conmon: 'conmon',
  nft: 'nftables',
  ip: 'iproute2',
  bridge: 'iproute2',
  socat: 'socat',
  setfattr: 'attr',
} as const;
/** Format of the bundle. Increase the number if the contents change, to invalidate the cache. */
const FORMAT = 1;
const DEBIAN: Readonly<Record<Architecture, { readonly name: string; readonly triplet: string }>> = {
  x64: { name: 'amd64', triplet: 'x86_64-linux-gnu' },
  arm64: { name: 'arm64', triplet: 'aarch64-linux-gnu' },
};
const APT_TIMEOUT_MS = 10 * 60_000;
const ZSTD_LEVEL = 19;

export interface HelperBundle {
  /** Path of the manifest. `contents` is the path of the concatenated compressed files. */
  readonly manifest: string;
  readonly contents: string;
  readonly notices: readonly Notice[];
}

/**
 * Builds the bundle. If apt cannot provide the packages, it logs the reason and returns undefined; the executable then
 * needs the host's programs.
 */
export async function helperBundle(
  architecture: Architecture,
  cache: string,
  say: (line: string) => void,
): Promise<HelperBundle | undefined> {
  const key = createHash('sha256')
    .update(JSON.stringify([FORMAT, PROGRAMS]))
    .digest('hex')
    .slice(0, 12);
  const target = join(cache, `helpers-${architecture}-${key}`);
  if (!existsSync(target)) {
    const work = `${target}.work`;
    try {
      await rm(work, { recursive: true, force: true });
      await mkdir(join(work, 'out'), { recursive: true });
      say(`fetching runc, conmon, nft, ip and their libraries for ${architecture} from Debian’s packages`);
      await make(architecture, work);
      await rename(join(work, 'out'), target);
    } catch (error) {
      const why = String(error instanceof Error ? error.message : error)
        .trim()
        .split('\n')
        .at(-1);
      say(`no helpers for ${architecture}, hosts need runc, conmon, nftables and iproute2 of their own: ${why}`);
      return undefined;
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }
  return {
    manifest: join(target, 'helpers.json'),
    contents: join(target, 'helpers.bin'),
    notices: JSON.parse(await readFile(join(target, 'notices.json'), 'utf8')),
  };
}

async function make(architecture: Architecture, work: string): Promise<void> {
  const debian = DEBIAN[architecture];
  const host = DEBIAN[process.arch as Architecture];
  const packages = await fetchPackages(
    debian.name,
    [...new Set<string>(Object.values(PROGRAMS)), 'base-files'],
    join(work, debian.name),
  );
  const tools = await fetchPackages(host.name, ['patchelf'], join(work, 'tools'));
  const patchelf = await find(tools, 'usr/bin/patchelf');
  const printed = async (option: string, file: string): Promise<string[]> =>
    (await run(patchelf, [option, file])).stdout.split('\n').filter((line) => line !== '');

  const files = new Map<string, string>();
  const libraries: string[] = [];
  for (const program of Object.keys(PROGRAMS)) {
    const places = ['usr/sbin', 'usr/bin', 'sbin', 'bin'].map((directory) => `${directory}/${program}`);
    const original = await find(packages, ...places);
    files.set(`bin/${program}`, original);
    libraries.push(...(await printed('--print-needed', original)));
    const [loader = ''] = await printed('--print-interpreter', original);
    files.set('lib/ld.so', await find(packages, loader.slice(1), `lib/${debian.triplet}/${basename(loader)}`));
  }
  for (const name of libraries) {
    // The bundle already contains the loader.
    if (files.has(`lib/${name}`) || name.startsWith('ld-linux')) continue;
    const places = ['usr/lib', 'lib'].map((directory) => `${directory}/${debian.triplet}/${name}`);
    const original = await find(packages, ...places);
    files.set(`lib/${name}`, original);
    libraries.push(...(await printed('--print-needed', original)));
  }
  const used = new Set([...files.values()].map((file) => packages.find(({ root }) => file.startsWith(`${root}/`))));
  const entries: { path: string; content: Buffer }[] = [];
  for (const [path, original] of [...files].sort(([left], [right]) => (left < right ? -1 : 1))) {
    const copy = join(work, 'copy');
    await copyFile(original, copy);
    // DT_RPATH, unlike DT_RUNPATH, also applies to libraries of libraries.
    if (path.startsWith('bin/'))
      await run(patchelf, [
        ...['--set-interpreter', `${HELPER_PREFIX}/lib/ld.so`],
        ...['--force-rpath', '--set-rpath', `${HELPER_PREFIX}/lib`, copy],
      ]);
    entries.push({ path, content: await readFile(copy) });
  }
  const manifest: HelperManifest = {
    hash: createHash('sha256')
      .update(Buffer.concat(entries.map(({ content }) => content)))
      .digest('hex')
      .slice(0, 24),
    files: entries.map(({ path, content }) => ({ path, size: content.length })),
  };
  const contents = await compress(Buffer.concat(entries.map(({ content }) => content)), {
    params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL, [constants.ZSTD_c_windowLog]: 25 },
  });
  const out = (name: string): string => join(work, 'out', name);
  await writeFile(out('helpers.bin'), contents);
  await writeFile(out('helpers.json'), JSON.stringify(manifest));
  await writeFile(out('notices.json'), JSON.stringify(await noticesOf(packages, used)));
}

interface DebianPackage {
  readonly name: string;
  readonly version: string;
  /** Directory with the unpacked files. */
  readonly root: string;
}

/** Downloads the packages with all dependencies, verified by apt, and unpacks them below `directory`. */
async function fetchPackages(
  architecture: string,
  names: readonly string[],
  directory: string,
): Promise<DebianPackage[]> {
  for (const name of ['lists/partial', 'cache/archives/partial', 'debs', 'roots'])
    await mkdir(join(directory, name), { recursive: true });
  await writeFile(join(directory, 'status'), '');
  // A separate state directory keeps the machine's apt state unchanged and makes every package count as not installed.
  const options = [
    ...['-qq', '-o', `APT::Architecture=${architecture}`, '-o', `APT::Architectures=${architecture}`],
    ...['-o', `Dir::State::lists=${join(directory, 'lists')}`, '-o', `Dir::State::status=${join(directory, 'status')}`],
    ...['-o', `Dir::Cache=${join(directory, 'cache')}`, '-o', 'APT::Sandbox::User=root', '-o', 'Acquire::Retries=2'],
    ...['-o', 'Acquire::http::Timeout=20', '-o', 'Acquire::https::Timeout=20', '-o', 'Acquire::Languages=none'],
  ];
  const apt = async (...args: string[]): Promise<string> =>
    (
      await run('apt-get', [...options, ...args], {
        cwd: join(directory, 'debs'),
        timeout: APT_TIMEOUT_MS,
        maxBuffer: 16 * 1024 * 1024,
        env: { PATH: process.env['PATH'], LANG: 'C.UTF-8' },
      })
    ).stdout;
  // Unreachable sources that no package needs must not fail the build. If a package is missing, the next step fails.
  await apt('update').catch(() => {});
  const simulated = await apt('--simulate', '--no-install-recommends', 'install', ...names);
  const chosen = [...simulated.matchAll(/^Inst (\S+) \((\S+) /gm)].map(([, name = '', version = '']) => ({
    name: name.replace(/:.*$/, ''),
    version,
  }));
  await apt('download', ...chosen.map(({ name, version }) => `${name}=${version}`));
  const debs = await readdir(join(directory, 'debs'));
  const found: DebianPackage[] = [];
  for (const { name, version } of chosen) {
    const deb = debs.find((file) => file.startsWith(`${name}_`));
    if (deb === undefined) throw new Error(`apt-get download ${name}: no file`);
    const root = join(directory, 'roots', name);
    await run('dpkg-deb', ['-x', join(directory, 'debs', deb), root]);
    found.push({ name, version, root: await realpath(root) });
  }
  return found;
}

/**
 * Path of the first of `paths` that a package contains, after following links in the package. Throws if there is none.
 */
async function find(packages: readonly DebianPackage[], ...paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    for (const { root } of packages) {
      const file = join(root, path);
      const target = await readlink(file).catch(() => undefined);
      const resolved = target?.startsWith('/') === true ? join(root, target) : file;
      if ((await stat(resolved).catch(() => undefined))?.isFile() === true) return realpath(resolved);
    }
  }
  throw new Error(`no package has ${paths.join(' or ')}`);
}

/** Debian's copyright files of the used packages, and the license texts that they refer to. */
async function noticesOf(
  packages: readonly DebianPackage[],
  used: ReadonlySet<DebianPackage | undefined>,
): Promise<Notice[]> {
  const notices: Notice[] = [];
  const common = new Set<string>();
  for (const each of packages) {
    if (!used.has(each)) continue;
    const link = await readlink(join(each.root, 'usr/share/doc', each.name)).catch(() => each.name);
    const text = await readFile(await find(packages, `usr/share/doc/${basename(link)}/copyright`), 'utf8');
    for (const [, license = ''] of text.matchAll(/common-licenses\/([A-Za-z]+(?:-[0-9.]*[0-9])?)/g))
      common.add(license);
    const source = `Debian package ${each.name} ${each.version}; its source package is in the same archive.`;
    notices.push({ name: each.name, version: each.version, license: 'see its notice', text: `${source}\n\n${text}` });
  }
  for (const name of [...common].sort()) {
    const file = await find(packages, `usr/share/common-licenses/${name}`).catch(() => undefined);
    if (file !== undefined)
      notices.push({ name: `licence ${name}`, version: '', license: name, text: await readFile(file, 'utf8') });
  }
  return notices;
}
