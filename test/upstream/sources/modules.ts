/**
 * Builds upstream's current programs from the Go module `k8s.io/kubernetes` (Go 1.26 or later, with the module proxy of
 * `go env GOPROXY`). The first build takes some minutes. The programs are kept in a directory outside of the
 * repository.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Release of the suite, and version of its staging modules. */
const RELEASE = '1.36.3';
const STAGING = `v0.${RELEASE.slice(2)}`;

/** Default directory of the programs. */
export const PROGRAMS = '/var/tmp/hyperedge-upstream';

const PACKAGES = {
  'e2e.test': 'k8s.io/kubernetes/test/e2e',
  ginkgo: 'github.com/onsi/ginkgo/v2/ginkgo',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  agnhost: 'k8s.io/kubernetes/test/images/agnhost',
  'sample-apiserver': 'k8s.io/sample-apiserver',
} as const;

export interface UpstreamPrograms {
  /** Directory of the statically linked programs. */
  readonly bin: string;
  /** Source tree of Kubernetes, read-only. */
  readonly sources: string;
}

/** Builds missing programs below `home`. Throws with the last lines that `go` prints if a build fails. */
export async function buildPrograms(home: string): Promise<UpstreamPrograms> {
  const bin = join(home, 'bin');
  const module = join(home, 'src');
  await mkdir(bin, { recursive: true });
  await mkdir(module, { recursive: true });
  if (!existsSync(join(module, 'go.mod'))) await writeModule(module);
  for (const [name, path] of Object.entries(PACKAGES)) {
    const target = join(bin, name);
    if (existsSync(target)) continue;
    console.log(`building ${name} of ${path}`);
    const verb = name.endsWith('.test') ? ['test', '-c', '-vet=off'] : ['build'];
    // The linker sets the version that a client prints and compares.
    const flags = `-s -w -X k8s.io/component-base/version.gitVersion=v${RELEASE}`;
    await go([...verb, '-p', '2', '-ldflags', flags, '-o', `${target}.new`, path], module);
    await rename(`${target}.new`, target);
  }
  const { stdout } = await run('go', ['list', '-m', '-f', '{{.Dir}}', 'k8s.io/kubernetes'], {
    cwd: module,
    env: environment(),
  });
  return { bin, sources: stdout.trim() };
}

/**
 * Go ignores replace directives of dependencies, so those for Kubernetes' staging modules are repeated with published
 * versions.
 */
async function writeModule(directory: string): Promise<void> {
  await writeFile(join(directory, 'go.mod'), 'module upstream\n');
  const { stdout } = await run('go', ['mod', 'download', '-json', `k8s.io/kubernetes@v${RELEASE}`], {
    cwd: directory,
    env: environment(),
  });
  const { GoMod } = JSON.parse(stdout) as { readonly GoMod: string };
  const text = await readFile(GoMod, 'utf8');
  const end = text.indexOf('\nreplace (');
  const begin = text.indexOf('\ngo ');
  if (begin < 0 || end < 0) throw new Error(`${GoMod}: no go or replace directive; another release has another layout`);
  const staging = [...text.slice(end).matchAll(/^\t(k8s\.io\/\S+) =>/gm)].map(([, name]) => name);
  const lines = [
    'module upstream',
    text.slice(begin, end).replaceAll(' v0.0.0\n', ` ${STAGING}\n`),
    `require k8s.io/kubernetes v${RELEASE}`,
    ...staging.map((name) => `replace ${name} => ${name} ${STAGING}`),
  ];
  await writeFile(join(directory, 'go.mod'), `${lines.join('\n')}\n`);
}

const environment = () => ({ ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod -buildvcs=false' });

async function go(args: readonly string[], directory: string): Promise<void> {
  const child = spawn('nice', ['go', ...args], {
    cwd: directory,
    env: environment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    output = (output + chunk).slice(-4_000);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  if (code !== 0) throw new Error(`go ${args.join(' ')} ended with ${code}:\n${output}`);
}
