/** Volumes, projected objects and the environment of containers. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Volume } from '../../../src/api/generated/core/v1.ts';
import { eventually } from '../harness.ts';
import { assignments, configMap, idle, type PodLab, pod, secret, shell } from './lab.ts';

const LIMIT = { timeout: 60_000 };
const field = (path: string) => ({ valueFrom: { fieldRef: { fieldPath: path } } });

export function volumeTests(lab: () => PodLab): void {
  test('supports emptyDir on disk and in memory, fsGroup, subPath and read-only mounts', LIMIT, async () => {
    await lab().apply(
      pod('empty-dirs', {
        restartPolicy: 'Never',
        securityContext: { fsGroup: 4321, runAsUser: 1000, supplementalGroups: [77] },
        volumes: [
          { name: 'disk', emptyDir: {} },
          { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
        ],
        initContainers: [
          shell('mkdir -p /disk/deep && echo inside > /disk/deep/file', {
            name: 'fill',
            volumeMounts: [{ name: 'disk', mountPath: '/disk' }],
          }),
        ],
        containers: [
          shell(
            `echo "disk=$(stat -c %a:%g /disk)"; echo "id=$(id -u):$(id -G)"
             echo "memory=$(grep ' /memory ' /proc/mounts | cut -d' ' -f3) $(df -k /memory | tail -1 | awk '{print $2}')"
             touch /memory/mine && echo "mine=$(stat -c %u:%g /memory/mine)"
             echo "sub=$(cat /sub/file)"; echo "subfile=$(cat /one)"; echo "expr=$(cat /expr/file)"
             touch /ro/x 2>&1; echo "ro=$?"`,
            {
              env: [{ name: 'WHERE', value: 'deep' }],
              volumeMounts: [
                { name: 'disk', mountPath: '/disk' },
                { name: 'memory', mountPath: '/memory' },
                { name: 'disk', mountPath: '/sub', subPath: 'deep' },
                { name: 'disk', mountPath: '/one', subPath: 'deep/file' },
                { name: 'disk', mountPath: '/expr', subPathExpr: '$(WHERE)' },
                { name: 'disk', mountPath: '/ro', readOnly: true },
              ],
            },
          ),
        ],
      }),
    );
    await lab().over('empty-dirs');
    const output = assignments(await lab().logs('empty-dirs', '-c', 'main'));
    assert.deepEqual(Object.fromEntries(output), {
      disk: '2777:4321',
      id: '1000:0 77 4321',
      memory: 'tmpfs 8192',
      mine: '1000:4321',
      sub: 'inside',
      subfile: 'inside',
      expr: 'inside',
      ro: '1',
    });
    await lab().remove('empty-dirs');
  });

  test('evicts a pod whose emptyDir exceeds its limit', LIMIT, async () => {
    const fills = (kilobytes: number) =>
      shell(`head -c ${kilobytes}000 /dev/zero > /v/data; exec sleep 1000`, {
        volumeMounts: [{ name: 'v', mountPath: '/v' }],
      });
    const volumes = [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }];
    await lab().apply(pod('fitting', { volumes, containers: [fills(700)] }));
    await lab().ready('fitting');
    await lab().apply(pod('outgrown', { volumes, containers: [fills(3_000)] }));
    const evicted = await lab().over('outgrown');
    assert.equal(evicted.status?.reason, 'Evicted');
    assert.match(evicted.status?.message ?? '', /^Usage of EmptyDir volume "v" exceeds the limit "1Mi"/);
    assert.equal(lab().pod('fitting')?.status?.phase, 'Running');
    await lab().remove('outgrown', 'fitting');
  });

  test('checks or creates hostPath types, and reports a mismatch while the pod waits', LIMIT, async () => {
    const base = join(lab().scratch, 'host-path');
    await mkdir(base);
    await writeFile(join(base, 'file'), 'from the host');
    const host = (name: string, path: string, type: string): Volume => ({
      name,
      hostPath: { path: join(base, path), type },
    });
    const mounts = ['made', 'made-file', 'file', 'plain'].map((name) => ({ name, mountPath: `/${name}` }));
    await lab().apply(
      pod('host-paths', {
        restartPolicy: 'Never',
        volumes: [
          host('made', 'made', 'DirectoryOrCreate'),
          host('made-file', 'made-file', 'FileOrCreate'),
          host('file', 'file', 'File'),
          { name: 'plain', hostPath: { path: base } },
        ],
        containers: [
          shell('cat /file; echo a > /made/written; echo b > /made-file; ls /plain', { volumeMounts: mounts }),
        ],
      }),
      pod('host-path-wrong', {
        volumes: [host('wrong', 'file', 'Directory'), host('absent', 'absent', 'Socket')],
        containers: [idle()],
      }),
    );
    await lab().over('host-paths');
    assert.equal(await lab().logs('host-paths'), 'from the hostfile\nmade\nmade-file\n');
    assert.equal(await readFile(join(base, 'made/written'), 'utf8'), 'a\n');
    assert.equal(await readFile(join(base, 'made-file'), 'utf8'), 'b\n');
    await lab().event(
      'host-path-wrong',
      'FailedMount',
      /^MountVolume.SetUp failed for volume "wrong" : hostPath type check failed: .*file is not a directory$/,
    );
    assert.equal(await lab().shownStatus('host-path-wrong'), 'ContainerCreating');
    await lab().remove('host-paths', 'host-path-wrong');
  });

  test('supports modes, items and in-place updates of config maps, secrets and downward API files', LIMIT, async () => {
    const volumes: Volume[] = [
      {
        name: 'config',
        configMap: {
          name: 'live',
          defaultMode: 0o640,
          items: [
            { key: 'a', path: 'sub/a' },
            { key: 'b', path: 'b', mode: 0o400 },
          ],
        },
      },
      { name: 'whole', configMap: { name: 'live' } },
      { name: 'secret', secret: { secretName: 'live-secret', defaultMode: 0o400 } },
      { name: 'maybe', configMap: { name: 'comes-later', optional: true } },
      {
        name: 'down',
        downwardAPI: {
          items: [
            { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
            { path: 'note', fieldRef: { fieldPath: "metadata.annotations['note']" } },
            { path: 'memory', resourceFieldRef: { containerName: 'main', resource: 'limits.memory', divisor: '1Mi' } },
            { path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'requests.cpu', divisor: '1m' } },
          ],
        },
      },
      {
        name: 'all',
        projected: {
          sources: [
            { configMap: { name: 'live', items: [{ key: 'a', path: 'a' }] } },
            { secret: { name: 'live-secret' } },
            { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
          ],
        },
      },
    ];
    await lab().apply(
      configMap('live', { a: 'one', b: 'two' }),
      secret('live-secret', { key: 'hidden' }),
      pod(
        'projections',
        {
          volumes,
          containers: [
            idle({
              resources: { limits: { memory: '32Mi', cpu: '100m' } },
              volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })),
            }),
          ],
        },
        { labels: { tier: 'front' }, annotations: { note: 'first' } },
      ),
    );
    await lab().ready('projections');
    const show = (script: string): Promise<string> => lab().exec('projections', '/bin/sh', '-c', script);
    assert.equal(
      await show(
        'cat /config/sub/a /config/b /secret/key /down/memory /down/cpu /down/note /all/a /all/key /all/name; echo; ls /whole /maybe; stat -L -c %a /config/sub/a /config/b /secret/key /whole/a; readlink /whole/a; cat /down/labels',
      ),
      'onetwohidden32100firstonehiddenprojections\n/maybe:\n\n/whole:\na\nb\n640\n400\n400\n644\n..data/a\ntier="front"',
    );
    assert.match(await show('touch /whole/x 2>&1 || true'), /Read-only file system/);
    await Promise.all([
      lab().apply(configMap('live', { a: 'changed', c: 'new' }), configMap('comes-later', { here: 'now' })),
      lab().kubectl('label', 'pod', 'projections', 'tier=back', '--overwrite'),
      lab().kubectl('annotate', 'pod', 'projections', 'note=second', '--overwrite'),
    ]);
    // The first volume refers to key b, which was removed, so it is not updated; the other volumes are.
    await eventually('updated in place', 10_000, async () => {
      const now = await show('cat /whole/a /whole/c /maybe/here /down/note /down/labels; ls /whole');
      if (now === 'changednewnowsecondtier="back"a\nc\n') return true;
      throw new Error(now);
    });
    assert.equal(await show('cat /config/sub/a /config/b'), 'onetwo');
    await lab().remove('projections');
  });

  test('mounts a service-account token that is valid for the API', LIMIT, async () => {
    // The sample image's wget cannot verify certificates, so the test uses the pod's files itself.
    await lab().apply(
      pod('token', {
        securityContext: { runAsUser: 1000, fsGroup: 2000 },
        containers: [
          shell(
            `cd /var/run/secrets/kubernetes.io/serviceaccount; echo "token=$(cat token)"; echo "namespace=$(cat namespace)"
             echo "url=https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"; stat -L -c mode=%a:%g token
             nc -w 2 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo reach=yes; trap 'exit 0' TERM; sleep 1000 & wait`,
          ),
        ],
      }),
    );
    await lab().ready('token');
    const given = await eventually('output', 10_000, async () => {
      const output = assignments(await lab().logs('token'));
      return output.has('reach') ? output : undefined;
    });
    assert.equal(given.get('namespace'), 'default');
    assert.equal(given.get('mode'), '640:2000');
    const ca = join(lab().scratch, 'pod-ca.crt');
    await writeFile(ca, await lab().exec('token', 'cat', '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt'));
    const url = `${given.get('url')}/apis/authentication.k8s.io/v1/selfsubjectreviews`;
    const body = '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}';
    const { stdout: id } = await lab().appliance.inside('sh', ['-c', 'nsenter --version >/dev/null; echo ok']);
    assert.equal(id.trim(), 'ok');
    const pid = await containerPid(lab(), 'token');
    const requested = await lab().appliance.inside('nsenter', [
      ...['-t', String(pid), '-n', 'curl', '-sS', '--cacert', ca, '-H', 'Content-Type: application/json'],
      ...['-H', `Authorization: Bearer ${given.get('token')}`, '-d', body, url],
    ]);
    assert.equal(requested.code, 0, requested.stderr);
    const review = JSON.parse(requested.stdout);
    assert.equal(review.status.userInfo.username, 'system:serviceaccount:default:default');
    assert.deepEqual(review.status.userInfo.extra['authentication.kubernetes.io/pod-name'], ['token']);
    await lab().remove('token');
  });

  test(
    'reports CreateContainerConfigError or a waiting mount for a missing config map, and recovers once it exists',
    LIMIT,
    async () => {
      const from = { configMapKeyRef: { name: 'late', key: 'k' } };
      await lab().apply(
        pod('late-env', { containers: [idle({ env: [{ name: 'K', valueFrom: from }] })] }),
        pod('late-volume', {
          volumes: [{ name: 'v', configMap: { name: 'late' } }],
          containers: [idle({ volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
        }),
      );
      const waiting = await lab().until(
        'late-env',
        'waiting for its config map',
        (each) => each.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
      );
      assert.equal(waiting.status?.containerStatuses?.[0]?.state?.waiting?.message, 'configmap "late" not found');
      await lab().event('late-env', 'Failed', /^Error: configmap "late" not found$/);
      await lab().event(
        'late-volume',
        'FailedMount',
        /^MountVolume.SetUp failed for volume "v" : configmap "late" not found$/,
      );
      await lab().apply(configMap('late', { k: 'v' }));
      await Promise.all([lab().ready('late-env', 10_000), lab().ready('late-volume', 10_000)]);
      assert.equal(await lab().exec('late-volume', 'cat', '/v/k'), 'v');
      await lab().remove('late-env', 'late-volume');
    },
  );
}

export function environmentTests(lab: () => PodLab): void {
  test('sets environment variables from values, references, fields, resources and services', LIMIT, async () => {
    await lab().apply(
      configMap('env-map', { FROM_MAP: 'map', SHARED: 'map' }),
      secret('env-secret', { FROM_SECRET: 'secret', SHARED: 'secret' }),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'env-svc', namespace: 'default' },
        spec: { selector: { app: 'none' }, ports: [{ name: 'web', port: 8080 }] },
      },
    );
    // Wait until the kubelet has seen the service, before the pod starts.
    await eventually('service address', 5_000, async () =>
      (await lab().kubectl('get', 'svc', 'env-svc', '-o', 'jsonpath={.spec.clusterIP}')) === '' ? undefined : true,
    );
    await lab().apply(
      pod(
        'environment',
        {
          restartPolicy: 'Never',
          containers: [
            {
              ...shell('env; echo "ARGS=$0 $1"'),
              args: ['$(FROM_MAP)-$(UNKNOWN)-$$(FROM_MAP)', '$(IP)'],
              resources: { requests: { cpu: '150m', memory: '16Mi' }, limits: { memory: '64Mi' } },
              envFrom: [
                { configMapRef: { name: 'env-map' } },
                { secretRef: { name: 'env-secret' }, prefix: 'P_' },
                { configMapRef: { name: 'absent', optional: true } },
              ],
              env: [
                { name: 'SHARED', value: 'own' },
                { name: 'COMPOSED', value: '$(SHARED)/$(P_FROM_SECRET)/$(LATER)/$(ENV_SVC_SERVICE_PORT)' },
                { name: 'LATER', value: 'x' },
                { name: 'KEY', valueFrom: { secretKeyRef: { name: 'env-secret', key: 'FROM_SECRET' } } },
                { name: 'NONE', valueFrom: { configMapKeyRef: { name: 'absent', key: 'k', optional: true } } },
                { name: 'NAME', ...field('metadata.name') },
                { name: 'LABEL', ...field("metadata.labels['app']") },
                { name: 'IP', ...field('status.podIP') },
                { name: 'HOST_IP', ...field('status.hostIP') },
                { name: 'NODE', ...field('spec.nodeName') },
                { name: 'ACCOUNT', ...field('spec.serviceAccountName') },
                { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'requests.cpu', divisor: '1m' } } },
                { name: 'CPU_UP', valueFrom: { resourceFieldRef: { resource: 'requests.cpu' } } },
                { name: 'MEMORY', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } },
                { name: 'CPU_LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
              ],
            },
          ],
        },
        { labels: { app: 'labelled' } },
      ),
    );
    const over = await lab().over('environment');
    const env = assignments(await lab().logs('environment'));
    const service = await lab().kubectl('get', 'svc', 'env-svc', '-o', 'jsonpath={.spec.clusterIP}');
    const node = JSON.parse(await lab().kubectl('get', 'nodes', '-o', 'json')).items[0];
    const expected: Record<string, string | undefined> = {
      FROM_MAP: 'map',
      P_FROM_SECRET: 'secret',
      P_SHARED: 'secret',
      SHARED: 'own',
      COMPOSED: 'own/secret/$(LATER)/8080',
      KEY: 'secret',
      NONE: undefined,
      NAME: 'environment',
      LABEL: 'labelled',
      IP: over.status?.podIP,
      HOST_IP: over.status?.hostIP,
      NODE: node.metadata.name,
      ACCOUNT: 'default',
      CPU: '150',
      CPU_UP: '1',
      MEMORY: String(64 * 1024 * 1024),
      CPU_LIMIT: node.status.allocatable.cpu,
      HOSTNAME: 'environment',
      ENV_SVC_SERVICE_HOST: service,
      ENV_SVC_SERVICE_PORT: '8080',
      ENV_SVC_SERVICE_PORT_WEB: '8080',
      ENV_SVC_PORT: `tcp://${service}:8080`,
      ENV_SVC_PORT_8080_TCP_ADDR: service,
      KUBERNETES_SERVICE_HOST: '172.30.0.1',
      ARGS: `map-$(UNKNOWN)-$(FROM_MAP) ${over.status?.podIP}`,
    };
    const found = Object.fromEntries(Object.keys(expected).map((name) => [name, env.get(name)]));
    assert.deepEqual(found, expected);
    await lab().remove('environment');
  });
}

/** PID on the host of the first process in a pod's first container. */
export async function containerPid(lab: PodLab, name: string): Promise<number> {
  const id = (lab.pod(name)?.status?.containerStatuses?.[0]?.containerID ?? '').replace(/^.*:\/\//, '');
  const record = join(lab.appliance.root, 'var/lib/origin/containers/containers', id, 'record.json');
  const { pid } = JSON.parse(await readFile(record, 'utf8')) as { pid: number };
  return pid;
}
