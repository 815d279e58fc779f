/** Environment of the attacks: one appliance with pods, and identities with few permissions. */
import { PodLab } from '../e2e/pods/lab.ts';

/** Response of the API server or the kubelet to a raw request. */
export interface RawAnswer {
  readonly code: number;
  readonly body: string;
}

/** A service account in a namespace of its own. */
export interface Tenant {
  readonly namespace: string;
  readonly token: string;
}

export class AttackLab {
  readonly pods: PodLab;
  #tenants = 0;

  private constructor(pods: PodLab) {
    this.pods = pods;
  }

  static async create(): Promise<AttackLab> {
    return new AttackLab(await PodLab.create());
  }

  async stop(): Promise<void> {
    const { exitCode, output } = this.appliance;
    if (exitCode !== undefined) console.log(`the host process ended with ${exitCode}:\n${output.slice(-4000)}`);
    await this.pods.stop();
  }

  get appliance(): PodLab['appliance'] {
    return this.pods.appliance;
  }

  /**
   * Creates a namespace with a service account `attacker`, bound to the cluster role `role` (`view`, `edit`, `admin`)
   * in it if given.
   */
  async tenant(role?: string, labels: Readonly<Record<string, string>> = {}): Promise<Tenant> {
    const namespace = `tenant-${++this.#tenants}`;
    const subjects = [{ kind: 'ServiceAccount', name: 'attacker', namespace }];
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'attacker', namespace },
      subjects,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    };
    await this.pods.apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'attacker', namespace } },
      ...(role === undefined ? [] : [binding]),
    );
    const token = (await this.pods.kubectl('create', 'token', 'attacker', '-n', namespace)).trim();
    return { namespace, token };
  }

  /** Sends a request to the API server with the tenant's token. `path` is sent unchanged. */
  request(tenant: Tenant, method: string, path: string, body?: object | string): Promise<RawAnswer> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    return this.curl(`https://127.0.0.1:8443${path}`, [
      ...['-X', method, '-H', `Authorization: Bearer ${tenant.token}`, '-H', `Content-Type: ${type}`],
      ...(body === undefined ? [] : ['--data-binary', typeof body === 'string' ? body : JSON.stringify(body)]),
    ]);
  }

  /** Runs curl in the appliance's network namespace. Code 0 means no response. */
  async curl(url: string, options: readonly string[] = []): Promise<RawAnswer> {
    const ran = await this.appliance.inside('curl', [
      ...['-sk', '--path-as-is', '--globoff', '--max-time', '20', '-w', '\n%{http_code}'],
      ...options,
      url,
    ]);
    const end = ran.stdout.lastIndexOf('\n');
    return { code: Number(ran.stdout.slice(end + 1)), body: ran.stdout.slice(0, end) };
  }

  /** Runs kubectl with the tenant's token only. */
  kubectlAs(tenant: Tenant, args: readonly string[], input?: string) {
    const identity = ['--kubeconfig=/dev/null', '--server=https://127.0.0.1:8443', '--insecure-skip-tls-verify=true'];
    return this.appliance.kubectl(
      [...identity, `--token=${tenant.token}`, `--namespace=${tenant.namespace}`, ...args],
      input === undefined ? {} : { input },
    );
  }
}
