/**
 * Runs upstream's end-to-end suite (`e2e.test` of the served Kubernetes release) against an appliance with the packaged
 * executable in a network namespace of its own. Not part of `npm test`: it takes an hour or more and needs root, Go
 * 1.26, and Debian's busybox-static, bind9-dnsutils, netcat-openbsd, curl, iproute2, util-linux and etcd-server for the
 * images.
 *
 *   npm run build && npm run test:conformance -- [--group '\[sig-auth\].*\[Conformance\]']... [--skip REGEX]
 *       [--processes N] [--limit MINUTES] [--reports DIR] [--programs DIR] [--kubectl PATH] [--busybox PATH] [--hosts N]
 *       [--csi [--hostpath PATH]] [--hold]
 *
 * `--busybox`: a static busybox of 1.36 or later. With Debian's, one case fails, because the error message of its
 * image's shell differs. `--hosts 3`: use three lab hosts, each of them master and node, instead of the appliance (with
 * the requirements of `npm run test:lab`). `--csi`: add the sidecars of the mock CSI driver, for `--group 'CSI Mock'`;
 * this uses lab hosts. `--hostpath PATH`: hostpathplugin of kubernetes-csi/csi-driver-host-path, built with
 * `CGO_ENABLED=0 go build -ldflags '-X main.version=v1.17.1' ./cmd/hostpathplugin`, for cases whose driver is a pod.
 * `--programs`: directory for the programs that are built from upstream's module in the first run. `--hold`: keep the
 * cluster until Ctrl-C instead of running the suite.
 *
 * Nodes pull the images from a registry on their loopback address. The results are compared with the release's list of
 * conformance cases (those that `--group` and `--skip` select). The command prints one line per special interest group,
 * per failure, and per listed case that was not run; the exit code is 1 if any case failed or was not run.
 */
import type { ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type ConformanceCluster, createCluster, serveImages } from './conformance/cluster.ts';
import { buildSidecars } from './conformance/csi.ts';
import {
  expectedCases,
  judge,
  type Outcome,
  readConformanceList,
  readReport,
  type Verdict,
} from './conformance/list.ts';
import { buildPrograms, PROGRAMS } from './sources/modules.ts';

const { values: flags } = parseArgs({
  options: {
    group: { type: 'string', multiple: true, default: ['\\[Conformance\\]'] },
    skip: { type: 'string', default: '' },
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

/** Some failures print the status of a pod in one line. */
const SHOWN_LENGTH = 200;

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
    ...(flags.skip === '' ? [] : [`--skip=${flags.skip}`]),
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

/** Resolves however the program ends, because the results are in its report. */
const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', () => resolve());
  });

/**
 * Prints one line per special interest group, one per failure with its first line, and one per listed case that was not
 * run.
 */
function print(outcomes: readonly Outcome[], { passed, failed, notRun }: Verdict): void {
  const groups = Map.groupBy(outcomes, ({ name }) => /\[(sig-[\w-]+)\]/.exec(name)?.[1] ?? 'other');
  for (const [group, ran] of [...groups].sort(([left], [right]) => (left < right ? -1 : 1))) {
    const good = ran.filter(({ failure }) => failure === undefined);
    console.log(`${group}: ${good.length} passed of ${ran.length}`);
  }
  for (const { name, failure } of outcomes)
    if (failure !== undefined)
      console.log(`  failed: ${name}\n    ${failure.trim().split('\n', 1)[0]?.slice(0, SHOWN_LENGTH)}`);
  for (const name of notRun) console.log(`  not run: ${name}`);
  console.log(
    `${outcomes.filter(({ failure }) => failure === undefined).length} passed of ${outcomes.length} that ran`,
  );
  console.log(
    `upstream's list: ${passed.length} passed, ${failed.length} failed, ${notRun.length} not run ` +
      `of ${passed.length + failed.length + notRun.length}`,
  );
}

async function main(): Promise<number> {
  const { bin, sources } = await buildPrograms(flags.programs);
  const expected = expectedCases(await readConformanceList(sources), flags.group, flags.skip);
  const sidecars = flags.csi ? await buildSidecars(flags.programs, flags.hostpath) : undefined;
  const cluster = await createCluster(Number(flags.hosts), flags.csi);
  try {
    await mkdir(flags.reports, { recursive: true });
    const registries = await serveImages(cluster, { programs: bin, sources, busybox: flags.busybox, sidecars });
    try {
      if (flags.hold) {
        console.log(JSON.stringify({ ...cluster.about, repositories: registries.repositories }));
        await new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
        return 0;
      }
      const outcomes: Outcome[] = [];
      const empty: string[] = [];
      for (const [index, focus] of flags.group.entries()) {
        const reports = join(flags.reports, String(index));
        const place = { programs: bin, repositories: registries.repositories };
        const ran = await runGroup(cluster, place, focus, reports);
        if (ran.length === 0) empty.push(focus);
        outcomes.push(...ran);
      }
      const verdict = judge(expected, outcomes);
      print(outcomes, verdict);
      console.log(`pulled ${registries.pulled.size} images: ${[...registries.pulled].sort().join(' ')}`);
      for (const group of empty) console.log(`--group ${group}: ran no case`);
      const good = empty.length === 0 && outcomes.every(({ failure }) => failure === undefined);
      return good && verdict.notRun.length === 0 ? 0 : 1;
    } finally {
      await registries.stop();
    }
  } finally {
    await cluster.stop();
  }
}

process.exitCode = await main();
