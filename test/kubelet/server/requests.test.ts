import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod, PodStatus } from '../../../src/api/generated/core/v1.ts';
import type { JsonObject } from '../../../src/api/meta/object.ts';
import { resources } from '../../../src/api/resources.ts';
import { schemaOf } from '../../../src/api/schema/index.ts';
import { strategicMergePatch } from '../../../src/apiserver/core/patch/index.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { environmentOf, serviceEnvironment } from '../../../src/kubelet/pods/containers/environment.ts';
import { ExpansionBudget, expand } from '../../../src/kubelet/pods/containers/expansion.ts';
import { hostsFile, parseResolvConf, podDns, podHostname } from '../../../src/kubelet/pods/network-files.ts';
import { statusPatch } from '../../../src/kubelet/pods/status-patch.ts';
import { routeOf } from '../../../src/kubelet/server/routes.ts';
import { decodeStaticPod } from '../../../src/kubelet/sources/static-pod.ts';
import { configMap as configMapType } from '../../../src/kubelet/volumes/types/config-map.ts';
import type { DirectVolumeHost } from '../../../src/kubelet/volumes/types/type.ts';

describe('request paths of the kubelet server', () => {
  it('request paths of the kubelet server require the permission to run commands for every request form', () => {
    for (const method of ['GET', 'POST']) {
      for (const path of [
        '/exec/ns/pod/c?command=id',
        '/exec/ns/pod/uid/c',
        '/attach/ns/pod/c',
        '/portForward/ns/pod',
      ]) {
        assert.equal(routeOf(method, path)?.verb, 'create', `${method} ${path}`);
      }
    }
    assert.equal(routeOf('GET', '/containerLogs/ns/pod/c')?.verb, 'get');
    assert.deepEqual(routeOf('GET', '/pods/')?.subresources, ['pods', 'proxy']);
    assert.deepEqual(routeOf('GET', '/stats/summary')?.subresources, ['stats']);
    const history = routeOf('GET', '/metrics/history?scope=pod&since=24h');
    assert.deepEqual([history?.name, history?.verb, history?.subresources], ['usageHistory', 'get', ['metrics']]);
    assert.equal(history?.methods.includes('POST'), false);
    assert.deepEqual(routeOf('POST', '/exec/ns/pod/uid/c')?.uid, 'uid');
  });
  it('unknown request paths of the kubelet server are rejected', () => {
    for (const path of [
      '/',
      '/nothing',
      '/containerLogs/ns/pod',
      '/containerLogs/ns/pod/c/d',
      '/exec/ns/..%2fx/c',
      '/exec/ns/%00/c',
      '/exec/ns/%zz/c',
      '/exec/ns//c',
      '/constructor',
      '/__proto__/a/b/c',
    ]) {
      assert.equal(routeOf('GET', path), undefined, path);
    }
  });
});

describe('status patches of pods', () => {
  const schema = schemaOf(resources.pods);
  const apply = (from: PodStatus, patch: unknown): PodStatus =>
    strategicMergePatch({ status: from } as unknown as JsonObject, { status: patch } as JsonObject, schema)[
      'status'
    ] as PodStatus;

  it('applying a status patch yields the new status and keeps fields of other components', () => {
    const from: PodStatus = {
      phase: 'Pending',
      message: 'old',
      nominatedNodeName: 'n',
      podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
      podIP: '10.0.0.1',
      conditions: [
        { type: 'Ready', status: 'False', reason: 'ContainersNotReady', message: 'm', lastTransitionTime: 'a' },
        { type: 'example.com/gate', status: 'True' },
      ],
      containerStatuses: [
        { name: 'a', image: 'i', imageID: '', ready: false, restartCount: 0, state: { waiting: { reason: 'x' } } },
      ],
    };
    const to: PodStatus = {
      phase: 'Running',
      podIP: '10.0.0.2',
      podIPs: [{ ip: '10.0.0.2' }],
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: 'b' }],
      containerStatuses: [
        { name: 'a', image: 'i', imageID: 'd', ready: true, restartCount: 0, state: { running: { startedAt: 't' } } },
      ],
    };
    const patch = statusPatch(from, to);
    const result = apply(from, patch);
    assert.equal(result.nominatedNodeName, 'n');
    assert.equal(result.message, undefined);
    assert.deepEqual(result.podIPs, [{ ip: '10.0.0.2' }]);
    assert.deepEqual(result.containerStatuses, to.containerStatuses);
    assert.deepEqual(result.conditions, [
      { type: 'Ready', status: 'True', lastTransitionTime: 'b' },
      { type: 'example.com/gate', status: 'True' },
    ]);
    assert.equal(statusPatch(result, to), undefined);
  });

  it('keeps the immutable QoS class, which the kubelet cannot compute for a pod without its manifest', () => {
    const from: PodStatus = { phase: 'Running', qosClass: 'Burstable' };
    assert.deepEqual(statusPatch(from, { phase: 'Failed', qosClass: 'BestEffort' }), { phase: 'Failed' });
    assert.deepEqual(statusPatch({}, { qosClass: 'Burstable' }), { qosClass: 'Burstable' });
  });

  it('a status patch writes a condition again for a new generation only', () => {
    const of = (observedGeneration?: number): PodStatus => ({
      conditions: [
        { type: 'Ready', status: 'True', ...(observedGeneration === undefined ? {} : { observedGeneration }) },
      ],
    });
    assert.deepEqual(statusPatch(of(1), of(2)), of(2));
    assert.equal(statusPatch(of(2), of(2)), undefined);
    assert.equal(statusPatch(of(2), of()), undefined);
  });
});

describe('static pods', () => {
  const context = { nodeName: toNodeName('host1'), kind: 'file', origin: '/m/p.yaml', nowMs: 0 } as const;
  const base = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: c, image: i}]\n';

  it('static pods get their identity from node, origin and content', () => {
    const pod = decodeStaticPod(base, context);
    assert.equal(pod.metadata?.name, 'web-host1');
    assert.equal(pod.metadata?.namespace, 'default');
    assert.equal(pod.metadata?.annotations?.['kubernetes.io/config.hash'], pod.metadata?.uid);
    assert.equal(pod.metadata?.annotations?.['kubernetes.io/config.source'], 'file');
    assert.equal(decodeStaticPod(base, { ...context, nowMs: 5 }).metadata?.uid, pod.metadata?.uid);
    assert.notEqual(
      decodeStaticPod(base, { ...context, nodeName: toNodeName('other') }).metadata?.uid,
      pod.metadata?.uid,
    );
    assert.notEqual(decodeStaticPod(base.replace('image: i', 'image: j'), context).metadata?.uid, pod.metadata?.uid);
    assert.equal(pod.spec?.restartPolicy, 'Always');
    const annotated = base.replace(
      'name: web',
      "name: web, annotations: {'container.apparmor.security.beta.kubernetes.io/c': runtime/default}",
    );
    assert.equal(
      decodeStaticPod(annotated, context).spec?.containers[0]?.securityContext?.appArmorProfile?.type,
      'RuntimeDefault',
    );
    assert.equal(
      decodeStaticPod(`${base}  priorityClassName: system-node-critical\n`, context).spec?.priority,
      2_000_001_000,
    );
  });

  it('static pods that can never start are refused with a reason', () => {
    for (const [text, why] of [
      ['kind: Deployment', /not a v1 Pod/],
      ['[', /p\.yaml/],
      ['null', /not an object/],
      [base.replace('web', '../etc'), /metadata\.name/],
      [base.replace('{name: c, image: i}', ''), /spec\.containers/],
      [`${base}  serviceAccountName: x\n`, /service account/],
      [`${base}  volumes: [{name: v, secret: {secretName: s}}]\n`, /secret/],
      [`${base}  volumes: [{name: v, persistentVolumeClaim: {claimName: s}}]\n`, /volume claim/],
      [base.replace('image: i', 'image: i, envFrom: [{configMapRef: {name: m}}]'), /configmaps/],
      [`${base}metadata: {name: twice}\n`, /unique/],
      [`${base}  hostNetwork: maybe\n`, /hostNetwork/],
      [`${base}  restartPolicy: Sometimes\n`, /spec\.restartPolicy: Unsupported value/],
      [`${base}  ephemeralContainers: [{name: e, image: i}]\n`, /spec\.ephemeralContainers: .*cannot be set on create/],
      [`a: &a [x,x,x]\nb: &b [*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]\n${base}`, /alias/i],
    ] as const) {
      assert.throws(() => decodeStaticPod(text, context), { code: 'static-pod', message: why });
    }
  });
});

describe('environment and files of a container', () => {
  const pod: Pod = { metadata: { name: 'p', namespace: 'ns' }, spec: { containers: [] } };

  const budget = (limit = 4096): ExpansionBudget => new ExpansionBudget('a text', limit);

  it('references in environment variables are expanded once, and unknown references stay unchanged', () => {
    const lookup = (name: string): string | undefined => ({ A: '1', B: '$(A)' })[name];
    assert.equal(expand('$(A) $(B) $(C) $$(A) $A $( $$', lookup, budget()), '1 $(A) $(C) $(A) $A $( $');
  });

  it('expands references in time proportional to the length of the text', () => {
    const begun = performance.now();
    const open = '$('.repeat(500_000);
    assert.equal(
      expand(open, () => undefined, budget(4_000_000)),
      open,
    );
    assert.equal(
      expand('$$('.repeat(300_000), () => undefined, budget(4_000_000)),
      '$('.repeat(300_000),
    );
    assert.equal(
      expand('$(A$(B)$(', () => '1', budget()),
      '1$(',
    );
    assert.ok(performance.now() - begun < 1_000);
  });

  it('rejects an environment beyond the limit before building the environment', async () => {
    const none = async (): Promise<undefined> => undefined;
    const given = {
      pod,
      services: [],
      podIps: [],
      hostIps: [],
      allocatable: {},
      config: { configMap: none, secret: none, secretObject: none },
    };
    const refused = { message: /more than 1048576 bytes once references are expanded/ };
    const doubling = Array.from({ length: 40 }, (_, index) => ({
      name: `V${index}`,
      value: index === 0 ? 'x' : `$(V${index - 1})$(V${index - 1})`,
    }));
    const begun = performance.now();
    await assert.rejects(environmentOf({ ...given, container: { name: 'c', env: doubling } }), refused);
    const small = await environmentOf({ ...given, container: { name: 'c', env: doubling.slice(0, 15) } });
    assert.equal(small.at(-1)?.value.length, 2 ** 14);

    const annotated: Pod = { ...pod, metadata: { ...pod.metadata, annotations: { a: 'x'.repeat(250_000) } } };
    const env = Array.from({ length: 5_000 }, (_, index) => ({
      name: `A${index}`,
      valueFrom: { fieldRef: { fieldPath: 'metadata.annotations' } },
    }));
    await assert.rejects(environmentOf({ ...given, pod: annotated, container: { name: 'c', env } }), refused);

    const control = [{ name: 'C', value: '\u0001'.repeat(200_000) }];
    await assert.rejects(
      environmentOf({ ...given, container: { name: 'c', env: control } }),
      refused,
      'as written in JSON',
    );

    const services = Array.from({ length: 10_000 }, (_, index) => ({
      metadata: { name: `service-${index}`, namespace: 'ns' },
      spec: { clusterIP: '10.0.0.5', ports: [{ port: 80 }] },
    }));
    await assert.rejects(environmentOf({ ...given, services, container: { name: 'c' } }), refused);
    const unlinked: Pod = { ...pod, spec: { containers: [], enableServiceLinks: false } };
    assert.deepEqual(await environmentOf({ ...given, pod: unlinked, services, container: { name: 'c' } }), []);
    assert.ok(performance.now() - begun < 2_000);
  });

  it('decodes an object once for all environment variables that refer to it', async () => {
    let decoded = 0;
    const configMap = async (): Promise<Map<string, Uint8Array>> => {
      decoded += 1;
      return new Map([['key', Buffer.from('value')]]);
    };
    const none = async (): Promise<undefined> => undefined;
    const env = Array.from({ length: 1000 }, (_, index) => ({
      name: `V${index}`,
      valueFrom: { configMapKeyRef: { name: 'map', key: 'key' } },
    }));
    const config = { configMap, secret: none, secretObject: none };
    const given = { pod, services: [], podIps: [], hostIps: [], allocatable: {}, config };
    assert.equal((await environmentOf({ ...given, container: { name: 'c', env } })).length, 1000);
    assert.equal(decoded, 1);
  });

  it("the total size of the files of a pod's volumes is bounded, also if many files repeat one key", async () => {
    const data = new Map([['key', Buffer.alloc(1_000_000)]]);
    const none = async (): Promise<undefined> => undefined;
    const items = Array.from({ length: 10 }, (_, index) => ({ key: 'key', path: `file-${index}` }));
    const context = {
      config: { configMap: async () => data, secret: none, secretObject: none },
      podIps: [],
      hostIps: [],
      budget: budget(16 * 1024 * 1024),
    };
    let written = 0;
    const volumes = configMapType.create({
      directories: { volume: () => '/v' },
      files: {
        makeDirectory: async () => true,
        writeAtomically: async (_: string, files: ReadonlyMap<string, unknown>) => {
          written += files.size;
        },
      },
      clock: { nowMs: () => 0 },
      allocatable: () => ({}),
    } as unknown as DirectVolumeHost);
    const volume = { name: 'v', configMap: { name: 'm', items } };
    await volumes.setUp(pod, volume, context);
    assert.equal(written, 10);
    await assert.rejects(volumes.setUp(pod, volume, context), /more than 16777216 bytes/);
  });

  it('DNS options of a pod are parsed in linear time', () => {
    const options = Array.from({ length: 50_000 }, (_, index) => ({ name: `option-${index}` }));
    const own: Pod = { ...pod, spec: { containers: [], dnsPolicy: 'None', dnsConfig: { options } } };
    const begun = performance.now();
    const none = { servers: [], searches: [], options: [] };
    assert.equal(podDns(own, none, { servers: [], domain: '' }).options.length, 50_000);
    assert.ok(performance.now() - begun < 500);
  });

  it('environment variables for services have the names of Docker links', () => {
    const services = [
      {
        metadata: { name: 'db-main', namespace: 'ns' },
        spec: {
          clusterIP: '10.0.0.5',
          ports: [
            { port: 5432, name: 'pg' },
            { port: 53, protocol: 'UDP' },
          ],
        },
      },
      { metadata: { name: 'elsewhere', namespace: 'other' }, spec: { clusterIP: '10.0.0.6', ports: [{ port: 1 }] } },
      {
        metadata: { name: 'kubernetes', namespace: 'default' },
        spec: { clusterIP: '10.0.0.1', ports: [{ port: 443 }] },
      },
      { metadata: { name: 'headless', namespace: 'ns' }, spec: { clusterIP: 'None', ports: [{ port: 1 }] } },
    ];
    const env = serviceEnvironment(pod, services, budget());
    assert.equal(env.get('DB_MAIN_SERVICE_HOST'), '10.0.0.5');
    assert.equal(env.get('DB_MAIN_SERVICE_PORT_PG'), '5432');
    assert.equal(env.get('DB_MAIN_PORT'), 'tcp://10.0.0.5:5432');
    assert.equal(env.get('DB_MAIN_PORT_53_UDP_PROTO'), 'udp');
    assert.equal(env.get('KUBERNETES_SERVICE_HOST'), '10.0.0.1');
    assert.ok(![...env.keys()].some((name) => name.startsWith('ELSEWHERE') || name.startsWith('HEADLESS')));
  });

  it('a pod resolves names according to its DNS policy', () => {
    const host = parseResolvConf('nameserver 9.9.9.9\nsearch corp.example\noptions ndots:2 timeout:1\n');
    const cluster = { servers: ['172.30.0.10'], domain: 'cluster.local' };
    assert.deepEqual(podDns(pod, host, cluster), {
      servers: ['172.30.0.10'],
      searches: ['ns.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'corp.example'],
      options: ['ndots:5'],
    });
    const onHost: Pod = { ...pod, spec: { containers: [], hostNetwork: true } };
    assert.deepEqual(podDns(onHost, host, cluster), host);
    const own: Pod = {
      ...pod,
      spec: {
        containers: [],
        dnsPolicy: 'None',
        dnsConfig: { nameservers: ['1.1.1.1'], options: [{ name: 'ndots', value: '1' }] },
      },
    };
    assert.deepEqual(podDns(own, host, cluster), { servers: ['1.1.1.1'], searches: [], options: ['ndots:1'] });
  });

  it('gives a pod its own host name, and its names and aliases in the hosts file', () => {
    const named: Pod = {
      ...pod,
      spec: {
        containers: [],
        hostname: 'web',
        subdomain: 'sub',
        hostAliases: [{ ip: '1.2.3.4', hostnames: ['x', 'y'] }],
      },
    };
    assert.equal(podHostname(named, 'node'), 'web');
    assert.equal(podHostname({ ...pod, metadata: { name: `${'a'.repeat(62)}-b` } }, 'node'), 'a'.repeat(62));
    const hosts = hostsFile(named, ['10.1.1.1'], 'web', { clusterDomain: 'cluster.local', hostFile: '' });
    assert.match(hosts, /^10\.1\.1\.1\tweb\.sub\.ns\.svc\.cluster\.local\tweb$/m);
    assert.match(hosts, /^1\.2\.3\.4\tx\ty$/m);
    const overridden = { ...named, spec: { ...named.spec, hostnameOverride: 'app.example.com' } } as Pod;
    assert.equal(podHostname(overridden, 'node'), 'app.example.com');
    assert.match(
      hostsFile(overridden, ['10.1.1.1'], 'app.example.com', { clusterDomain: 'cluster.local', hostFile: '' }),
      /^10\.1\.1\.1\tapp\.example\.com$/m,
    );
  });
});
