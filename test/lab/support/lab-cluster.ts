/** Blank hosts on one switch, which form a cluster with the commands of the documentation. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { basename, join } from 'node:path';
import { HELLO_IMAGE, writeHelloImage } from '../../../build/hello-image.ts';
import { eventually, executable, type Ran, sleep } from '../../e2e/harness.ts';
import { Lan } from './lan.ts';
import { NspawnHost } from './nspawn-host.ts';
import type { RequestReport } from './requests.child.ts';
import { TimeLine } from './time-line.ts';

const DOWNLOAD = `/root/${basename(executable)}`;
const INSTALL_MS = 200_000;
const WITHOUT_FAULT_MS = 1_000;
const BALANCER = 'https://127.0.0.1:7443';
const CLIENT = join(import.meta.dirname, 'requests.child.ts');

export interface Member {
  readonly name: string;
  readonly role: string;
  readonly state: string;
}

interface NodeCondition {
  readonly type: string;
  readonly status: string;
}

export const WEB = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 600}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 600}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {app: web}}
      containers:
      - name: web
        image: ${HELLO_IMAGE}
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        command: [/bin/sh, -c, 'mkdir -p /tmp/www; echo "served by $NODE" > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www']
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`;

export class LabCluster {
  readonly lan: Lan;
  readonly hosts: readonly NspawnHost[];
  readonly line: TimeLine;

  private constructor(lan: Lan, hosts: readonly NspawnHost[], line: TimeLine) {
    this.lan = lan;
    this.hosts = hosts;
    this.line = line;
  }

  /** Creates and boots blank hosts. */
  static async create(
    count: number,
    title: string,
    options: { readonly ssh?: boolean; readonly disk?: boolean } = {},
  ): Promise<LabCluster> {
    const lan = await Lan.create();
    const hosts: NspawnHost[] = [];
    const cluster = new LabCluster(lan, hosts, new TimeLine(title));
    try {
      for (let each = 0; each < count; each++)
        hosts.push(await NspawnHost.create((line) => console.log(line), lan, { blank: true, ...options }));
      await cluster.line.step(`${count} blank hosts booted`, () => Promise.all(hosts.map((host) => host.boot())));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** Creates a cluster of masters and nodes and waits until all are Ready. */
  static async formed(
    counts: { readonly masters: number; readonly nodes: number },
    title: string,
  ): Promise<LabCluster> {
    const cluster = await LabCluster.create(counts.masters + counts.nodes, title);
    try {
      await cluster.line.step(`${counts.masters} masters and ${counts.nodes} nodes installed and joined`, () =>
        cluster.#form(counts.masters),
      );
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  async #form(masters: number): Promise<void> {
    const [first] = this.hosts;
    assert.ok(first);
    await this.install(first);
    const forMasters = await this.joinCommand(first, '--roles', 'master,etcd,node', '--ttl', '1h');
    const forNodes = await this.joinCommand(first, '--roles', 'node', '--ttl', '1h');
    await Promise.all(
      this.hosts.slice(1).map((host, index) => this.install(host, index + 1 < masters ? forMasters : forNodes)),
    );
    await this.untilReady(first, this.hosts);
    await this.untilVoters(first, this.hosts.slice(0, masters));
    await this.untilRing(this.hosts);
  }

  /**
   * Sends requests from `client`, with the credentials of `by`, while `act` runs. Fails if an acknowledged write is
   * lost.
   */
  async underLoad(
    what: string,
    { client, by }: { readonly client: NspawnHost; readonly by: NspawnHost },
    act: () => Promise<unknown>,
  ): Promise<RequestReport> {
    const load = this.load(client, by);
    let report: RequestReport;
    try {
      await sleep(WITHOUT_FAULT_MS);
      await act();
    } finally {
      report = await load.stop();
    }
    const { requests, errors, errorWindowMs, slowestMs, written } = report;
    const lost = await this.lostWrites(by, report);
    this.line.note(
      `${what}: ${requests} requests, ${errors.length} failed within ${errorWindowMs} ms, slowest ${slowestMs} ms, ` +
        `${written.length} writes, ${lost.length} lost`,
    );
    for (const { atMs, what: error } of errors.slice(0, 8)) this.line.note(`  at ${atMs}: ${error}`);
    assert.deepEqual(lost, []);
    return report;
  }

  async stop(): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.stop()));
    await this.lan.stop();
  }

  host(index: number): NspawnHost {
    const host = this.hosts[index];
    if (host === undefined) throw new Error(`no host ${index}`);
    return host;
  }

  others(...hosts: readonly NspawnHost[]): NspawnHost[] {
    return this.hosts.filter((host) => !hosts.includes(host));
  }

  /** Installs hyperedge with the downloaded executable. `command`: arguments as `token create` prints them. */
  async install(host: NspawnHost, command: readonly string[] = ['install'], program = DOWNLOAD): Promise<Ran> {
    const ran = await host.inside(program, command, { timeoutMs: INSTALL_MS });
    if (ran.code !== 0)
      throw new Error(`install on ${host.name}: exit ${ran.code}\n${ran.stdout}${ran.stderr}${await tail(host)}`);
    return ran;
  }

  /** Arguments of the command that `token create` prints. */
  async joinCommand(master: NspawnHost, ...flags: readonly string[]): Promise<string[]> {
    const printed = await master.must('hyperedge', ['token', 'create', ...flags]);
    const command = /^ *hyperedge (install --join \S+ --token \S+ --ca-hash sha256:[0-9a-f]{64})$/m.exec(printed)?.[1];
    assert.ok(command, printed);
    return command.split(' ');
  }

  async readyNodes(by: NspawnHost): Promise<string[]> {
    const ran = await by.kubectl(['get', 'nodes', '-o', 'json', '--request-timeout=3s'], { timeoutMs: 8_000 });
    if (ran.code !== 0) return [];
    const { items } = JSON.parse(ran.stdout);
    return items
      .filter(({ status }: { status: { conditions?: readonly NodeCondition[] } }) =>
        status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
      )
      .map(({ metadata }: { metadata: { name: string } }) => metadata.name)
      .sort();
  }

  async untilReady(by: NspawnHost, hosts: readonly NspawnHost[], timeoutMs = 90_000): Promise<void> {
    const wanted = hosts.map(({ name }) => name).sort();
    let last: readonly string[] = [];
    try {
      await eventually(`nodes ${wanted.join()} Ready, as ${by.name} sees them`, timeoutMs, async () => {
        last = await this.readyNodes(by);
        return wanted.every((name) => last.includes(name)) ? true : undefined;
      });
    } catch (error) {
      const missing = hosts.find(({ name }) => !last.includes(name)) ?? by;
      throw new Error(`${String(error)}: Ready are ${last.join()}\n${await tail(missing)}`);
    }
  }

  async members(by: NspawnHost): Promise<Member[]> {
    const { stdout } = await by.inside('hyperedge', ['members', '-o', 'json'], { timeoutMs: 20_000 });
    return stdout === '' ? [] : JSON.parse(stdout);
  }

  /** Waits until all store members that vote are healthy according to `by`. */
  async untilVoters(by: NspawnHost, hosts: readonly NspawnHost[], timeoutMs = 90_000): Promise<void> {
    const wanted = hosts.map(({ name }) => name).sort();
    await eventually(`store members ${wanted.join()}, as ${by.name} sees them`, timeoutMs, async () => {
      const voters = (await this.members(by)).filter(({ role, state }) => role !== 'learner' && state === 'ok');
      return JSON.stringify(voters.map(({ name }) => name).sort()) === JSON.stringify(wanted) ? true : undefined;
    });
  }

  async leader(by: NspawnHost): Promise<NspawnHost> {
    const leader = (await this.members(by)).find(({ role }) => role === 'leader');
    const host = this.hosts.find(({ name }) => name === leader?.name);
    if (host === undefined) throw new Error(`${by.name} sees no leader`);
    return host;
  }

  /** Names of the alive members of the gossip ring according to `by`. */
  async ring(by: NspawnHost): Promise<string[]> {
    const { stdout } = await by.inside('hyperedge', ['gossip', 'members', '-o', 'json'], { timeoutMs: 10_000 });
    if (stdout === '') return [];
    const members: { name: string; state: string }[] = JSON.parse(stdout);
    return members.flatMap(({ name, state }) => (state === 'alive' ? [name] : [])).sort();
  }

  async untilRing(hosts: readonly NspawnHost[], timeoutMs = 60_000): Promise<void> {
    const wanted = JSON.stringify(hosts.map(({ name }) => name).sort());
    for (const host of hosts) {
      let seen: string[] = [];
      await eventually(`a ring of ${hosts.length}, as ${host.name} sees it`, timeoutMs, async () => {
        seen = await this.ring(host);
        return JSON.stringify(seen) === wanted ? true : undefined;
      }).catch(async (error: unknown) => {
        const missing = hosts.find(({ name }) => !seen.includes(name)) ?? host;
        throw new Error(`${String(error)}\nmembers: ${seen.join(' ')}; ${missing.name}:\n${await tail(missing)}`);
      });
    }
  }

  /** Waits until a write through `host` is acknowledged. Returns the milliseconds that this took. */
  async writable(host: NspawnHost, name: string, timeoutMs = 60_000): Promise<number> {
    const began = performance.now();
    await eventually(`a write by ${host.name}`, timeoutMs, async () => {
      const ran = await host.kubectl(['create', 'configmap', name, '--from-literal=k=v', '--request-timeout=5s'], {
        timeoutMs: 10_000,
      });
      return ran.code === 0 || /already exists/.test(ran.stderr) ? true : undefined;
    });
    return performance.now() - began;
  }

  async importImage(): Promise<void> {
    for (const host of this.hosts) {
      await writeHelloImage(join(host.root, 'root/hello.tar'));
      await host.must('hyperedge', ['image', 'import', '/root/hello.tar'], { timeoutMs: 120_000 });
    }
  }

  /** Deploys the web application and a client pod on each host. */
  async deployWeb(by: NspawnHost): Promise<void> {
    await by.mustKubectl(['apply', '-f', '-'], { input: WEB + this.hosts.map(lookout).join('') });
    await eventually('a Ready application', 120_000, async () => {
      const shown = await by.kubectl(['get', 'deployment', 'web', '-o', 'jsonpath={.status.readyReplicas}']);
      return shown.stdout === '3' ? true : undefined;
    });
    for (const { name } of this.hosts)
      await by.mustKubectl(['wait', '--for=condition=Ready', `pod/look-${name}`, '--timeout=120s'], {
        timeoutMs: 130_000,
      });
  }

  /**
   * Requests the application from the client pod on each host, by name and by cluster IP. Returns the hosts that
   * succeeded.
   */
  async reachWeb(by: NspawnHost, from: readonly NspawnHost[], attempts = 12): Promise<string[]> {
    const ip = await by.mustKubectl(['get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}']);
    const served = new Set<string>();
    // The static busybox resolves names only with nslookup, because its other programs need glibc's libraries for that.
    const address = '$' + '{a:-$1}';
    const fetch =
      'a=$(nslookup $1 | sed -n "s/^Address: *\\([0-9.]*\\)$/\\1/p" | tail -1); n=0; ' +
      'while [ $n -lt $2 ]; do n=$((n+1)); ' +
      `printf "GET / HTTP/1.0\\r\\n\\r\\n" | nc -w 5 ${address} 80 | grep served || { echo "failed $1 $a"; exit 1; }; done`;
    for (const { name } of from) {
      for (const target of ['web.default.svc.cluster.local', ip]) {
        const args = ['exec', `look-${name}`, '--', '/bin/sh', '-c', fetch, 'sh', target, String(attempts)];
        const output = await by.mustKubectl(args, { timeoutMs: 90_000 });
        for (const [, node = ''] of output.matchAll(/^served by (\S+)$/gm)) served.add(node);
      }
    }
    return [...served].sort();
  }

  /** Waits until the host itself and the cluster report the host as Ready, and its pods run. */
  async untilBack(host: NspawnHost, masters: readonly NspawnHost[], timeoutMs = 120_000): Promise<void> {
    try {
      await eventually(`${host.name} Ready by its own status`, timeoutMs, async () => {
        const { stdout } = await host.inside('hyperedge', ['status'], { timeoutMs: 10_000 });
        return stdout.includes(`node ${host.name} (${host.address}): Ready`) ? true : undefined;
      });
      for (const master of masters) {
        await this.untilReady(master, this.hosts, timeoutMs);
        await this.untilVoters(master, masters, timeoutMs);
      }
      await this.untilRing(this.hosts, timeoutMs);
    } catch (error) {
      throw new Error(`${String(error)}
${await tail(host)}`);
    }
  }

  /**
   * Sends requests through the load balancer of `host` until `stop`. `credentials`: host whose administrator's
   * credentials are used.
   */
  load(host: NspawnHost, credentials: NspawnHost, url = BALANCER): { stop(): Promise<RequestReport> } {
    const kubeconfig = join(credentials.root, 'etc/origin/master/admin.kubeconfig');
    const child = spawn('nsenter', ['-t', String(host.pid1), '-n', process.execPath, CLIENT, kubeconfig, url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    return {
      stop: async () => {
        child.kill('SIGTERM');
        await eventually('end of the client', 20_000, () => child.exitCode ?? undefined);
        return JSON.parse(out);
      },
    };
  }

  /** Numbers of acknowledged writes that the cluster has lost. */
  async lostWrites(by: NspawnHost, { label, written }: RequestReport): Promise<number[]> {
    const path = 'jsonpath={.items[*].metadata.name}';
    const names = new Set((await by.mustKubectl(['get', 'configmap', '-l', `load=${label}`, '-o', path])).split(' '));
    return written.filter((count) => !names.has(`load-${label}-${count}`));
  }
}

const lookout = ({ name }: NspawnHost): string => `---
apiVersion: v1
kind: Pod
metadata: {name: look-${name}, namespace: default}
spec:
  nodeName: ${name}
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ${HELLO_IMAGE}
    command: [/bin/sh, -c, 'trap "exit 0" TERM; while :; do sleep 1 & wait $!; done']
`;

async function tail(host: NspawnHost): Promise<string> {
  return (await host.journal().catch(() => '')).slice(-5_000);
}
