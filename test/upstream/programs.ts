/**
 * Common programs from Debian packages: PostgreSQL with a claim that survives a host failure, Redis, Prometheus with
 * node-exporter, autoscaling with kubectl, 200 simultaneous Jobs. Run by `npm run test:upstream:programs`.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Appliance, eventually, run, sleep } from '../e2e/harness.ts';

const PACKAGES = ['postgresql', 'redis-server', 'prometheus', 'prometheus-node-exporter'];
const SUITE = 'bookworm';
const IMAGE = 'hyperedge.local/programs:1';
const CACHE = '/var/tmp/hyperedge-upstream';
const BUILD_MS = 15 * 60_000;
const JOBS = 200;

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path);
  for await (const chunk of file.createReadStream({ highWaterMark: 1 << 20 })) hash.update(chunk);
  return hash.digest('hex');
}

/** An image with one layer: a system with these packages. Created once per machine. */
async function programsArchive(): Promise<string> {
  const name = createHash('sha256').update(PACKAGES.join()).digest('hex').slice(0, 12);
  const target = join(CACHE, `programs-${name}.tar`);
  if (existsSync(target)) return target;
  await mkdir(CACHE, { recursive: true });
  const making = await mkdtemp(join(CACHE, '.programs-'));
  try {
    const layer = join(making, 'layer.tar');
    const make = await run(
      'mmdebstrap',
      [
        '--quiet',
        '--variant=minbase',
        '--dpkgopt=path-exclude=/usr/share/doc/*',
        `--include=${PACKAGES.join()}`,
        SUITE,
        layer,
      ],
      { timeoutMs: BUILD_MS },
    );
    assert.equal(make.code, 0, `mmdebstrap: ${make.stderr.slice(-2_000)}`);
    const config = JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { Env: ['PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin'], Cmd: ['sleep', 'infinity'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${await digestOf(layer)}`] },
    });
    await writeFile(join(making, 'config.json'), config);
    const manifest = [{ Config: 'config.json', RepoTags: [IMAGE], Layers: ['layer.tar'] }];
    await writeFile(join(making, 'manifest.json'), JSON.stringify(manifest));
    const archive = join(making, 'archive.tar');
    const packed = await run('tar', ['-C', making, '-cf', archive, 'manifest.json', 'config.json', 'layer.tar'], {
      timeoutMs: BUILD_MS,
    });
    assert.equal(packed.code, 0, packed.stderr);
    await rename(archive, target);
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return target;
}

const POSTGRES = `
apiVersion: v1
kind: Service
metadata: {name: postgres}
spec: {clusterIP: None, selector: {app: postgres}, ports: [{port: 5432}]}
---
apiVersion: v1
kind: Secret
metadata: {name: postgres}
stringData: {password: correct-horse}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: postgres}
spec:
  serviceName: postgres
  selector: {matchLabels: {app: postgres}}
  template:
    metadata: {labels: {app: postgres}}
    spec:
      securityContext: {fsGroup: 999}
      containers:
      - name: postgres
        image: ${IMAGE}
        imagePullPolicy: Never
        env: [{name: PGPASSWORD, valueFrom: {secretKeyRef: {name: postgres, key: password}}}]
        command:
        - sh
        - -ec
        - |
          mkdir -p /data/db /run/postgresql; chown -R postgres: /data/db /run/postgresql; chmod 700 /data/db
          as() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
          printf %s "$PGPASSWORD" > /run/postgresql/password; chown postgres: /run/postgresql/password
          [ -s /data/db/PG_VERSION ] || as initdb -D /data/db -A scram-sha-256 --pwfile /run/postgresql/password
          echo 'host all all all scram-sha-256' >> /data/db/pg_hba.conf
          exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -D /data/db -c listen_addresses='*'
        ports: [{containerPort: 5432}]
        readinessProbe: {exec: {command: [pg_isready, -h, 127.0.0.1]}, periodSeconds: 2, timeoutSeconds: 5}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`;

const REDIS = `
apiVersion: v1
kind: Service
metadata: {name: redis}
spec: {selector: {app: redis}, ports: [{port: 6379}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: redis}
spec:
  selector: {matchLabels: {app: redis}}
  template:
    metadata: {labels: {app: redis}}
    spec:
      containers:
      - name: redis
        image: ${IMAGE}
        imagePullPolicy: Never
        command: [redis-server, --protected-mode, 'no', --dir, /tmp]
        ports: [{containerPort: 6379}]
        livenessProbe: {exec: {command: [redis-cli, ping]}, timeoutSeconds: 5}
        readinessProbe: {tcpSocket: {port: 6379}, periodSeconds: 1}
`;

/** Uses a service account as in the project's examples. Debian's build lacks discovery through the API. */
const prometheusOf = (node: string): string => `
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prometheus}
rules:
- {apiGroups: [''], resources: [nodes/proxy], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: default}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prometheus}
data:
  prometheus.yml: |
    global: {scrape_interval: 2s}
    scrape_configs:
    - job_name: apiserver
      scheme: https
      metrics_path: /metrics
      tls_config: {ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}
      bearer_token_file: /var/run/secrets/kubernetes.io/serviceaccount/token
      static_configs: [{targets: ['kubernetes.default.svc:443']}]
    - job_name: kubelet
      scheme: https
      metrics_path: /api/v1/nodes/${node}/proxy/metrics
      tls_config: {ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}
      bearer_token_file: /var/run/secrets/kubernetes.io/serviceaccount/token
      static_configs: [{targets: ['kubernetes.default.svc:443']}]
    - job_name: cadvisor
      scheme: https
      metrics_path: /api/v1/nodes/${node}/proxy/metrics/cadvisor
      tls_config: {ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}
      bearer_token_file: /var/run/secrets/kubernetes.io/serviceaccount/token
      static_configs: [{targets: ['kubernetes.default.svc:443']}]
    - job_name: node-exporter
      dns_sd_configs: [{names: [node-exporter.default.svc.cluster.local], type: A, port: 9100}]
---
apiVersion: v1
kind: Service
metadata: {name: node-exporter}
spec: {clusterIP: None, selector: {app: node-exporter}, ports: [{port: 9100}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: node-exporter}
spec:
  selector: {matchLabels: {app: node-exporter}}
  template:
    metadata: {labels: {app: node-exporter}}
    spec:
      hostPID: true
      hostNetwork: true
      containers:
      - name: node-exporter
        image: ${IMAGE}
        imagePullPolicy: Never
        command: [prometheus-node-exporter, --path.rootfs=/host]
        ports: [{containerPort: 9100, hostPort: 9100}]
        volumeMounts: [{name: root, mountPath: /host, readOnly: true, mountPropagation: HostToContainer}]
      volumes: [{name: root, hostPath: {path: /}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: prometheus}
spec:
  selector: {matchLabels: {app: prometheus}}
  template:
    metadata: {labels: {app: prometheus}}
    spec:
      serviceAccountName: prometheus
      containers:
      - name: prometheus
        image: ${IMAGE}
        imagePullPolicy: Never
        command: [prometheus, --config.file=/config/prometheus.yml, --storage.tsdb.path=/tmp/tsdb]
        readinessProbe: {httpGet: {path: /-/ready, port: 9090}, periodSeconds: 1}
        volumeMounts: [{name: config, mountPath: /config}]
      volumes: [{name: config, configMap: {name: prometheus}}]
`;

const BUSY = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: busy
        image: ${IMAGE}
        imagePullPolicy: Never
        command: [sh, -c, 'while [ ! -e /tmp/rest ]; do :; done; sleep infinity']
        resources: {requests: {cpu: 50m}, limits: {cpu: 100m}}
`;

const jobs = (): string =>
  Array.from(
    { length: JOBS },
    (_, index) => `
apiVersion: batch/v1
kind: Job
metadata: {name: step-${index}, labels: {fan: out}}
spec:
  ttlSecondsAfterFinished: 600
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: '${IMAGE}', imagePullPolicy: Never, command: ['true'], resources: {requests: {cpu: 5m}}}
`,
  ).join('---');

const root = process.getuid?.() === 0 ? false : 'needs root';

describe('widely used programs', { skip: root }, () => {
  let host: Appliance;
  let directory: string;

  before(async () => {
    const archive = await programsArchive();
    directory = await mkdtemp(join(tmpdir(), 'he-programs-'));
    host = await Appliance.create();
    await host.start(120_000);
    const began = performance.now();
    const imported = await host.hyperedge(['image', 'import', '--root', host.root, archive], { timeoutMs: 600_000 });
    assert.equal(imported.code, 0, imported.stderr);
    console.log(`image imported in ${Math.round(performance.now() - began)} ms`);
  });
  after(async () => {
    await host?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  const apply = (manifest: string): Promise<string> => host.must(['apply', '-f', '-'], { input: manifest });
  const rolledOut = async (what: string): Promise<void> => {
    const ran = await host.kubectl(['rollout', 'status', what, '--timeout=180s'], { timeoutMs: 200_000 });
    if (ran.code === 0) return;
    const pods = await host.kubectl(['get', 'pods,events']);
    const logs = await host.kubectl(['logs', what, '--tail=20']);
    throw new Error(`${what}: ${ran.stderr}${pods.stdout}${logs.stdout}${logs.stderr}`);
  };
  const psql = (statement: string): Promise<string> =>
    host.must(['exec', 'postgres-0', '--', 'sh', '-c', 'psql -h postgres -U postgres -tAc "$1"', 'sh', statement], {
      timeoutMs: 60_000,
    });

  test('keeps the rows of a PostgreSQL StatefulSet over pod restarts and a power cut of its host', {
    timeout: 600_000,
  }, async () => {
    await apply(POSTGRES);
    await rolledOut('statefulset/postgres');
    await psql('create table runs (id serial primary key, at timestamptz default now())');
    await psql('insert into runs (at) select now() from generate_series(1, 10000)');
    await host.must(['delete', 'pod', 'postgres-0']);
    await rolledOut('statefulset/postgres');
    assert.equal((await psql('select count(*) from runs')).trim(), '10000');
    await psql('insert into runs default values');
    await host.powerCut();
    await host.start(120_000);
    await eventually('PostgreSQL', 180_000, async () =>
      (await psql('select count(*) from runs')).trim() === '10001' ? true : undefined,
    );
    assert.equal(
      (await host.must(['get', 'pvc', 'data-postgres-0', '-o', 'jsonpath={.status.phase}'])).trim(),
      'Bound',
    );
  });

  test('a client pod connects to Redis by its service name', { timeout: 300_000 }, async () => {
    await apply(REDIS);
    await rolledOut('deployment/redis');
    const requested = ['exec', 'postgres-0', '--', 'redis-cli', '-h', 'redis.default.svc'];
    await eventually('Redis', 60_000, async () =>
      (await host.must([...requested, 'set', 'board', '7'])).trim() === 'OK' ? true : undefined,
    );
    assert.equal((await host.must([...requested, 'get', 'board'])).trim(), '7');
    const bench = ['exec', 'postgres-0', '--', 'redis-benchmark', '-h', 'redis', '-n', '20000', '-q', '-t', 'get'];
    console.log((await host.must(bench, { timeoutMs: 120_000 })).split('\r').at(-1)?.trim());
  });

  test('Prometheus discovers and scrapes the API server, kubelet, cAdvisor and node-exporter', {
    timeout: 300_000,
  }, async () => {
    await apply(prometheusOf((await host.must(['get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}'])).trim()));
    await rolledOut('daemonset/node-exporter');
    await rolledOut('deployment/prometheus');
    const query = async (
      expression: string,
    ): Promise<{ metric: Record<string, string>; value: [number, string] }[]> => {
      const path = `/api/v1/namespaces/default/pods/http:prometheus:9090/proxy/api/v1/query?query=${encodeURIComponent(expression)}`;
      const pod = (
        await host.must(['get', 'pods', '-l', 'app=prometheus', '-o', 'jsonpath={.items[0].metadata.name}'])
      ).trim();
      return JSON.parse(await host.must(['get', '--raw', path.replace('http:prometheus:', `http:${pod}:`)])).data
        .result;
    };
    await eventually('all targets', 90_000, async () => {
      const up = new Map((await query('up')).map(({ metric, value }) => [metric['job'], value[1]]));
      const wanted = ['apiserver', 'kubelet', 'cadvisor', 'node-exporter'];
      if (wanted.every((job) => up.get(job) === '1')) return true;
      throw new Error(JSON.stringify([...up]));
    });
    for (const expression of [
      'apiserver_request_total',
      'container_cpu_usage_seconds_total{pod="postgres-0"}',
      'container_memory_working_set_bytes{pod="postgres-0"}',
      'kubelet_running_pods',
      'node_memory_MemTotal_bytes',
    ])
      await eventually(expression, 30_000, async () => ((await query(expression)).length > 0 ? true : undefined));
  });

  test('kubectl autoscale scales a Deployment up and down with its load', { timeout: 600_000 }, async () => {
    await apply(BUSY);
    await rolledOut('deployment/busy');
    await host.must(['autoscale', 'deployment', 'busy', '--min=1', '--max=3', '--cpu-percent=80']);
    await host.must([
      ...['patch', 'hpa', 'busy', '--type=merge', '-p'],
      JSON.stringify({ spec: { behavior: { scaleDown: { stabilizationWindowSeconds: 5 } } } }),
    ]);
    const began = performance.now();
    const replicas = async (): Promise<string> =>
      (await host.must(['get', 'deployment', 'busy', '-o', 'jsonpath={.status.readyReplicas}'])).trim();
    await eventually('three replicas', 180_000, async () => ((await replicas()) === '3' ? true : undefined));
    console.log(`scaled up after ${Math.round(performance.now() - began)} ms`);
    assert.match(await host.must(['top', 'pods', '-l', 'app=busy', '--no-headers']), /busy-\S+ +\d+m +\d+Mi/);
    const pods = (await host.must(['get', 'pods', '-l', 'app=busy', '-o', 'name'])).trim().split('\n');
    for (const pod of pods) await host.must(['exec', pod, '--', 'touch', '/tmp/rest']);
    await eventually('one replica', 240_000, async () => ((await replicas()) === '1' ? true : undefined));
    await host.must(['delete', 'deployment,hpa', 'busy']);
  });

  test(`a cluster completes ${JOBS} simultaneous Jobs`, { timeout: 600_000 }, async () => {
    const began = performance.now();
    await apply(jobs());
    const applied = performance.now();
    await eventually('all Jobs Complete', 500_000, async () => {
      const done = await host.must([
        ...['get', 'jobs', '-l', 'fan=out', '-o'],
        'jsonpath={range .items[*]}{.status.succeeded}{"\\n"}{end}',
      ]);
      if (done.split('\n').filter((line) => line === '1').length === JOBS) return true;
      await sleep(500);
      return undefined;
    });
    const ended = performance.now();
    console.log(
      `${JOBS} Jobs: applied in ${Math.round(applied - began)} ms, complete after ${Math.round(ended - began)} ms`,
    );
    const pods = (await host.must(['get', 'pods', '-l', 'batch.kubernetes.io/job-name', '-o', 'name']))
      .trim()
      .split('\n');
    assert.equal(pods.length, JOBS);
  });
});
