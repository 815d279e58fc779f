/**
 * Upstream's own end-to-end suite (`e2e.test` of the Kubernetes release that is served) against an appliance of the packaged executable in a
 * network namespace of its own; nothing of upstream's runs beside it. Not part of `npm test`: it takes an hour or more, root, Go 1.26 and Debian's
 * busybox-static, bind9-dnsutils, netcat-openbsd, curl, iproute2, util-linux and etcd-server for the images.
 *
 *   npm run build && npm run test:conformance -- [--group '\[sig-auth\].*\[Conformance\]']... [--skip REGEX] [--processes N]
 *       [--limit MINUTES] [--reports DIR] [--programs DIR] [--kubectl PATH] [--busybox PATH] [--hosts N]
 *       [--csi [--hostpath PATH]] [--hold]
 *
 * `--busybox`: a static one of 1.36 or later; with Debian's, one case expects another error message than the shell of its image prints.
 * `--hosts 3` runs it against three masters of the lab, each of them a node too, in place of the appliance (with what `npm run test:lab` needs).
 * `--csi`: with the sidecars of the mock CSI driver, for `--group 'CSI Mock'`; hosts are those of the lab. `--hostpath PATH`: hostpathplugin of
 * kubernetes-csi/csi-driver-host-path, built with `CGO_ENABLED=0 go build -ldflags '-X main.version=v1.17.1' ./cmd/hostpathplugin`, for the cases
 * whose driver is a pod.
 * `--programs` holds what upstream's module is built to, the first time. `--hold` keeps the appliance until Ctrl-C instead of running anything.
 * It ends with one line a special interest group and one a failure; exit code 1 when anything failed.
 */
import type { ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type ConformanceCluster, createCluster, prepareImages } from './conformance-cluster.ts';
import { buildSidecars } from './conformance-csi.ts';
import { buildPrograms, PROGRAMS } from './modules.ts';

const { values: flags } = parseArgs({
  options: {
    group: { type: 'string', multiple: true, default: ['\\[Conformance\\]'] },
    skip: { type: 'string', default: '\\[Disruptive\\]' },
    processes: { type: 'string', default: '4' },
    limit: { type: 'string', default: '120' },
    reports: { type: 'string', default: '/tmp/hyperedge-conformance' },
    programs: { type: 'string', default: PROGRAMS },
    kubectl: { type: 'string' },
    busybox: { type: 'string' },
    hosts: { type: 'string', default: '1' },
    csi: { type: 'boolean', default: false },
    hostpath: { type: 'string' },
    hold: { type: 'boolean', default: false },
  },
});

interface Outcome {
  readonly name: string;
  readonly failure: string | undefined;
}

/** What a JUnit report of the suite says; specs that were filtered out are not in it. */
function readReport(xml: string): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const [, attributes = '', body = ''] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const name = /\bname="([^"]*)"/.exec(attributes)?.[1] ?? '?';
    const status = /\bstatus="([^"]*)"/.exec(attributes)?.[1] ?? 'passed';
    if (status === 'skipped' || status === 'pending' || !name.startsWith('[It]')) continue;
    const message = /<(?:failure|error)[^>]*>([^<]*)/.exec(body)?.[1];
    outcomes.push({ name: plain(name), failure: status === 'passed' ? undefined : plain(message ?? status) });
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

async function runGroup(
  cluster: ConformanceCluster,
  { programs, repositories }: { readonly programs: string; readonly repositories: string },
  focus: string,
  reports: string,
): Promise<Outcome[]> {
  await rm(reports, { recursive: true, force: true });
  await mkdir(reports, { recursive: true });
  const child = cluster.spawnInside('nice', [
    'env',
    `KUBE_TEST_REPO_LIST=${repositories}`,
    join(programs, 'ginkgo'),
    `--procs=${flags.processes}`,
    `--focus=${focus}`,
    `--skip=${flags.skip}`,
    `--timeout=${flags.limit}m`,
    '--no-color',
    '--silence-skips',
    join(programs, 'e2e.test'),
    '--',
    '--provider=skeleton',
    `--kubeconfig=${cluster.kubeconfig}`,
    `--kubectl-path=${flags.kubectl ?? join(programs, 'kubectl')}`,
    `--report-dir=${reports}`,
    '--disable-log-dump',
    `--num-nodes=${cluster.nodes}`,
    '--allowed-not-ready-nodes=0',
  ]);
  const log = createWriteStream(join(reports, 'log.txt'));
  child.stdout?.pipe(log);
  child.stderr?.pipe(log);
  await ended(child);
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

/** One line a special interest group, then one a failure with its first line. */
function print(outcomes: readonly Outcome[]): void {
  const groups = Map.groupBy(outcomes, ({ name }) => /\[(sig-[\w-]+)\]/.exec(name)?.[1] ?? 'other');
  for (const [group, ran] of [...groups].sort(([left], [right]) => (left < right ? -1 : 1))) {
    const failed = ran.filter((each) => each.failure !== undefined);
    console.log(`${group}: ${ran.length - failed.length} passed of ${ran.length}`);
  }
  for (const { name, failure } of outcomes)
    if (failure !== undefined) console.log(`  ${name}\n    ${failure.trim().split('\n', 1)[0]}`);
}

async function main(): Promise<number> {
  const { bin, sources } = await buildPrograms(flags.programs);
  const sidecars = flags.csi ? await buildSidecars(flags.programs, flags.hostpath) : undefined;
  const cluster = await createCluster(Number(flags.hosts), flags.csi);
  try {
    await mkdir(flags.reports, { recursive: true });
    const repositories = await prepareImages(cluster, { programs: bin, sources, busybox: flags.busybox, sidecars });
    if (flags.hold) {
      console.log(JSON.stringify(cluster.about));
      await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
      return 0;
    }
    const outcomes: Outcome[] = [];
    for (const [index, focus] of flags.group.entries()) {
      const reports = join(flags.reports, String(index));
      outcomes.push(...(await runGroup(cluster, { programs: bin, repositories }, focus, reports)));
    }
    print(outcomes);
    console.log(`${outcomes.filter(({ failure }) => failure === undefined).length} passed of ${outcomes.length}`);
    return outcomes.length > 0 && outcomes.every(({ failure }) => failure === undefined) ? 0 : 1;
  } finally {
    await cluster.stop();
  }
}

process.exitCode = await main();
