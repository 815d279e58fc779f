/**
 * Runs Kubernetes' integration tests (test/integration of 1.20, and those of custom resources) with the packaged
 * executable as `kube-apiserver` and `etcd`. The tests normally start an API server in their own process. `go build
 * -overlay` replaces the functions that start it by ones that start a separate process with the same flags. Not part of
 * `npm test`: building takes minutes.
 *
 *   npm run build && npm run test:upstream:integration -- --sources DIR [--overlay FILE] [--only NAME] [--run REGEX]
 *       [--programs DIR] [--prefixes]
 *
 * `--sources`: Kubernetes' sources in a GOPATH (`…/src/k8s.io/kubernetes`), including generated files. `--overlay`:
 * additional overlays for the installed compiler. `--only`: suffixes of package names, separated by commas.
 * `--programs`: directory with other programs named `kube-apiserver` and `etcd`; for upstream's own, add `--prefixes`.
 * Prints the failures, and the excluded tests with reasons; the exit code is 1 if any test failed. Every package has
 * its own network and PID namespace, so root is required.
 */
import { spawn } from 'node:child_process';
import { access, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { isolated, placeBinaries, REPORTS } from './sources/place.ts';

const { values: flags } = parseArgs({
  options: {
    sources: { type: 'string' },
    overlay: { type: 'string' },
    only: { type: 'string' },
    run: { type: 'string', default: '.' },
    programs: { type: 'string' },
    prefixes: { type: 'boolean', default: false },
  },
});
if (flags.sources === undefined) throw new Error('--sources DIR is missing: Kubernetes’ sources in a GOPATH');
const sources = resolve(flags.sources);
const here = join(import.meta.dirname, 'integration');
const TIMEOUT_S = 900;

const CRD = 'vendor/k8s.io/apiextensions-apiserver/test/integration';
const PACKAGES = [
  ...['apiserver', 'apiserver/apply', 'apiserver/admissionwebhook', 'apiserver/certreload', 'apiserver/podlogs'],
  ...[
    'apimachinery',
    'auth',
    'certificates',
    'client',
    'configmap',
    'defaulttolerationseconds',
    'disruption',
    'dryrun',
    'events',
  ],
  ...['evictions', 'examples', 'garbagecollector', 'kubelet', 'master', 'metrics', 'namespace', 'node', 'objectmeta'],
  ...['openshift', 'pods', 'quota', 'secrets', 'serviceaccount', 'storageclasses', 'tls', 'ttlcontroller'],
  ...['deployment', 'replicaset', 'endpoints', 'endpointslice', 'scale', 'daemonset', 'statefulset', 'cronjob'],
  ...['volume', 'ipamperf', 'scheduler'],
].map((name) => `test/integration/${name}`);
PACKAGES.push(CRD, `${CRD}/conversion`);

/** Excluded tests with the reason. */
const LEFT_OUT: ReadonlyArray<readonly [tests: RegExp, reason: string]> = [
  [
    /^TestStopTrackingManagedFieldsOnFeatureDisabled$/,
    'server-side apply cannot be switched off in a current Kubernetes',
  ],
  [/^Test(CreateLeaseOnStart|LeaseGarbageCollection)$/, 'servers have no identity lease'],
  [/^TestKMS/, 'KMS v1, which a current Kubernetes does not speak'],
  [/^Test(Local)?SubjectAccessReview$/, 'a webhook that authorises has no evaluation error to pass on'],
  [/^TestWebhookLoopback$/, 'an audit back end inside the process'],
  [
    /^TestWebhookAdmission\w+\/admissionregistration\.k8s\.io\./,
    'policies are exempt from webhooks in a current Kubernetes, and webhooks of v1beta1 are held to the rules of v1',
  ],
  [/^TestWebhookAdmission\w+\/\.v1\.serviceaccounts\.token\//, 'the test has nothing for it'],
  [/^TestStorageVersion/, 'wraps what is inside the process'],
  [/^TestAudit$/, 'also wants logs of audit.k8s.io/v1beta1; its cases of v1 apply'],
  [/^TestPod(Patch|Update)EphemeralContainers$/, 'sends a kind EphemeralContainers, which is a Pod since 1.22'],
  [/^TestApiserverMetrics(Pods|Namespaces)$/, 'a label contentType that 1.21 has dropped'],
  [/^TestInsecurePodLogs$/, 'the words of Go’s TLS'],
  [/^TestClient$/, 'compares the server’s version with the one of the test'],
  [/^TestSelfLink$/, 'there are no self links'],
  [/^TestSecretsShouldBeTransformed$/, 'looks for a text in what is stored, which is JSON here and has it in base64'],
  [/^TestStatus$/, 'who has no name: the harness has to give one'],
  [/^TestObjectSizeResponses$/, 'words of Go’s gRPC, and what 1.36 says of annotations'],
  [/^TestCustomResourceValidationErrors$/, 'the words of a text that is too long have changed since'],
  [/^TestInternalVersionIsHandlerVersion$/, 'what an update leaves as it was is not refused since 1.30'],
  [/^TestListOptions$/, 'compacts the store that all share; each server here has its own'],
  [/^TestServerSidePrint$/, 'columns are described in words of our own, and kinds that are gone are looked for'],
  [
    /^TestWatchCacheUpdatedByEtcd$/,
    'a list from the cache bears the revision of the whole store, not the last one of its kind',
  ],
  [
    /^TestNominatedNodeCleanUp$/,
    'counts on a bug of 1.20: what is deleted together gets the grace period of the first that is not scheduled, none',
  ],
  [/^TestServiceAccountTokenAutoMount$/, 'pods get projected tokens; those of secrets are no longer mounted'],
];

/**
 * Reason why a failure of `test` is ignored: it is excluded, or all of its failing subtests (contained in `leaves`)
 * are.
 */
function reasonFor(test: string, leaves: readonly string[]): string | undefined {
  const reasonOf = (name: string): string | undefined => LEFT_OUT.find(([known]) => known.test(name))?.[1];
  const parts = leaves.filter((each) => each.startsWith(`${test}/`)).map(reasonOf);
  return reasonOf(test) ?? (parts.includes(undefined) ? undefined : parts[0]);
}

const ADMISSION = [
  ...['NamespaceLifecycle', 'LimitRanger', 'ServiceAccount', 'TaintNodesByCondition', 'Priority', 'RuntimeClass'],
  ...[
    'DefaultTolerationSeconds',
    'DefaultStorageClass',
    'CertificateApproval',
    'CertificateSigning',
    'DefaultIngressClass',
  ],
  ...['CertificateSubjectRestriction', 'StorageObjectInUseProtection', 'PersistentVolumeClaimResize', 'ResourceQuota'],
  ...['MutatingAdmissionWebhook', 'ValidatingAdmissionWebhook'],
  ...(flags.prefixes
    ? []
    : ['PodSecurity', 'PodTopologyLabels', 'MutatingAdmissionPolicy', 'ValidatingAdmissionPolicy']),
];

/** Replacement file, the upstream file, and the functions to replace in it. */
const REPLACED: ReadonlyArray<readonly [ours: string, file: string, functions: readonly string[]]> = [
  [
    'kube-apiserver.go',
    'cmd/kube-apiserver/app/testing/testserver.go',
    ['StartTestServer', 'createLocalhostListenerOnFreePort', 'pkgPath'],
  ],
  [
    'apiextensions-apiserver.go',
    'vendor/k8s.io/apiextensions-apiserver/pkg/cmd/server/testing/testserver.go',
    ['StartTestServer', 'createLocalhostListenerOnFreePort', 'pkgPath'],
  ],
  ['framework-server.go', 'test/integration/framework/test_server.go', ['StartTestServer']],
  ['framework-master.go', 'test/integration/framework/master_utils.go', ['startMasterOrDie']],
];
/**
 * Replacements for parts of tests that are outdated or access the server's process, so that the rest of the test can
 * run.
 */
const REVISED: ReadonlyArray<
  readonly [file: string, revisions: ReadonlyArray<readonly [RegExp, string, why: string]>]
> = [
  [
    'test/integration/auth/auth_test.go',
    [[/"NOSUCHVERB"/g, '"PROPFIND"', 'Node’s parser refuses methods that are none before anybody is asked']],
  ],
  [
    `${CRD}/registration_test.go`,
    [[/"apiextensions\.k8s\.io\/v1beta1"/g, '"apiextensions.k8s.io/v1"', 'definitions are stored as v1 since 1.22']],
  ],
  [
    'test/integration/auth/svcaccttoken_test.go',
    [
      [/info\.Extra != nil/, 'len(info.Extra) != 1', 'users of tokens have the credential’s ID since 1.30'],
      [/len\(info\.Extra\) != 2/, 'len(info.Extra) != 3', 'the same'],
      [
        /("authentication\.kubernetes\.io\/)pod-uid("): .*/,
        '$&\n$1credential-id$2: info.Extra[$1credential-id$2],',
        'the same',
      ],
    ],
  ],
  [
    'test/integration/auth/node_test.go',
    [
      [/^.*expectNotFound\(t, updateNode2Status\(.*\n/gm, '', 'forbidden: whether another node is there is not said'],
      [
        /^.*ConfigSource\((?:node2|superuser)Client\).*\n/gm,
        '_, _, _ = getConfigMapConfigSource, setNode2ConfigSource, unsetNode2ConfigSource\n',
        'configuration by the API is gone since 1.24',
      ],
      [/^.*expectForbidden\(t, updatePVCCapacity\(node2Client\).*\n/gm, '', 'a feature gate inside the process'],
    ],
  ],
];
const ADDED = ['process.go', 'translate.go'];
const IMPORTS = /^import \([\s\S]*?^\)\n/m;

/** Upstream's file with the replaced imports and functions. */
function spliced(upstream: string, ours: string, functions: readonly string[]): string {
  const imports = IMPORTS.exec(ours)?.[0] ?? '';
  let text = upstream.replace(IMPORTS, () => imports);
  for (const name of functions) text = text.replace(new RegExp(`^func ${name}\\([\\s\\S]*?^}\\n`, 'm'), '');
  return `${text}\n${ours.slice(ours.indexOf(imports) + imports.length)}`;
}

async function writeOverlay(scratch: string): Promise<string> {
  const given = flags.overlay === undefined ? '{}' : await readFile(flags.overlay, 'utf8');
  const replace: Record<string, string> = { ...(JSON.parse(given) as { Replace?: Record<string, string> }).Replace };
  for (const name of ADDED) replace[join(sources, 'test/utils/apiprocess', name)] = join(here, name);
  for (const [ours, file, functions] of REPLACED) {
    const path = join(sources, file);
    const made = join(scratch, ours);
    const [upstream, own] = await Promise.all([readFile(path, 'utf8'), readFile(join(here, ours), 'utf8')]);
    await writeFile(made, spliced(upstream, own, functions));
    replace[path] = made;
    // The compiler may resolve the symbolic link in vendor, so both paths are replaced.
    replace[path.replace('/vendor/k8s.io/', '/staging/src/k8s.io/')] = made;
  }
  for (const [file, revisions] of REVISED) {
    const path = join(sources, file);
    let text = await readFile(path, 'utf8');
    for (const [part, instead, why] of revisions) {
      if (text.search(part) < 0) throw new Error(`${file} has no ${part} (${why})`);
      text = text.replace(part, instead);
    }
    const made = join(scratch, file.replaceAll('/', '-'));
    await writeFile(made, text);
    replace[path] = made;
  }
  if (!flags.prefixes) {
    const tables = join(sources, 'test/integration/etcd');
    const table = join(tables, 'data.go');
    const renamed = join(scratch, 'data.go');
    const text = await readFile(table, 'utf8');
    await writeFile(renamed, text.replace('func GetEtcdStorageDataForNamespace(', 'func upstreamStorageData('));
    replace[table] = renamed;
    replace[join(tables, 'newer_data.go')] = join(here, 'newer-data.go');
  }
  const overlay = join(scratch, 'overlay.json');
  await writeFile(overlay, JSON.stringify({ Replace: replace }));
  return overlay;
}

function run(file: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((done, reject) => {
    const child = spawn(file, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
    child.once('error', reject).once('close', (code) => done(code === 0 ? text : `${text}\nended with ${code}\n`));
  });
}

async function place(scratch: string): Promise<string> {
  if (flags.programs !== undefined) return resolve(flags.programs);
  const bin = await placeBinaries(scratch, { baseline: false, etcd: undefined });
  await symlink('etcd', join(bin, 'kube-apiserver'));
  return bin;
}

await access(join(sources, 'test/integration/framework'));
const scratch = await mkdtemp(join(tmpdir(), 'he-integration-'));
const overlay = await writeOverlay(scratch);
const bin = await place(scratch);
await mkdir(REPORTS, { recursive: true });
const signingKey = join(scratch, 'service-accounts.key');
const tokens = await readFile(join(sources, 'test/integration/auth/svcaccttoken_test.go'), 'utf8');
// The test signs its own tokens with the server's key.
await writeFile(signingKey, `${/-----BEGIN EC[\s\S]*?END EC PRIVATE KEY-----/.exec(tokens)?.[0] ?? ''}\n`, {
  mode: 0o600,
});
const go = { ...process.env, GO111MODULE: 'off', GOPATH: resolve(sources, '../../..'), CGO_ENABLED: '0' };
const tests: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: `${bin}${delimiter}${process.env['PATH']}`,
  APISERVER_ADMISSION: ADMISSION.join(','),
  APISERVER_SA_KEY: signingKey,
  APISERVER_PREFIXES: flags.prefixes ? '1' : '',
  TMPDIR: scratch,
};
const counts = { passed: 0, failed: 0, leftOut: 0 };
const lines: string[] = [];

/** Runs all tests. A panic ends the program, so the remaining tests are run in a new process. */
async function runAll(program: string, cwd: string): Promise<string> {
  const listed = await run(program, ['-test.list', flags.run], cwd, tests);
  let left = listed.split('\n').filter((line) => /^Test\w+$/.test(line));
  let text = '';
  while (left.length > 0) {
    const [file = '', ...args] = isolated('"$@"; exit $?', [
      program,
      ...['-test.v', `-test.timeout=${TIMEOUT_S}s`, '-test.run', `^(${left.join('|')})$`],
    ]);
    const shown = await run(file, args, cwd, tests);
    text += shown;
    const begun = new Set([...shown.matchAll(/^=== RUN +(\S+)/gm)].map(([, test]) => test));
    if (begun.size === 0) break;
    left = left.filter((test) => !begun.has(test));
  }
  return text;
}

const only = flags.only?.split(',');
for (const name of PACKAGES.filter((each) => only?.some((end) => each.endsWith(`/${end}`)) ?? true)) {
  const program = join(scratch, 'package.test');
  const build = ['test', '-c', '-vet=off', '-overlay', overlay, '-o', program, `k8s.io/kubernetes/${name}`];
  const built = await run('go', build, sources, go);
  const report = join(REPORTS, `integration-${name.replaceAll('/', '-')}.log`);
  const text = built.includes('ended with') ? built : await runAll(program, join(sources, name));
  await writeFile(report, text);
  const failures = [...text.matchAll(/^\s+--- FAIL: (\S+)/gm)].map(([, sub = '']) => sub);
  const leaves = failures.filter((each) => !failures.some((other) => other.startsWith(`${each}/`)));
  const results = [...text.matchAll(/^--- (PASS|FAIL|SKIP): (\S+)/gm)];
  if (results.length === 0 && flags.run === '.') lines.push(`failed: ${name} as a whole (${report})`);
  for (const [, result, test = ''] of results) {
    const reason = reasonFor(test, leaves);
    if (result === 'PASS') counts.passed += 1;
    else if (result === 'SKIP' || reason !== undefined) {
      counts.leftOut += 1;
      lines.push(`left out: ${name} ${test}: ${reason ?? 'skipped by the suite itself'}`);
    } else {
      counts.failed += 1;
      lines.push(`failed: ${name} ${test} (${report})`);
    }
  }
  console.log(`${name}: ${counts.passed} passed, ${counts.failed} failed so far`);
}
await rm(scratch, { recursive: true, force: true });
for (const line of lines) console.log(line);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.leftOut} left out`);
process.exit(lines.some((line) => line.startsWith('failed')) ? 1 : 0);
