/**
 * Upstream's own end-to-end suite (`e2e.test` of Kubernetes 1.20) against an appliance of the packaged executable in a network
 * namespace of its own. Not part of `npm test`: it takes hours and wants programs built from upstream's sources (GOPATH mode, `CGO_ENABLED=0`:
 * `go test -c k8s.io/kubernetes/test/e2e`, `go build` of test/images/agnhost, k8s.io/sample-apiserver, cmd/kube-controller-manager):
 *
 *   npm run test:conformance -- --upstream DIR --sources DIR [--group '\[sig-auth\].*\[Conformance\]']... [--skip REGEX]
 *       [--limit MINUTES] [--reports DIR] [--hold]
 *
 * `--upstream` holds e2e.test, agnhost, sample-apiserver (all static) and, when stateful sets and jobs are wanted, kube-controller-manager, which then
 * runs the controllers that this release lacks. `--hold` keeps the appliance until Ctrl-C instead of running anything.
 * It ends with one line a group and one a failure; exit code 1 when anything failed.
 */
import type { ChildProcess } from 'node:child_process';
import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Appliance } from '../e2e/harness.ts';
import { kubectls } from '../kubectls.ts';
import { writeConformanceImages } from './conformance-images.ts';

const { values: flags } = parseArgs({
  options: {
    upstream: { type: 'string' },
    sources: { type: 'string' },
    group: { type: 'string', multiple: true, default: [] },
    skip: { type: 'string', default: '\\[Disruptive\\]' },
    limit: { type: 'string', default: '60' },
    reports: { type: 'string', default: '/tmp/hyperedge-conformance' },
    controllers: { type: 'string', default: 'serviceaccount-token,statefulset,job,cronjob' },
    hold: { type: 'boolean', default: false },
  },
});

const GROUPS = ['sig-api-machinery', 'sig-auth', 'sig-cli', 'sig-apps', 'sig-node', 'sig-storage', 'sig-network'];

interface Outcome {
  readonly name: string;
  readonly failure: string | undefined;
}

/** What a JUnit report of the suite says; specs that were filtered out are not in it. */
function readReport(xml: string): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const [, attributes = '', body = ''] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    if (body.includes('<skipped')) continue;
    const name = /name="([^"]*)"/.exec(attributes)?.[1] ?? '?';
    const failure = /<failure[^>]*>([\s\S]*?)<\/failure>/.exec(body)?.[1];
    outcomes.push({ name: plain(name), failure: failure === undefined ? undefined : plain(failure) });
  }
  return outcomes;
}

const plain = (text: string): string =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#34;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&#xA;', '\n')
    .replaceAll('&amp;', '&');

async function runGroup(appliance: Appliance, programs: string, focus: string, reports: string): Promise<Outcome[]> {
  await mkdir(reports, { recursive: true });
  const child = appliance.spawnInside(join(programs, 'e2e.test'), [
    '--provider=skeleton',
    `--kubeconfig=${appliance.kubeconfig}`,
    `--kubectl-path=${kubectls().at(-1)?.path ?? 'kubectl'}`,
    `--ginkgo.focus=${focus}`,
    `--ginkgo.skip=${flags.skip}`,
    '--ginkgo.noColor',
    `--report-dir=${reports}`,
    '--disable-log-dump',
    '--num-nodes=1',
    '--allowed-not-ready-nodes=0',
  ]);
  const log = createWriteStream(join(reports, 'log.txt'));
  child.stdout?.pipe(log);
  child.stderr?.pipe(log);
  const timer = setTimeout(() => child.kill('SIGINT'), Number(flags.limit) * 60_000);
  await ended(child);
  clearTimeout(timer);
  const outcomes: Outcome[] = [];
  for (const name of await readdir(reports))
    if (name.startsWith('junit')) outcomes.push(...readReport(await readFile(join(reports, name), 'utf8')));
  return outcomes;
}

/** However it ends: what it has found is in its report. */
const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', () => resolve());
  });

/** Upstream's controllers of the kinds that nothing of ours acts on. */
function startControllers(appliance: Appliance, programs: string): ChildProcess | undefined {
  const program = join(programs, 'kube-controller-manager');
  if (!existsSync(program) || flags.controllers === '') return undefined;
  const child = appliance.spawnInside(program, [
    `--kubeconfig=${appliance.kubeconfig}`,
    `--controllers=${flags.controllers}`,
    '--leader-elect-resource-name=upstream-controllers',
    `--service-account-private-key-file=${join(appliance.root, 'etc/origin/master/serviceaccounts.private.key')}`,
    `--root-ca-file=${join(appliance.root, 'etc/origin/master/ca.crt')}`,
    '--use-service-account-credentials=false',
    '--port=0',
    '--secure-port=0',
  ]);
  const log = createWriteStream(join(flags.reports, 'controllers.txt'));
  child.stdout?.pipe(log);
  child.stderr?.pipe(log);
  return child;
}

/** Pods ask the node for names; the answers come from beside the appliance. */
async function startNames(appliance: Appliance): Promise<ChildProcess> {
  const address = await appliance.must(['get', 'nodes', '-o', 'jsonpath={.items[0].status.addresses[0].address}']);
  await appliance.halt('SIGTERM');
  const config = join(appliance.root, 'etc/origin/node/node-config.yaml');
  const kept = (await readFile(config, 'utf8')).split('\n').filter((line) => !line.startsWith('dnsIP:'));
  await writeFile(config, `dnsIP: ${address}\n${kept.join('\n')}`);
  await appliance.start();
  const program = join(import.meta.dirname, 'names.child.ts');
  const child = appliance.spawnInside(process.execPath, [program, kubectls()[0]?.path ?? 'kubectl']);
  child.stdout?.resume();
  child.stderr?.pipe(process.stderr);
  return child;
}

async function main(): Promise<number> {
  const programs = flags.upstream;
  const sources = flags.sources;
  if (programs === undefined || sources === undefined || !existsSync(join(programs, 'e2e.test'))) {
    console.error(
      '--upstream DIR must name a directory with e2e.test, agnhost and sample-apiserver; --sources DIR their source tree',
    );
    return 2;
  }
  const appliance = await Appliance.create();
  let controllers: ChildProcess | undefined;
  let names: ChildProcess | undefined;
  try {
    await mkdir(flags.reports, { recursive: true });
    await appliance.start();
    const archive = join(appliance.root, 'images.tar');
    await writeConformanceImages(archive, { programs, sources });
    const imported = await appliance.hyperedge(['image', 'import', '--root', appliance.root, archive]);
    if (imported.code !== 0) throw new Error(`image import: ${imported.stdout}${imported.stderr}`);
    names = await startNames(appliance);
    controllers = startControllers(appliance, programs);
    if (flags.hold) {
      console.log(JSON.stringify({ root: appliance.root, kubeconfig: appliance.kubeconfig, host: appliance.hostPid }));
      await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
      return 0;
    }
    const groups = flags.group.length > 0 ? flags.group : GROUPS.map((each) => `\\[${each}\\].*\\[Conformance\\]`);
    let failures = 0;
    for (const [index, focus] of groups.entries()) {
      const outcomes = await runGroup(appliance, programs, focus, join(flags.reports, String(index)));
      const failed = outcomes.filter((each) => each.failure !== undefined);
      failures += failed.length + (outcomes.length === 0 ? 1 : 0);
      console.log(
        `${focus}: ${outcomes.length} run, ${outcomes.length - failed.length} passed, ${failed.length} failed`,
      );
      for (const { name, failure } of failed)
        console.log(`  ${name}\n    ${failure?.trim().split('\n').slice(0, 4).join('\n    ')}`);
    }
    return failures === 0 ? 0 : 1;
  } finally {
    controllers?.kill('SIGTERM');
    names?.kill('SIGTERM');
    await appliance.stop();
  }
}

process.exitCode = await main();
