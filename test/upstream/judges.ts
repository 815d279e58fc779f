/**
 * Runs unmodified envtest suites of other operators against `etcd` and `kube-apiserver` of `hyperedge envtest`. Not
 * part of `npm test`: it takes hours on two cores and needs root, Go 1.26 and make.
 *
 *   npm run build && npm run test:upstream:judges -- [--only NAME[/PACKAGE]]... [--home DIR] [--assets DIR]
 *       [--cert-manager DIR] [--limit MINUTES]
 *
 * `--only`: a suite of the table, or its packages whose name ends with PACKAGE. `--home`: directory for sources,
 * programs and logs. `--assets`: directory with upstream's `etcd`, `kube-apiserver` and `kubectl`, for comparison.
 * `--cert-manager`: cert-manager's sources, because the module proxy lacks its tests. Each package has its own network
 * and PID namespace. Prints one line per package, failure and suite; the exit code is 1 if a test failed or a package
 * did not run to its end.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { executable } from '../e2e/harness.ts';
import { readTestOutput } from './sources/go-tests.ts';
import { isolated } from './sources/place.ts';

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    home: { type: 'string', default: '/var/tmp/hyperedge-judges' },
    assets: { type: 'string' },
    'cert-manager': { type: 'string' },
    limit: { type: 'string', default: '60' },
  },
});
const home = resolve(flags.home);
const execute = promisify(execFile);
const OUTPUT_BYTES = 64 << 20;

interface Judge {
  /** `PATH@VERSION`. If undefined, the sources are given by the flag with the judge's name. */
  readonly module?: string;
  /** Nested modules that the zip file lacks, by directory. */
  readonly nested?: Readonly<Record<string, string>>;
  /** Working directory of `go` below the sources. */
  readonly directory?: string;
  readonly packages: readonly string[];
  /** If set, only this package and those whose tests import it are run, because the others start no API server. */
  readonly importing?: string;
  readonly arguments?: readonly string[];
  readonly environment?: (sources: string, assets: string) => Readonly<Record<string, string>>;
  /** Generates the files that upstream's Makefile generates before the tests. */
  readonly prepare?: (sources: string) => Promise<void>;
}

const ENVTEST = 'sigs.k8s.io/controller-runtime/pkg/envtest';
const CERT_MANAGER = 'cert-manager';

/** Suites by name, in releases for Kubernetes 1.36 if the module proxy has one. */
const JUDGES: Readonly<Record<string, Judge>> = {
  'controller-runtime': {
    module: 'sigs.k8s.io/controller-runtime@v0.24.1',
    packages: ['./pkg/...'],
    importing: ENVTEST,
  },
  jobset: { module: 'sigs.k8s.io/jobset@v0.12.0', packages: ['./test/integration/...'] },
  'cluster-api': {
    module: 'sigs.k8s.io/cluster-api@v1.14.2',
    nested: { api: 'sigs.k8s.io/cluster-api/api@v1.14.2' },
    packages: ['./core/...', './controllers/...'],
    importing: 'sigs.k8s.io/cluster-api/internal/test/envtest',
  },
  [CERT_MANAGER]: {
    directory: 'test/integration',
    packages: ['./...'],
    environment: (_, assets) => ({
      TEST_ASSET_ETCD: join(assets, 'etcd'),
      TEST_ASSET_KUBE_APISERVER: join(assets, 'kube-apiserver'),
      TEST_ASSET_KUBECTL: join(assets, 'kubectl'),
    }),
  },
  kueue: {
    module: 'sigs.k8s.io/kueue@v0.17.0',
    packages: ['./test/integration/singlecluster/...'],
    // The cases of upstream's `make test-integration-baseline`.
    arguments: ['-ginkgo.label-filter=!slow && !redundant'],
    environment: (sources) => ({ PROJECT_DIR: `${sources}/`, KUEUE_BIN: join(sources, 'bin') }),
    prepare: prepareKueue,
  },
};

async function prepareKueue(sources: string): Promise<void> {
  const jobs = ['mpi-operator-crd', 'kf-training-operator-crd', 'kf-trainer-crd', 'kf-trainer-runtimes'];
  const others = ['ray-operator-crd', 'jobset-operator-crd', 'leaderworkerset-operator-crd', 'cluster-autoscaler-crd'];
  const rest = ['appwrapper-crd', 'clusterprofile-crd', 'spark-operator-crd'];
  await execute('make', [...jobs, ...others, ...rest], { cwd: sources, maxBuffer: OUTPUT_BYTES });
  const crd = join(sources, 'config/components/crd');
  await mkdir(join(crd, '_output'), { recursive: true });
  const { stdout } = await execute('kubectl', ['kustomize', crd], { maxBuffer: OUTPUT_BYTES });
  const output = await open(join(crd, '_output/crds-with-webhooks.yaml'), 'w');
  await output.writeFile(stdout);
  await output.close();
  await go(['build', '-o', 'bin/kubectl-kueue', './cmd/kueuectl'], sources);
}

const environment = () => ({ ...process.env, CGO_ENABLED: '0', GOFLAGS: '-p=1 -buildvcs=false' });

async function go(args: readonly string[], directory: string): Promise<string> {
  const options = { cwd: directory, env: environment(), maxBuffer: OUTPUT_BYTES };
  const { stdout } = await execute('nice', ['-n', '15', 'go', ...args], options);
  return stdout;
}

/** A writable copy of a module. */
async function copyModule(module: string, target: string): Promise<void> {
  const { stdout } = await execute('go', ['mod', 'download', '-json', module], { env: environment(), cwd: home });
  const { Dir } = JSON.parse(stdout) as { readonly Dir: string };
  await cp(Dir, target, { recursive: true });
  await execute('chmod', ['-R', 'u+w', target]);
}

/** Directory of the judge's sources; undefined if the required flag is missing. */
async function sourcesOf(name: string, { module, nested = {}, prepare }: Judge): Promise<string | undefined> {
  if (module === undefined) return name === CERT_MANAGER ? flags[CERT_MANAGER] : undefined;
  const target = join(home, 'src', module.replaceAll('/', '+'));
  if (existsSync(target)) return target;
  const scratch = `${target}.new`;
  await rm(scratch, { recursive: true, force: true });
  await copyModule(module, scratch);
  for (const [directory, each] of Object.entries(nested)) await copyModule(each, join(scratch, directory));
  await prepare?.(scratch);
  await rename(scratch, target);
  return target;
}

interface Package {
  readonly path: string;
  readonly directory: string;
}

async function packagesOf(name: string, { packages, importing }: Judge, directory: string): Promise<Package[]> {
  const format = '{{.ImportPath}} {{.Dir}} {{join .TestImports " "}} {{join .XTestImports " "}}';
  const only = flags.only.filter((each) => each.startsWith(`${name}/`)).map((each) => each.slice(name.length));
  const found: Package[] = [];
  for (const line of (await go(['list', '-f', format, ...packages], directory)).split('\n')) {
    const [path = '', place = '', ...imports] = line.split(' ').filter((each) => each !== '');
    // The tests of the imported package itself count too.
    const wanted = importing === undefined || path === importing || imports.includes(importing);
    if (imports.length === 0 || !wanted) continue;
    if (only.length === 0 || only.some((end) => path.endsWith(end))) found.push({ path, directory: place });
  }
  return found;
}

interface Result {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly broken: number;
}

async function runPackage(name: string, judge: Judge, { path, directory }: Package, assets: string): Promise<Result> {
  const label = path.replaceAll('/', '+');
  const program = join(home, 'bin', name, `${label}.test`);
  const log = join(home, 'logs', name, `${label}.log`);
  for (const each of ['bin', 'logs']) await mkdir(join(home, each, name), { recursive: true });
  if (!existsSync(program)) {
    await go(['test', '-c', '-vet=off', '-ldflags', '-s -w', '-o', `${program}.new`, path], directory);
    await rename(`${program}.new`, program);
  }
  const sources = (await sourcesOf(name, judge)) ?? '';
  const args = ['-test.v', `-test.timeout=${flags.limit}m`, ...(judge.arguments ?? [])];
  const [file = '', ...inside] = isolated('exec "$@"', ['nice', '-n', '15', program, ...args]);
  const output = await open(log, 'w');
  const child = spawn(file, inside, {
    cwd: directory,
    env: {
      ...process.env,
      GINKGO_NO_COLOR: 'TRUE',
      KUBEBUILDER_ASSETS: assets,
      ...judge.environment?.(sources, assets),
    },
    stdio: ['ignore', output.fd, output.fd],
  });
  const code = await new Promise<number | null>((settle, reject) => {
    child.once('error', reject).once('close', settle);
  });
  await output.close();
  const { passed, failed, skipped } = readTestOutput(await readFile(log, 'utf8'));
  // A panic or the time limit ends the program without results of the remaining tests.
  const broken = code !== 0 && failed.length === 0;
  console.log(
    `${name} ${path}: ${passed} passed, ${failed.length} failed, ${skipped} skipped${broken ? `, ended with ${code}: ${log}` : ''}`,
  );
  for (const each of failed) console.log(`  failed: ${each}`);
  return { passed, failed: failed.length, skipped, broken: Number(broken) };
}

async function runJudge(name: string, judge: Judge, assets: string): Promise<Result> {
  const total = { passed: 0, failed: 0, skipped: 0, broken: 0 };
  const sources = await sourcesOf(name, judge);
  if (sources === undefined) {
    console.log(`${name}: not run; pass its sources by --${name} DIR`);
    return { ...total, broken: 1 };
  }
  for (const each of await packagesOf(name, judge, join(sources, judge.directory ?? ''))) {
    const result = await runPackage(name, judge, each, assets);
    for (const key of ['passed', 'failed', 'skipped', 'broken'] as const) total[key] += result[key];
  }
  return total;
}

async function main(): Promise<number> {
  const names = Object.keys(JUDGES).filter(
    (name) => flags.only.length === 0 || flags.only.some((each) => each === name || each.startsWith(`${name}/`)),
  );
  if (names.length === 0) throw new Error(`--only: give one of ${Object.keys(JUDGES).join(', ')}`);
  await mkdir(home, { recursive: true });
  const assets = flags.assets === undefined ? join(home, 'assets') : resolve(flags.assets);
  if (flags.assets === undefined) await execute(executable, ['envtest', assets]);
  let good = true;
  const lines: string[] = [];
  for (const name of names) {
    const { passed, failed, skipped, broken } = await runJudge(name, JUDGES[name] as Judge, assets);
    good &&= failed === 0 && broken === 0 && passed > 0;
    lines.push(
      `${name}: ${passed} passed of ${passed + failed}, ${skipped} skipped, ${broken} packages not to their end`,
    );
  }
  for (const line of lines) console.log(line);
  return good ? 0 : 1;
}

process.exitCode = await main();
