/**
 * A host for drills of the doctor: an appliance with a link to a second namespace, which has the gateway and a registry.
 * A fault is provoked, the doctor must report it, and the printed fix, run by a shell, must remove the finding.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../../../src/base/errors.ts';
import type { CheckReport, DoctorReport, Finding } from '../../../src/doctor/port.ts';
import { Appliance, eventually, executable, type Ran, run } from '../harness.ts';

/** Where the commands of a fault run: with the host's files, or with a copy of /etc and other directories. */
export type Place = 'host' | 'copy';

export interface Fault {
  /** Identifier of the check. */
  readonly id: string;
  /** Description of the fault, as in the table of docs/doctor.md. */
  readonly what: string;
  readonly place?: Place;
  readonly provoke: (drill: Drill) => Promise<void>;
  /** The fault is provoked again until the doctor reports it. */
  readonly provokesAgain?: true;
  readonly evidence: RegExp;
  /** The fix, as in the table of docs/doctor.md, with `…` for a part that differs. */
  readonly fix: string;
  /** Runs before the fix, for example to provide a program that the host of the test does not have. */
  readonly prepare?: (drill: Drill) => Promise<void>;
  /** The fix starts the host process, which stays in the foreground of the shell. */
  readonly starts?: true;
  /** Removes what the fault has left. */
  readonly cleanUp?: (drill: Drill) => Promise<void>;
}

export const GATEWAY = '10.88.0.254';
export const ADDRESS = '10.88.0.1';
/** Registry with plain HTTP, and one with TLS and an authority of its own. */
export const PLAIN_REGISTRY = `${GATEWAY}:5000`;
export const TLS_REGISTRY = `${GATEWAY}:5443`;

const SIZE = 1 << 30;
const FOUND_MS = 90_000;
const GONE_MS = 120_000;
const FIX_MS = 60_000;
const SERVER = fileURLToPath(new URL('./registry.child.ts', import.meta.url));

export class Drill {
  readonly host: Appliance;
  readonly scratch: string;
  readonly #children: ChildProcess[] = [];
  readonly #copy: ChildProcess;
  readonly #peer: ChildProcess;

  private constructor(host: Appliance, scratch: string, copy: ChildProcess, peer: ChildProcess) {
    this.host = host;
    this.scratch = scratch;
    this.#copy = copy;
    this.#peer = peer;
  }

  static async create(): Promise<Drill> {
    const scratch = await mkdtemp(join(tmpdir(), 'he-doctor-'));
    const root = join(scratch, 'root');
    await mkdir(root);
    // A disk of its own, whose size can be changed.
    must(await run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},nr_inodes=200000`, 'tmpfs', root]), 'mount');
    const host = await Appliance.create({ root });
    const within = ['-t', String(host.holderPid), '-n', 'unshare', '--mount', '--propagation', 'slave'];
    const copy = spawn('nsenter', [...within, 'sleep', 'infinity'], { stdio: 'ignore' });
    const peer = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' });
    const drill = new Drill(host, scratch, copy, peer);
    await left(copy, 'mnt');
    await left(peer, 'net');
    await drill.#network();
    await drill.#copies();
    await drill.#stubs();
    await mkdir(join(root, 'etc/origin'), { recursive: true });
    await writeFile(
      join(root, 'etc/origin/bootstrap.yaml'),
      `apiVersion: hyperedge.dev/v1
kind: Bootstrap
node: {name: pi-1}
registries:
  ${PLAIN_REGISTRY}: {insecure: true}
  docker.io: {mirrors: ['${TLS_REGISTRY}']}
`,
      { mode: 0o600 },
    );
    return drill;
  }

  get root(): string {
    return this.host.root;
  }

  /** Starts the registry of the second namespace with an image of the archive. */
  async serve(archive: string, tls: { readonly cert: string; readonly key: string }): Promise<void> {
    const files = join(this.scratch, 'registry');
    await mkdir(files);
    must(await run('tar', ['-xf', archive, '-C', files]), 'tar');
    const child = spawn(
      'nsenter',
      ['-t', String(this.#peer.pid), '-n', process.execPath, SERVER, files, tls.cert, tls.key],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    this.#children.push(child);
    await new Promise((resolve) => child.stdout.once('data', resolve));
  }

  /** Runs a script as a user does who pastes it into a shell. */
  shell(script: string, place: Place = 'host', timeoutMs = FIX_MS): Promise<Ran> {
    return run('nsenter', this.#enter(place, ['sh', '-c', script]), { ...this.#options, timeoutMs });
  }

  async must(script: string, place: Place = 'host'): Promise<string> {
    return must(await this.shell(script, place), script);
  }

  /** Starts a script that stays in the foreground of its shell. */
  start(script: string): ChildProcess {
    const child = spawn('nsenter', this.#enter('host', ['sh', '-c', script]), {
      stdio: 'ignore',
      env: { ...process.env, ...this.#options.env },
      cwd: this.scratch,
    });
    this.#children.push(child);
    return child;
  }

  async report(id: string, place: Place = 'host'): Promise<CheckReport> {
    const args = [executable, 'doctor', '--root', this.root, '-o', 'json', '--check', id];
    const ran = await run('nsenter', this.#enter(place, args), { ...this.#options, timeoutMs: 120_000 });
    assert.match(ran.stdout, /^\{/, ran.stderr);
    const { checks }: DoctorReport = JSON.parse(ran.stdout);
    const [found] = checks;
    assert.ok(found !== undefined);
    return found;
  }

  async #finding(fault: Fault): Promise<{ readonly finding: Finding | undefined; readonly report: CheckReport }> {
    const report = await this.report(fault.id, fault.place);
    const finding = report.findings.find(({ result, evidence }) => result !== 'ok' && fault.evidence.test(evidence));
    return { report, finding };
  }

  /** Provokes a fault, applies the printed fix and waits until the doctor does not report it. */
  async drill(fault: Fault): Promise<void> {
    let last = '';
    const see = async (isFound: boolean): Promise<Finding | true | undefined> => {
      const { finding, report } = await this.#finding(fault);
      last = JSON.stringify(report);
      if (isFound) {
        // The host process may have replaced the file, for example after the previous fault changed the addresses.
        if (finding === undefined && fault.provokesAgain === true) await fault.provoke(this);
        return finding;
      }
      // A fact that cannot be gathered is no success.
      return finding === undefined && report.result !== 'unknown' ? true : undefined;
    };
    const expect = (what: string, limitMs: number, isFound: boolean) =>
      eventually(what, limitMs, () => see(isFound)).catch((error: unknown) =>
        assert.fail(`${fault.id}: ${messageOf(error)}: ${last}`),
      );
    await fault.provoke(this);
    const finding = await expect('the finding', FOUND_MS, true);
    assert.ok(typeof finding === 'object');
    const fix = finding.fix ?? '';
    assert.match(fix, pattern(fault.fix), `${fault.id}: the table of docs/doctor.md has another fix`);
    // A value that the user must replace would end in a shell as a missing file or an unknown host.
    assert.doesNotMatch(fix.replace(/ {4}# .*/, ''), /\b[A-Z]{4,}\b(?!=)/, `${fault.id}: a placeholder`);
    await fault.prepare?.(this);
    const before = fault.starts === true ? await this.#hostProcess() : undefined;
    if (fault.starts === true) this.start(fix);
    else {
      const ran = await this.shell(fix, fault.place);
      assert.equal(ran.code, 0, `${fault.id}: ${fix}: ${ran.stdout}${ran.stderr}`);
    }
    await expect(`no finding after: ${fix}`, GONE_MS, false);
    // Some findings end as soon as a file is written, before the restart.
    if (fault.starts === true)
      await eventually('the started host process', GONE_MS, async () => {
        const pid = await this.#hostProcess();
        return pid === undefined || pid === before ? undefined : true;
      });
    await fault.cleanUp?.(this);
  }

  /** Process ID of the host process; undefined if it does not answer. */
  async #hostProcess(): Promise<string | undefined> {
    const { findings } = await this.report('host-process');
    return /^pid (\d+)/.exec(findings[0]?.evidence ?? '')?.[1];
  }

  /** Stops the host process, also one that a fix has started. */
  async stopHost(signal: 'TERM' | 'KILL'): Promise<void> {
    const pid = await this.#hostProcess();
    assert.ok(pid !== undefined, 'the host process runs');
    await this.must(`kill -${signal} ${pid}; while kill -0 ${pid} 2>/dev/null; do sleep 0.2; done`);
  }

  async stop(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    await this.host.stop();
    this.#copy.kill('SIGKILL');
    this.#peer.kill('SIGKILL');
    await run('umount', ['-l', this.root]);
    await rm(this.scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  get #options() {
    return { env: { PATH: `${join(this.scratch, 'bin')}:${process.env['PATH']}`, HOME: this.scratch } };
  }

  #enter(place: Place, command: readonly string[]): string[] {
    const target =
      place === 'host' ? ['-t', String(this.host.holderPid), '-n'] : ['-t', String(this.#copy.pid), '-n', '-m'];
    return [...target, `--wd=${this.scratch}`, ...command];
  }

  async #network(): Promise<void> {
    const peer = `nsenter -t ${this.#peer.pid} -n ip`;
    await this.must(
      `ip link add eth0 type veth peer name eth0 netns ${this.#peer.pid}
      ip addr add ${ADDRESS}/24 dev eth0 && ip link set eth0 up
      ${peer} addr add ${GATEWAY}/24 dev eth0 && ${peer} link set eth0 up && ${peer} link set lo up
      ip route add default via ${GATEWAY} dev eth0 metric 100`,
    );
  }

  async #copies(): Promise<void> {
    const at = join(this.scratch, 'copies');
    await this.must(
      `mkdir -p ${at}/journal/0 ${at}/authorities ${at}/up ${at}/work
      mount -t overlay overlay -o lowerdir=/etc,upperdir=${at}/up,workdir=${at}/work /etc
      mkdir -p /var/log/journal && mount --bind ${at}/journal /var/log/journal
      mkdir -p /usr/local/share/ca-certificates && mount --bind ${at}/authorities /usr/local/share/ca-certificates`,
      'copy',
    );
  }

  /** Creates stubs of programs that hosts of users have and the host of the test lacks. */
  async #stubs(): Promise<void> {
    const bin = join(this.scratch, 'bin');
    await mkdir(bin);
    await writeFile(join(bin, 'systemctl'), '#!/bin/sh\n');
    await chmod(join(bin, 'systemctl'), 0o755);
  }
}

/** Waits until the process is in another namespace of the type `namespace` than this process. */
async function left({ pid }: ChildProcess, namespace: string): Promise<void> {
  const ours = await readlink(`/proc/self/ns/${namespace}`);
  await eventually(`a new ${namespace} namespace`, 10_000, async () =>
    (await readlink(`/proc/${pid}/ns/${namespace}`)) === ours ? undefined : true,
  );
}

export function must(ran: Ran, what: string): string {
  assert.equal(ran.code, 0, `${what}: ${ran.stdout}${ran.stderr}`);
  return ran.stdout;
}

/** Pattern of a fix in which `…` is any text. */
export const pattern = (fix: string): RegExp =>
  new RegExp(
    `^${fix
      .split('…')
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('.+')}$`,
    's',
  );
