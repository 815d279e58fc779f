/** `hyperedge doctor` of the packaged executable: a healthy appliance, then faults with fixes. */
import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { messageOf } from '../../src/base/errors.ts';
import type { CheckReport, DoctorReport } from '../../src/doctor/port.ts';
import { Appliance, eventually } from './harness.ts';

/** Checks that judge the machine of the tests instead of the appliance. */
const OF_MACHINE = /^(?:disk-space|inodes|memory|write-rate|thermal|journal-size|security-denials|fsync)$/;

const FOUND_MS = 30_000;
const HEALTHY_MS = 120_000;
const isBad = (result: string): boolean => result === 'error' || result === 'unknown';

let host: Appliance;

before(async () => {
  host = await Appliance.create();
  await host.start(90_000);
});
after(() => host.stop());

async function doctor(...ids: readonly string[]): Promise<DoctorReport & { readonly code: number }> {
  const checks = ids.flatMap((id) => ['--check', id]);
  const ran = await host.hyperedge(['doctor', '--root', host.root, '-o', 'json', ...checks], { timeoutMs: 90_000 });
  assert.match(ran.stdout, /^\{/, ran.stderr);
  const report: DoctorReport = JSON.parse(ran.stdout);
  return { ...report, code: ran.code };
}

async function one(id: string): Promise<CheckReport> {
  const [found] = (await doctor(id)).checks;
  assert.ok(found !== undefined);
  return found;
}

async function reports(id: string, evidence: RegExp): Promise<string> {
  // Facts such as operators and deployed files follow a fault after some seconds.
  let last = '';
  const finding = await eventually(`${id} with ${evidence}`, FOUND_MS, async () => {
    const found = await one(id);
    last = JSON.stringify(found);
    return found.findings.find((each) => evidence.test(each.evidence));
  }).catch((error: unknown) => assert.fail(`${messageOf(error)}: ${last}`));
  return finding.fix ?? '';
}

/** Runs a fix in the namespace of the appliance. */
async function apply(fix: string): Promise<void> {
  const ran = await host.inside('sh', ['-c', fix]);
  assert.equal(ran.code, 0, `${fix}: ${ran.stderr}`);
}

test('a healthy appliance has no errors, and no check exceeds its time limit', async () => {
  // A new cluster reports its operators after its first minute.
  const checks = await eventually('a doctor without errors', HEALTHY_MS, async () => {
    const report = await doctor();
    const bad = report.checks.filter(({ id, result }) => isBad(result) && !OF_MACHINE.test(id));
    return bad.length === 0 ? report.checks : undefined;
  });
  // A busy machine may give warnings, such as a slow API server.
  for (const id of ['api', 'kubelet', 'store-quorum', 'host-process', 'kubeconfig', 'certificates', 'ports']) {
    const found = checks.find((each) => each.id === id);
    assert.match(found?.result ?? '', /^(?:ok|warning)$/, JSON.stringify(found));
  }
});

test('the fix of a finding deletes a rule that drops packets of pods', async () => {
  await apply(
    "nft add table ip foreign; nft 'add chain ip foreign f { type filter hook forward priority 0; }'; nft add rule ip foreign f drop",
  );
  const fix = await reports('firewall-forward', /the rule "drop" in chain ip foreign f/);
  await apply(fix);
  assert.equal((await one('firewall-forward')).result, 'ok');
});

test('the fix of a finding opens a firewall that drops packets by its policy', async () => {
  await apply("nft 'add chain ip foreign g { type filter hook forward priority 1; policy drop; }'");
  await apply(await reports('firewall-forward', /chain ip foreign g has the policy drop/));
  assert.equal((await one('firewall-forward')).result, 'ok');
  await apply('nft delete table ip foreign');
});

test('the fix of a finding restricts the mode of a readable key', async () => {
  const key = join(host.root, 'etc/origin/master/admin.key');
  await chmod(key, 0o644);
  await apply(await reports('private-files', /admin\.key/));
  assert.equal((await one('private-files')).result, 'ok');
});

test('reports the name of an invalid manifest in the deploy directory', async () => {
  const listed = await one('deploy-directory');
  const directory = / files in (\/\S+)$/.exec(listed.findings[0]?.evidence ?? '')?.[1];
  assert.ok(directory !== undefined, JSON.stringify(listed));
  await mkdir(directory, { recursive: true });
  const file = join(directory, 'bad.yaml');
  await writeFile(file, 'kind: [\n');
  assert.match(await reports('deploy-directory', /^bad\.yaml: document 1/), /^touch \S+bad\.yaml\.skip /);
  await rm(file);
  assert.equal((await one('deploy-directory')).result, 'ok');
});

test('the fix of a finding saves a snapshot if none exists', async () => {
  await reports('snapshots', /has no snapshot/);
  const saved = await host.hyperedge(['snapshot', 'save', '--root', host.root]);
  assert.equal(saved.code, 0, saved.stderr);
  assert.equal((await one('snapshots')).result, 'ok');
});

test('reports a kubeconfig with a wrong server', async () => {
  const text = await readFile(host.kubeconfig, 'utf8');
  // The host process restores the file when it checks its certificates, so the fault is repeated until it is seen.
  await eventually('the wrong server', 30_000, async () => {
    await writeFile(host.kubeconfig, text.replace(/server: \S+/, 'server: https://127.0.0.1:1'));
    const { findings } = await one('kubeconfig');
    return findings.some(({ evidence }) => /admin\.kubeconfig: https:\/\/127\.0\.0\.1:1: /.test(evidence)) || undefined;
  });
  await writeFile(host.kubeconfig, text);
  assert.equal((await one('kubeconfig')).result, 'ok');
});

test('hyperedge doctor reports a damaged certificate', async () => {
  const file = join(host.root, 'etc/origin/master/kube-scheduler.crt');
  const text = await readFile(file, 'utf8');
  await writeFile(file, await readFile(join(host.root, 'etc/origin/master/admin.crt'), 'utf8'));
  await reports('certificates', /the private key in \S+kube-scheduler\.key belongs to another certificate/);
  await writeFile(file, text);
  assert.equal((await one('certificates')).result, 'ok');
});

test('reports an invalid bootstrap file with its line', async () => {
  const file = join(host.root, 'etc/origin/bootstrap.yaml');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  await writeFile(file, 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nrolls: [node]\n');
  assert.match(await reports('bootstrap-file', /bootstrap\.yaml:3: rolls/), /config check/);
  await (text === undefined ? rm(file) : writeFile(file, text));
  assert.equal((await one('bootstrap-file')).result, 'ok');
});

test('reports a full file system with its sizes', async () => {
  const directory = join(host.root, 'var/log');
  const mounted = await host.inside('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory]);
  assert.equal(mounted.code, 0, mounted.stderr);
  try {
    assert.match(
      await reports('disk-space', /var\/log has .* of 1\.0 MiB free/),
      /image remove --unused.*; du -xh --max-depth=3 \S+var\/log /,
    );
  } finally {
    await host.inside('umount', ['-l', directory]);
  }
});

test('reports a stopped host process, also while another program uses its port', async () => {
  await host.halt('SIGTERM');
  const report = await doctor('host-process', 'ports', 'control-plane');
  assert.equal(report.code, 1);
  assert.match(JSON.stringify(report), /the host process does not run here/);
  const script = 'require("net").createServer().listen(10250, () => console.log("up"))';
  const other = host.spawnInside(process.execPath, ['-e', script]);
  await new Promise((resolve) => other.stdout?.once('data', resolve));
  await apply(
    (await reports('ports', /tcp port 10250 for the kubelet is in use by \S+ \(pid \d+\)/)).replace(/#.*/, ''),
  );
  assert.equal((await one('ports')).result, 'ok');
  await host.start(90_000);
  assert.equal((await one('host-process')).result, 'ok');
});
