/** Faults that are real: file systems, sockets, firewall rules, links and certificates. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { CheckReport, DoctorReport } from '../../../src/doctor/port.ts';
import { HungFileSystem } from '../../support/hung-file-system.ts';

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

interface Answer {
  readonly code: number;
  readonly report: DoctorReport;
}

/** Runs the command in a network namespace of its own, after `setup`, a shell script. */
function doctor(root: string, ids: readonly string[], setup = ':'): Promise<Answer> {
  const checks = ids.map((id) => `--check ${id}`).join(' ');
  const script = `ip link set lo up && ${setup} && exec "$0" "$1" doctor --root "$2" -o json ${checks}`;
  return new Promise((resolve, reject) => {
    execFile('unshare', ['--net', 'sh', '-c', script, process.execPath, main, root], (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code);
      try {
        resolve({ code, report: JSON.parse(stdout) });
      } catch {
        reject(new Error(`exit ${code}: ${stdout}${stderr}`));
      }
    });
  });
}

function check({ report }: Answer, id: string): CheckReport {
  const found = report.checks.find((each) => each.id === id);
  assert.ok(found !== undefined, id);
  return found;
}

async function withRoot(body: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'doctor-real-'));
  try {
    await body(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

test('reports a full file system with its sizes', () =>
  withRoot(async (root) => {
    const directory = join(root, 'var/lib/origin');
    await mkdir(directory, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,nr_inodes=40', 'tmpfs', directory]);
    try {
      await writeFile(join(directory, 'filler'), Buffer.alloc(1000 * 1024));
      for (let at = 0; at < 37; at++) await writeFile(join(directory, `file-${at}`), '');
      const answer = await doctor(root, ['disk-space', 'inodes', 'file-system']);
      assert.equal(answer.code, 1);
      assert.match(check(answer, 'disk-space').findings[0]?.evidence ?? '', /var\/lib\/origin has .* of 1\.0 MiB free/);
      assert.match(check(answer, 'inodes').findings[0]?.evidence ?? '', /of 40 inodes free/);
      assert.match(JSON.stringify(check(answer, 'file-system')), /is on tmpfs at .*lost at a boot/);
    } finally {
      execFileSync('umount', [directory]);
    }
  }));

test('a disk that does not answer makes checks unknown and delays no other check', { timeout: 120_000 }, () =>
  withRoot(async (root) => {
    const hung = await HungFileSystem.mount(join(root, 'var/lib/origin'));
    try {
      const answer = await doctor(root, ['disk-space', 'fsync', 'memory-cgroup', 'bootstrap-file']);
      assert.equal(check(answer, 'memory-cgroup').result, 'ok');
      assert.equal(check(answer, 'disk-space').result, 'unknown');
      assert.match(check(answer, 'fsync').findings[0]?.evidence ?? '', /var\/lib\/origin: .*no answer within/);
      assert.equal(answer.code, 3);
    } finally {
      await hung.release();
    }
  }),
);

test('reports a port in use with its owner', () =>
  withRoot(async (root) => {
    const server = `const s=require("net").createServer().listen(10250,()=>console.log(1))`;
    const answer = await doctor(root, ['ports'], `{ "$0" -e '${server}' >/dev/null 2>&1 </dev/null & sleep 2; }`);
    const { findings } = check(answer, 'ports');
    assert.match(findings[0]?.evidence ?? '', /tcp port 10250 for the kubelet is in use by \S+ \(pid \d+\)/);
    assert.match(findings[0]?.fix ?? '', /^kill \d+/);
    const pid = Number(/kill (\d+)/.exec(findings[0]?.fix ?? '')?.[1]);
    process.kill(pid);
  }));

test('reports rules that drop packets of pods or packets to ports', () =>
  withRoot(async (root) => {
    const rules = [
      'add table ip foreign',
      'add chain ip foreign pass { type filter hook forward priority 0; policy drop; }',
      'add chain ip foreign incoming { type filter hook input priority 0; policy accept; }',
      'add chain ip foreign sub',
      'add rule ip foreign incoming jump sub',
      'add rule ip foreign sub tcp dport 10250 drop',
      'add table inet other',
      'add chain inet other f { type filter hook forward priority 10; policy accept; }',
      'add rule inet other f iifname hyper0 counter drop',
    ];
    const setup = rules.map((rule) => `nft '${rule}'`).join(' && ');
    const answer = await doctor(root, ['firewall-forward', 'firewall-input'], setup);
    assert.equal(answer.code, 1);
    const forward = check(answer, 'firewall-forward').findings;
    assert.match(JSON.stringify(forward), /chain ip foreign pass has the policy drop/);
    assert.ok(forward[0]?.fix?.startsWith('nft insert rule ip foreign pass iifname'), JSON.stringify(forward));
    const input = check(answer, 'firewall-input').findings[0];
    assert.match(
      input?.evidence ?? '',
      /"tcp dport 10250 drop" in chain ip foreign sub drops packets to 10250\/tcp \(the kubelet\)/,
    );
    assert.match(input?.fix ?? '', /^nft delete rule ip foreign sub handle \d+$/);
  }));

test('the checks of a host without firewall rules succeed', () =>
  withRoot(async (root) => {
    const empty = await doctor(root, ['firewall-forward', 'firewall-input']);
    assert.equal(empty.code, 0, JSON.stringify(empty.report));
  }));

test('reports an address of the host that another machine on the link uses', { timeout: 60_000 }, () =>
  withRoot(async (root) => {
    const setup = [
      'ip link add va0 type veth peer name vb0',
      'ip link set vb0 addrgenmode none up',
      'ip addr add fd00::7/64 dev vb0 nodad',
      'ip link set va0 mtu 1400 up',
      'ip addr add fd00::7/64 dev va0',
      'sleep 2',
    ].join(' && ');
    const answer = await doctor(root, ['duplicate-address'], setup);
    assert.match(JSON.stringify(check(answer, 'duplicate-address')), /fd00::7 on va0 belongs to another machine too/);
  }),
);

test('reports an expired certificate, a certificate of another CA and an unreadable certificate', () =>
  withRoot(async (root) => {
    const directory = join(root, 'etc/origin/master');
    await mkdir(directory, { recursive: true });
    const openssl = (...args: string[]): void => {
      execFileSync('openssl', args, { cwd: directory, stdio: 'ignore' });
    };
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=authority', '-days', '90');
    for (const name of ['admin', 'master.server']) {
      openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
      const days = name === 'admin' ? '-1' : '90';
      openssl(
        'x509',
        '-req',
        '-in',
        `${name}.csr`,
        '-CA',
        'ca.crt',
        '-CAkey',
        'ca.key',
        '-days',
        days,
        '-out',
        `${name}.crt`,
      );
    }
    openssl('req', '-x509', ...key, '-keyout', 'other.key', '-out', 'kube-scheduler.crt', '-subj', '/CN=stranger');
    await writeFile(join(directory, 'kube-scheduler.key'), 'none');
    const answer = await doctor(root, ['certificates', 'certificate-chain']);
    const text = JSON.stringify(answer.report);
    assert.equal(answer.code, 1, text);
    assert.match(text, /admin\.crt expired on /);
    assert.match(text, /kube-scheduler\.crt: not readable as a certificate with its key/);
    assert.doesNotMatch(text, /master\.server\.crt/);
  }));

test('reports an invalid manifest in the deploy directory with its document', () =>
  withRoot(async (root) => {
    const directory = join(root, 'var/lib/origin/manifests');
    await mkdir(directory, { recursive: true });
    await mkdir(join(root, 'etc/origin'), { recursive: true });
    await writeFile(
      join(directory, 'bad.yaml'),
      'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n---\nkind: [\n',
    );
    await writeFile(
      join(root, 'etc/origin/bootstrap.yaml'),
      `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nmanifests: { directory: ${directory} }\n`,
    );
    const answer = await doctor(root, ['deploy-directory']);
    assert.equal(answer.code, 1, JSON.stringify(answer.report));
    assert.match(check(answer, 'deploy-directory').findings[0]?.evidence ?? '', /^bad\.yaml: document 2: /);
  }));
