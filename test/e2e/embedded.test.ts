/** Embedded features beyond upstream's components, with the packaged executable and real kubectl. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { writeHelloImage } from '../../build/hello-image.ts';
import { Appliance, eventually } from './harness.ts';
import { helloImage } from './images.ts';

let appliance: Appliance;
let manifests: string;

const REGISTRY_PORT = 5997;

const burner = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: burner}
spec:
  replicas: 1
  selector: {matchLabels: {app: burner}}
  template:
    metadata: {labels: {app: burner}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: burner
          image: ${helloImage}
          command: [sh, -c, 'while :; do :; done']
          resources: {requests: {cpu: 50m}, limits: {cpu: 200m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: burner}
spec:
  minReplicas: 1
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: burner}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`;

const settings = (name: string, value: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {value: ${value}}\n`;

before(async () => {
  appliance = await Appliance.create();
  manifests = join(appliance.root, 'etc/origin/manifests');
  const drops = join(appliance.root, 'var/lib/origin/images.d');
  await mkdir(manifests, { recursive: true });
  await mkdir(drops, { recursive: true });
  await writeHelloImage(join(drops, 'hello.tar'));
  await writeFile(join(drops, 'broken.tar'), 'no archive');
  await writeFile(join(manifests, 'burner.yaml'), burner);
  await writeFile(join(manifests, 'broken.yaml'), 'kind: [');
  await writeFile(join(manifests, 'pair.yaml'), `${settings('one', 'a')}---\n${settings('two', 'a')}`);
  await writeFile(join(manifests, 'left-out.yaml'), settings('left-out', 'a'));
  await writeFile(join(manifests, 'left-out.yaml.skip'), '');
  await appliance.start(180_000);
});

after(async () => {
  await appliance?.stop();
});

test('imports and pins archives in the drop directory, and reports a broken archive on the Node', async () => {
  await eventually('the dropped image', 120_000, async () => {
    const listed = await appliance.hyperedge(['image', 'list', '-o', 'json', '--root', appliance.root]);
    const images: { repoTags: string[]; pinned?: boolean }[] = JSON.parse(listed.stdout);
    return images.some((each) => each.repoTags.includes(helloImage) && each.pinned === true) ? true : undefined;
  });
  await eventually('the event', 60_000, async () => {
    const events = await appliance.must(['get', 'events', '-A', '-o', 'jsonpath={.items[*].reason}']);
    return events.includes('ImageImportFailed') ? true : undefined;
  });
});

test('applies, updates and prunes the deploy directory; a broken file does not affect other files', async () => {
  const value = (name: string): Promise<string> =>
    appliance.must(['get', 'configmap', name, '--ignore-not-found', '-o', 'jsonpath={.data.value}']);
  await eventually('both objects', 120_000, async () =>
    (await value('one')) === 'a' && (await value('two')) === 'a' ? true : undefined,
  );
  assert.equal(await value('left-out'), '');
  await eventually('state of the broken file', 30_000, async () => {
    const states = await appliance.must([
      ...['get', 'configmaps', '-n', 'kube-system', '-l', 'hyperedge.dev/manifest'],
      ...['-o', 'jsonpath={range .items[*]}{.data.file}={.data.state}{"\\n"}{end}'],
    ]);
    return states.includes('broken.yaml=Failed') && states.includes('pair.yaml=Applied') ? true : undefined;
  });
  await writeFile(join(manifests, 'pair.yaml'), settings('one', 'b'));
  await eventually('change and prune', 60_000, async () =>
    (await value('one')) === 'b' && (await value('two')) === '' ? true : undefined,
  );
  await rm(join(manifests, 'pair.yaml'));
  await eventually('removal', 60_000, async () => ((await value('one')) === '' ? true : undefined));
});

test('kubectl top shows nodes and pods, and an autoscaled workload scales under load', async () => {
  const service = await appliance.must(['get', 'apiservice', 'v1beta1.metrics.k8s.io', '--no-headers']);
  assert.match(service, /Local +True/);
  await eventually('running pod', 120_000, async () => {
    const pods = await appliance.must(['get', 'pods', '-l', 'app=burner', '--no-headers']);
    return / Running /.test(pods) ? true : undefined;
  });
  const nodes = await eventually('top nodes', 60_000, async () => {
    const top = await appliance.kubectl(['top', 'nodes', '--no-headers']);
    return top.code === 0 ? top.stdout : undefined;
  });
  assert.match(nodes, /\d+m +\d+% +\d+Mi +\d+%/);
  const pods = await eventually('top pods', 60_000, async () => {
    const top = await appliance.kubectl(['top', 'pods', '-l', 'app=burner', '--no-headers']);
    return top.code === 0 && /\d+m/.test(top.stdout) ? top.stdout : undefined;
  });
  assert.match(pods, /^burner-\S+ +\d+m +\d+Mi/);
  assert.match(await appliance.must(['get', 'podmetrics', '-l', 'app=burner']), /NAME +CPU +MEMORY +WINDOW\nburner-/);
  await eventually('three replicas', 150_000, async () => {
    const replicas = await appliance.must(['get', 'deployment', 'burner', '-o', 'jsonpath={.spec.replicas}']);
    return replicas === '3' ? true : undefined;
  });
  const node = (await appliance.must(['get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}'])).trim();
  const raw = (path: string): Promise<string> =>
    appliance.must(['get', '--raw', `/api/v1/nodes/${node}/proxy/${path}`]);
  assert.match(await raw('metrics/cadvisor'), /container_memory_working_set_bytes\{container="burner"/);
  assert.match(await raw('metrics/probes'), /prober_probe_total\{.*result="successful"\}/);
  assert.equal(JSON.parse(await raw('configz')).kubeletconfig.maxPods, 250);
});

test("serves metrics from a user's APIService, and from the built-in API after the APIService is deleted", async () => {
  const theirs = {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1beta1.metrics.k8s.io' },
    spec: {
      group: 'metrics.k8s.io',
      version: 'v1beta1',
      service: { namespace: 'kube-system', name: 'metrics-server' },
      insecureSkipTLSVerify: true,
      groupPriorityMinimum: 100,
      versionPriority: 100,
    },
  };
  await appliance.must(['apply', '-f', '-'], { input: JSON.stringify(theirs) });
  await eventually('a request to their server', 30_000, async () => {
    const top = await appliance.kubectl(['get', '--raw', '/apis/metrics.k8s.io/v1beta1/nodes']);
    return top.code !== 0 ? true : undefined;
  });
  await appliance.must(['delete', 'apiservice', 'v1beta1.metrics.k8s.io']);
  await eventually('our event', 30_000, async () => {
    const service = await appliance.kubectl(['get', 'apiservice', 'v1beta1.metrics.k8s.io', '--no-headers']);
    return /Local +True/.test(service.stdout) ? true : undefined;
  });
  await appliance.must(['top', 'nodes']);
});

test('reports ErrImagePull with the reason for a layer that claims 100 GB', async () => {
  const script = fileURLToPath(new URL('bad-registry.child.ts', import.meta.url));
  const registry = appliance.spawnInside(process.execPath, [script, String(REGISTRY_PORT)]);
  try {
    await appliance.must(['run', 'huge', `--image=127.0.0.1:${REGISTRY_PORT}/huge:1`]);
    const event = await eventually('the event', 60_000, async () => {
      const events = await appliance.must(['get', 'events', '-o', 'jsonpath={range .items[*]}{.message}{"\\n"}{end}']);
      return /Failed to pull image .*has 107374182400 bytes.*/.exec(events)?.[0];
    });
    assert.match(event, /more than the limit of 64\.0 GiB/);
    await eventually('waiting reason', 60_000, async () => {
      const pod = await appliance.must(['get', 'pod', 'huge', '--no-headers']);
      return /ErrImagePull|ImagePullBackOff/.test(pod) ? true : undefined;
    });
  } finally {
    registry.kill();
  }
});

test('a host imports an image that was exported from another host', async () => {
  const file = join(appliance.root, 'exported.tar');
  const exported = await appliance.hyperedge([
    'image',
    'export',
    helloImage,
    '--output',
    file,
    '--root',
    appliance.root,
  ]);
  assert.equal(exported.code, 0, exported.stderr);
  const other = join(appliance.root, 'other');
  await mkdir(other);
  const imported = await appliance.hyperedge(['image', 'import', file, '--root', other]);
  assert.match(imported.stdout, /^imported hyperedge\.local\/hello:1/, imported.stderr);
  const verified = await appliance.hyperedge(['image', 'verify', '--root', other]);
  assert.equal(verified.code, 0, verified.stderr);
});
