/**
 * Sources of upstream's programs as Debian ships them, with their build dependencies. They are fetched once with apt
 * below `dist/upstream`, from the archive that apt is configured with. The host's package lists and packages are not
 * changed.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const UPSTREAM = join(import.meta.dirname, '..', '..', '..', 'dist', 'upstream');
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const OUTPUT_BYTES = 64 << 20;

/** Debian's source packages and their Go import paths. */
const IMPORT_PATHS = { etcd: 'go.etcd.io/etcd', kubernetes: 'k8s.io/kubernetes' } as const;

export interface UpstreamSource {
  readonly directory: string;
  /** Upstream's version without Debian's revision, for example `3.4.23`. */
  readonly version: string;
  /** Runs `go` in `directory` (GOPATH mode, without the network). Throws with its output if it fails. */
  go(args: readonly string[]): Promise<void>;
}

/**
 * Unpacks the source package and its Go build dependencies if they do not exist. Throws one line if apt, dpkg or the
 * mirror are missing. `suite`: Debian release with the wanted version; bookworm has etcd 3.4.23 and Kubernetes 1.20.2.
 */
export async function upstreamSource(
  name: keyof typeof IMPORT_PATHS,
  say: (line: string) => void = console.log,
  suite = 'bookworm',
): Promise<UpstreamSource> {
  const go = join(UPSTREAM, suite, 'go');
  const home = join(UPSTREAM, suite, name);
  const directory = join(home, 'src', IMPORT_PATHS[name]);
  if (!existsSync(home) || !existsSync(join(go, name))) {
    for (const program of ['apt-get', 'dpkg-source', 'dpkg-deb'])
      await run(program, ['--version']).catch(() => {
        throw new Error(`${program} is needed to fetch Debian's source packages; install apt and dpkg-dev`);
      });
    const apt = await openApt(suite);
    await fetchSource(name, { apt, home, say });
    await fetchBuildDependencies(name, { apt, target: go, say });
  }
  return {
    directory,
    version: await readFile(join(home, 'version'), 'utf8'),
    go: (args) => runGo(args, { directory, paths: [home, join(go, name, 'usr/share/gocode')], root: join(go, name) }),
  };
}

interface Apt {
  readonly directory: string;
  readonly options: readonly string[];
}

/** Creates an apt state of its own in which no package is installed, so that apt lists every build dependency. */
async function openApt(suite: string): Promise<Apt> {
  const directory = join(UPSTREAM, suite, 'apt');
  await mkdir(join(directory, 'lists', 'partial'), { recursive: true });
  await mkdir(join(directory, 'cache', 'archives', 'partial'), { recursive: true });
  const archive = await configuredArchive(directory);
  const lines = ['deb', 'deb-src'].map((kind) => `${kind} [signed-by=${KEYRING}] ${archive} ${suite} main\n`);
  await writeFile(join(directory, 'sources.list'), lines.join(''));
  await writeFile(join(directory, 'status'), '');
  const settings = {
    'Dir::Etc::sourcelist': join(directory, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'Dir::State': directory,
    'Dir::State::lists': join(directory, 'lists'),
    'Dir::State::status': join(directory, 'status'),
    'Dir::Cache': join(directory, 'cache'),
    'APT::Sandbox::User': 'root',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  await run('apt-get', [...options, '-qq', 'update'], { maxBuffer: OUTPUT_BYTES });
  return { directory, options };
}

/** URL of Debian's archive in this host's apt configuration: a mirror or a proxy. */
async function configuredArchive(directory: string): Promise<string> {
  // The host may lack package lists after `apt-get clean`. They are then fetched to a separate directory.
  const lists = join(directory, 'host-lists');
  for (const options of [[], ['-o', `Dir::State::lists=${lists}`]]) {
    if (options.length > 0) {
      await mkdir(join(lists, 'partial'), { recursive: true });
      await run('apt-get', [...options, '-qq', 'update'], { maxBuffer: OUTPUT_BYTES });
    }
    const { stdout } = await run(
      'apt-get',
      [...options, 'indextargets', '--format', '$(ORIGIN) $(LABEL) $(REPO_URI)', 'Created-By: Packages'],
      { maxBuffer: OUTPUT_BYTES },
    );
    const [, archive] = /^Debian Debian (\S+)$/m.exec(stdout) ?? [];
    if (archive !== undefined) return archive;
  }
  throw new Error('apt is configured without the archive of Debian; add it to /etc/apt/sources.list');
}

interface Fetch {
  readonly apt: Apt;
  readonly say: (line: string) => void;
}

/** Fetches the source package. `home` appears only when it is complete. */
async function fetchSource(
  name: keyof typeof IMPORT_PATHS,
  { apt, home, say }: Fetch & { readonly home: string },
): Promise<void> {
  if (existsSync(home)) return;
  say(`fetching Debian's source package ${name}`);
  const scratch = await mkdtemp(`${home}-`);
  await run('apt-get', [...apt.options, '-qq', '--only-source', '--download-only', 'source', name], { cwd: scratch });
  const description = (await readdir(scratch)).find((file) => file.endsWith('.dsc'));
  if (description === undefined) throw new Error(`apt-get source ${name} brought no description (.dsc)`);
  const directory = join(scratch, 'src', IMPORT_PATHS[name]);
  await mkdir(join(directory, '..'), { recursive: true });
  // apt has verified the files with the signed lists.
  await run('dpkg-source', ['--no-check', '-x', description, directory], { cwd: scratch, maxBuffer: OUTPUT_BYTES });
  const text = await readFile(join(scratch, description), 'utf8');
  // For example `1.20.5+really1.20.2-1.1+deb12u1`.
  const [, version = ''] = /^Version: (?:\S+really)?([\d.]+)/m.exec(text) ?? [];
  await writeFile(join(scratch, 'version'), version);
  await rename(scratch, home);
}

/** Unpacks Go and its packaged libraries side by side: `target/NAME/usr/…`. */
async function fetchBuildDependencies(
  name: string,
  { apt, target, say }: Fetch & { readonly target: string },
): Promise<void> {
  const home = join(target, name);
  if (existsSync(home)) return;
  const { stdout } = await run('apt-get', [...apt.options, '--simulate', 'build-dep', name], {
    maxBuffer: OUTPUT_BYTES,
  });
  const packages = [...stdout.matchAll(/^Inst (golang-\S+)/gm)].map(([, found]) => found as string);
  if (packages.length === 0) throw new Error(`apt-get build-dep ${name} names nothing in Go`);
  say(`fetching what it is built with: ${packages.length} packages`);
  await mkdir(target, { recursive: true });
  const scratch = await mkdtemp(`${home}-`);
  await run('apt-get', [...apt.options, '-qq', 'download', ...packages], { cwd: scratch, maxBuffer: OUTPUT_BYTES });
  for (const archive of await readdir(scratch)) {
    if (!archive.endsWith('.deb')) continue;
    await run('dpkg-deb', ['-x', archive, scratch], { cwd: scratch });
    await rm(join(scratch, archive));
  }
  await rename(scratch, home);
}

interface GoPlace {
  readonly directory: string;
  readonly paths: readonly string[];
  readonly root: string;
}

async function runGo(args: readonly string[], { directory, paths, root }: GoPlace): Promise<void> {
  const [version] = (await readdir(join(root, 'usr/lib'))).filter((entry) => /^go-[\d.]+$/.test(entry));
  if (version === undefined) throw new Error(`${root} holds no Go`);
  const goroot = join(root, 'usr/lib', version);
  const env = {
    ...process.env,
    GOROOT: goroot,
    GOPATH: paths.join(delimiter),
    GOCACHE: join(UPSTREAM, 'go-cache'),
    GO111MODULE: 'off',
    GOFLAGS: '',
    CGO_ENABLED: '0',
  };
  const child = spawn(join(goroot, 'bin/go'), args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-OUTPUT_BYTES);
    });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  if (code !== 0) throw new Error(`go ${args.join(' ')} ended with ${code}:\n${output}`);
}
