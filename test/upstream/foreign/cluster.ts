/**
 * A cluster of upstream's components in one network namespace: controller manager (every controller with its own
 * service account), scheduler, kubelet with Debian's containerd, and kube-proxy. API server and store are this
 * project's, or upstream's with Debian's etcd for comparison. `stop` removes everything.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, readlink, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { busyboxLayer, writeDockerArchive } from '../../../build/docker-archive.ts';
import { eventually, executable, type Ran, run } from '../../e2e/harness.ts';
import { enrolment, writeCredentials } from './credentials.ts';

const ADDRESS = '10.79.0.1';
const SERVER = `https://${ADDRESS}:6443`;
const PODS = '10.244.0.0/16';
const SERVICES = '10.96.0.0/16';
const NODE = 'node1';
/** Namespace of all workloads. */
export const NAMESPACE = 'foreign';
export const IMAGE = 'lab.local/busybox:1';
const SANDBOX = 'lab.local/sandbox:1';
const CGROUPS = '/sys/fs/cgroup';

type Component =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'containerd';

export class ForeignCluster {
  readonly #directory: string;
  readonly #programs: string;
  readonly #baseline: boolean;
  readonly #holder: ChildProcess;
  readonly #running = new Map<Component, ChildProcess>();

  private constructor(directory: string, programs: string, baseline: boolean, holder: ChildProcess) {
    this.#directory = directory;
    this.#programs = programs;
    this.#baseline = baseline;
    this.#holder = holder;
  }

  /** `programs`: directory of upstream's binaries. `baseline`: use upstream's API server too. */
  static async create(programs: string, baseline: boolean): Promise<ForeignCluster> {
    const directory = await mkdtemp(join(tmpdir(), 'he-foreign-'));
    const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' });
    const ours = await readlink('/proc/self/ns/net');
    await eventually('network namespace', 10_000, async () =>
      (await readlink(`/proc/${holder.pid}/ns/net`)) === ours ? undefined : true,
    );
    return new ForeignCluster(directory, programs, baseline, holder);
  }

  #at(...names: readonly string[]): string {
    return join(this.#directory, ...names);
  }

  inside(file: string, args: readonly string[], input?: string): Promise<Ran> {
    return run('nsenter', ['-t', String(this.#holder.pid), '-n', file, ...args], {
      timeoutMs: 120_000,
      ...(input === undefined ? {} : { input }),
    });
  }

  kubectl(args: readonly string[], input?: string, program = 'kubectl'): Promise<Ran> {
    // The discovery cache must not be shared between servers at the same address.
    const own = ['--kubeconfig', this.#at('admin.conf'), '--cache-dir', this.#at('discovery')];
    return this.inside(program, [...own, ...args], input);
  }

  /** Log of a component. */
  log(component: Component): Promise<string> {
    return readFile(this.#at(`${component}.log`), 'utf8');
  }

  async start(): Promise<void> {
    await this.#succeed('ip', ['link', 'set', 'lo', 'up']);
    await this.#succeed('ip', ['link', 'add', 'lab0', 'type', 'bridge']);
    await this.#succeed('ip', ['addr', 'add', `${ADDRESS}/24`, 'dev', 'lab0']);
    await this.#succeed('ip', ['link', 'set', 'lab0', 'up']);
    await this.#succeed('ip', ['route', 'add', 'default', 'via', ADDRESS]);
    await writeCredentials(this.#directory, SERVER, ADDRESS);
    await this.#startApi();
    this.startManager('leases');
    this.startScheduler('leases');
    const enrolled = { apiVersion: 'v1', kind: 'List', items: enrolment() };
    const made = await this.kubectl(['create', '-f', '-'], JSON.stringify(enrolled));
    if (made.code !== 0) throw new Error(made.stderr);
    await this.#startRuntime();
    await this.startKubelet();
    this.#start('kube-proxy', this.#upstream('kube-proxy'), [
      `--kubeconfig=${this.#at('proxy.conf')}`,
      '--proxy-mode=iptables',
      `--hostname-override=${NODE}`,
      `--cluster-cidr=${PODS}`,
      '--conntrack-max-per-core=0',
      '--conntrack-tcp-timeout-established=0',
      '--conntrack-tcp-timeout-close-wait=0',
      '--oom-score-adj=0',
    ]);
  }

  async stop(): Promise<void> {
    for (const component of [...this.#running.keys()]) if (component !== 'containerd') await this.end(component);
    await this.#endPods();
    await this.end('containerd');
    this.#holder.kill('SIGKILL');
    const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
    for (const mount of mounts.reverse()) if (mount.startsWith(this.#directory)) await run('umount', ['-l', mount]);
    for (const root of await this.#cgroupRoots()) await removeCgroup(root);
    await rm(this.#directory, { recursive: true, force: true });
    // The kubelet always writes its logs below /var/log.
    for (const place of ['pods', 'containers']) await removeLogs(join('/var/log', place));
  }

  /** Stops a component and waits for its end. */
  async end(component: Component): Promise<void> {
    const child = this.#running.get(component);
    if (child === undefined) return;
    this.#running.delete(component);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(late);
  }

  startManager(lock: string): void {
    this.#start('kube-controller-manager', this.#upstream('kube-controller-manager'), [
      ...this.#managed('kcm', lock),
      `--root-ca-file=${this.#at('ca.crt')}`,
      `--service-account-private-key-file=${this.#at('sa.key')}`,
      `--cluster-signing-cert-file=${this.#at('ca.crt')}`,
      `--cluster-signing-key-file=${this.#at('ca.key')}`,
      '--use-service-account-credentials',
      '--controllers=*,bootstrapsigner,tokencleaner',
      '--feature-gates=TTLAfterFinished=true',
      '--allocate-node-cidrs',
      `--cluster-cidr=${PODS}`,
      `--service-cluster-ip-range=${SERVICES}`,
      '--horizontal-pod-autoscaler-sync-period=5s',
    ]);
  }

  startScheduler(lock: string): void {
    this.#start('kube-scheduler', this.#upstream('kube-scheduler'), this.#managed('scheduler', lock));
  }

  async startKubelet(): Promise<void> {
    this.#start('kubelet', this.#upstream('kubelet'), [
      `--config=${this.#at('kubelet.yaml')}`,
      `--kubeconfig=${this.#at('kubelet.conf')}`,
      `--bootstrap-kubeconfig=${this.#at('bootstrap.conf')}`,
      `--cert-dir=${this.#at('kubelet', 'pki')}`,
      `--root-dir=${this.#at('kubelet')}`,
      '--container-runtime=remote',
      `--container-runtime-endpoint=unix://${this.#at('c.sock')}`,
      `--hostname-override=${NODE}`,
      `--node-ip=${ADDRESS}`,
      '-v=4',
    ]);
  }

  #managed(name: string, lock: string): string[] {
    const config = this.#at(`${name}.conf`);
    return [
      `--kubeconfig=${config}`,
      `--authentication-kubeconfig=${config}`,
      `--authorization-kubeconfig=${config}`,
      '--leader-elect',
      `--leader-elect-resource-lock=${lock}`,
      '--bind-address=127.0.0.1',
      '--port=0',
      '-v=4',
    ];
  }

  #upstream(program: string): string {
    return join(this.#programs, program);
  }

  #start(component: Component, program: string, args: readonly string[]): void {
    const child = spawn('nsenter', ['-t', String(this.#holder.pid), '-n', program, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const log = createWriteStream(this.#at(`${component}.log`), { flags: 'a' });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    child.on('error', (error) => log.write(`${error.message}\n`));
    this.#running.set(component, child);
  }

  async #succeed(file: string, args: readonly string[]): Promise<void> {
    const { code, stderr } = await this.inside(file, args);
    if (code !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr}`);
  }

  async #startApi(): Promise<void> {
    const link = async (name: string): Promise<string> => {
      await symlink(executable, this.#at(name));
      return this.#at(name);
    };
    const store = 'http://127.0.0.1:2379';
    this.#start('etcd', this.#baseline ? 'etcd' : await link('etcd'), [
      `--data-dir=${this.#at('data')}`,
      `--listen-client-urls=${store}`,
      `--advertise-client-urls=${store}`,
    ]);
    const api = this.#baseline ? this.#upstream('kube-apiserver') : await link('kube-apiserver');
    this.#start('kube-apiserver', api, [
      `--etcd-servers=${store}`,
      `--bind-address=${ADDRESS}`,
      `--advertise-address=${ADDRESS}`,
      '--secure-port=6443',
      `--tls-cert-file=${this.#at('apiserver.crt')}`,
      `--tls-private-key-file=${this.#at('apiserver.key')}`,
      `--client-ca-file=${this.#at('ca.crt')}`,
      `--kubelet-client-certificate=${this.#at('to-kubelet.crt')}`,
      `--kubelet-client-key=${this.#at('to-kubelet.key')}`,
      `--kubelet-certificate-authority=${this.#at('ca.crt')}`,
      '--kubelet-preferred-address-types=InternalIP',
      '--enable-bootstrap-token-auth',
      '--authorization-mode=Node,RBAC',
      '--enable-admission-plugins=NodeRestriction',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${this.#at('sa.pub')}`,
      `--service-account-signing-key-file=${this.#at('sa.key')}`,
      `--service-cluster-ip-range=${SERVICES}`,
      '--allow-privileged=true',
      '--feature-gates=TTLAfterFinished=true',
    ]);
    await eventually('the API server', 60_000, async () =>
      (await this.kubectl(['get', '--raw', '/readyz'])).stdout === 'ok' ? true : undefined,
    );
  }

  async #startRuntime(): Promise<void> {
    await mkdir(this.#at('cni'));
    await mkdir(this.#at('static'));
    const cri = 'plugins."io.containerd.grpc.v1.cri"';
    await writeFile(
      this.#at('containerd.toml'),
      `version = 2\nroot = "${this.#at('images')}"\nstate = "${this.#at('state')}"\n[grpc]\naddress = "${this.#at('c.sock')}"\n` +
        `[${cri}]\nsandbox_image = "${SANDBOX}"\nrestrict_oom_score_adj = true\ndisable_apparmor = true\n` +
        `[${cri}.cni]\nbin_dir = "/usr/lib/cni"\nconf_dir = "${this.#at('cni')}"\n` +
        `[${cri}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n`,
    );
    const ipam = { type: 'host-local', dataDir: this.#at('ipam'), ranges: [[{ subnet: '10.244.0.0/24' }]] };
    const bridge = { type: 'bridge', bridge: 'cni0', isGateway: true, hairpinMode: true };
    await writeFile(
      this.#at('cni', '10.conflist'),
      JSON.stringify({
        cniVersion: '0.4.0',
        name: 'lab',
        plugins: [{ ...bridge, ipam: { ...ipam, routes: [{ dst: '0.0.0.0/0' }] } }],
      }),
    );
    const authorities = { x509: { clientCAFile: this.#at('ca.crt') } };
    await writeFile(
      this.#at('kubelet.yaml'),
      JSON.stringify({
        apiVersion: 'kubelet.config.k8s.io/v1beta1',
        kind: 'KubeletConfiguration',
        authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, ...authorities },
        authorization: { mode: 'Webhook' },
        cgroupDriver: 'cgroupfs',
        cgroupRoot: `/${this.#cgroupName}`,
        rotateCertificates: true,
        serverTLSBootstrap: true,
        failSwapOn: false,
        staticPodPath: this.#at('static'),
        nodeStatusUpdateFrequency: '4s',
        imageGCHighThresholdPercent: 100,
        evictionHard: { 'memory.available': '10Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
        oomScoreAdj: 0,
      }),
    );
    for (const root of await this.#cgroupRoots()) await makeCgroup(root);
    const layer = await busyboxLayer();
    const archive = this.#at('images.tar');
    const sleep = { Entrypoint: ['/bin/sleep', '2147483647'] };
    await writeDockerArchive(archive, [
      { tag: IMAGE, layers: [layer], config: { Env: ['PATH=/bin'] } },
      { tag: SANDBOX, layers: [layer], config: sleep },
    ]);
    this.#start('containerd', 'containerd', ['-c', this.#at('containerd.toml')]);
    await eventually('containerd', 30_000, async () => {
      const imported = await run('ctr', ['-a', this.#at('c.sock'), '-n', 'k8s.io', 'images', 'import', archive]);
      return imported.code === 0 ? true : undefined;
    });
  }

  get #cgroupName(): string {
    return this.#directory.slice(this.#directory.lastIndexOf('/') + 1);
  }

  /** Cgroup directories in all mounted hierarchies. */
  async #cgroupRoots(): Promise<string[]> {
    const hierarchies = await readdir(CGROUPS, { withFileTypes: true });
    const found = hierarchies.filter((each) => each.isDirectory()).map((each) => join(CGROUPS, each.name));
    return found.map((hierarchy) => join(hierarchy, this.#cgroupName));
  }

  /** Stops the pods first, because containerd's shims outlive it. */
  async #endPods(): Promise<void> {
    if (!this.#running.has('containerd')) return;
    const ctr = (...args: string[]) => run('ctr', ['-a', this.#at('c.sock'), '-n', 'k8s.io', ...args]);
    const listed = (text: string) => text.split('\n').filter((line) => line !== '');
    for (const id of listed((await ctr('tasks', 'ls', '-q')).stdout)) await ctr('tasks', 'rm', '-f', id);
    for (const id of listed((await ctr('containers', 'ls', '-q')).stdout)) await ctr('containers', 'rm', id);
  }
}

async function removeLogs(directory: string): Promise<void> {
  const own = new RegExp(`(?:^|_)${NAMESPACE}_`);
  for (const name of await readdir(directory).catch(() => []))
    if (own.test(name)) await rm(join(directory, name), { recursive: true, force: true });
}

async function makeCgroup(root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  // A new group of the cpuset controller (cgroup v1) accepts processes only after its CPUs and memory nodes are set.
  for (const file of ['cpuset.cpus', 'cpuset.mems'])
    await copyFile(join(root, '..', file), join(root, file)).catch(() => {});
}

async function removeCgroup(root: string): Promise<void> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeCgroup(join(root, entry.name));
  await rmdir(root).catch(() => {});
}
