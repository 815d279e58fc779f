/** Templates and image streams with the packaged executable: the requests of `oc`, without a registry. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { busyboxLayer, writeDockerArchive } from '../../build/docker-archive.ts';
import { Appliance, eventually } from './harness.ts';

const IMAGE = '/apis/image.openshift.io/v1/namespaces/shop';
const TEMPLATE = '/apis/template.openshift.io/v1/namespaces/shop';

let appliance: Appliance;
let scratch: string;

/** Imports an archive with an image that prints `version`. */
async function importApp(version: string): Promise<void> {
  const archive = join(scratch, `app-${version}.tar`);
  const config = {
    Env: ['PATH=/bin', `VERSION=${version}`],
    Cmd: ['/bin/sh', '-c', 'echo version $VERSION; while :; do sleep 1; done'],
    ExposedPorts: { '8080/tcp': {} },
  };
  await writeDockerArchive(archive, [{ tag: 'lab.local/app:1', layers: [await busyboxLayer()], config }]);
  const ran = await appliance.hyperedge(['image', 'import', '--root', appliance.root, archive]);
  assert.equal(ran.code, 0, ran.stderr);
}

async function post<T>(path: string, body: object): Promise<T> {
  return JSON.parse(await appliance.must(['create', '--raw', path, '-f', '-'], { input: JSON.stringify(body) })) as T;
}

async function get<T>(path: string): Promise<T> {
  return JSON.parse(await appliance.must(['get', '--raw', path])) as T;
}

const apply = (object: object): Promise<string> =>
  appliance.must(['apply', '-f', '-'], { input: JSON.stringify(object) });

const template = (objects: readonly object[], parameters: readonly object[]) => ({
  apiVersion: 'template.openshift.io/v1',
  kind: 'Template',
  metadata: { name: 't', namespace: 'shop' },
  labels: { made: 'by-template' },
  parameters,
  objects,
});

interface Imported {
  readonly status: {
    readonly images: readonly { readonly status: { readonly status: string; readonly message?: string } }[];
  };
}

const importRequest = (name: string) => ({
  apiVersion: 'image.openshift.io/v1',
  kind: 'ImageStreamImport',
  metadata: { name: 'app', namespace: 'shop' },
  spec: { import: true, images: [{ from: { kind: 'DockerImage', name }, to: { name: '1' } }] },
});

interface StreamTag {
  readonly image: {
    readonly metadata: { readonly name: string };
    readonly dockerImageReference: string;
    readonly dockerImageMetadata: { readonly Config?: { readonly ExposedPorts?: object } };
  };
}

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'he-templates-'));
  appliance = await Appliance.create();
  await appliance.start(180_000);
  await appliance.must(['create', 'namespace', 'shop']);
});

after(async () => {
  await appliance?.stop();
  await rm(scratch, { recursive: true, force: true });
});

test('processes a template on the server and applies the result', async () => {
  const objects = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', namespace: 'other' }, data: { pw: '${PW}' } },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' }, spec: { replicas: '${{N}}' } },
  ];
  const parameters = [
    { name: 'N', value: '3', required: true },
    { name: 'PW', generate: 'expression', from: '[a-zA-Z0-9]{12}' },
  ];
  interface Processed {
    readonly objects: readonly {
      readonly metadata: { readonly namespace?: string; readonly labels: object };
      readonly data?: { readonly pw: string };
      readonly spec?: { readonly replicas: number };
    }[];
  }
  const { objects: made } = await post<Processed>(`${TEMPLATE}/processedtemplates`, template(objects, parameters));
  assert.match(made[0]?.data?.pw ?? '', /^[a-zA-Z0-9]{12}$/);
  assert.equal(made[0]?.metadata.namespace, undefined);
  assert.deepEqual(made[0]?.metadata.labels, { made: 'by-template' });
  assert.equal(made[1]?.spec?.replicas, 3);

  const bad = template(objects, [{ name: 'PW', generate: 'expression', from: '[a-z]{999999}' }]);
  const refused = await appliance.kubectl(['create', '--raw', `${TEMPLATE}/processedtemplates`, '-f', '-'], {
    input: JSON.stringify(bad),
  });
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /parameters\[0\]\.from.*range must be within \[1-255\] characters/);
  const many = template(
    Array.from({ length: 10_000 }, () => objects[0] ?? {}),
    parameters,
  );
  const tooMany = await appliance.kubectl(['create', '--raw', `${TEMPLATE}/processedtemplates`, '-f', '-'], {
    input: JSON.stringify(many),
  });
  assert.match(tooMany.stderr, /objects.*Too many/);
});

test('creates objects of a template instance with the permissions of its requester only', async () => {
  const objects = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: '${NAME}' }, data: { a: 'b' } },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: '${NAME}' }, stringData: { a: 'b' } },
  ];
  const instance = (name: string) => ({
    apiVersion: 'template.openshift.io/v1',
    kind: 'TemplateInstance',
    metadata: { name, namespace: 'shop' },
    // A requester in the request is ignored.
    spec: {
      template: template(objects, [{ name: 'NAME', value: name }]),
      requester: { username: 'system:admin', groups: ['system:masters'] },
    },
  });
  await appliance.must(['create', 'role', 'maps', '-n', 'shop', '--verb=create,get,delete', '--resource=configmaps']);
  await appliance.must([
    'create',
    'role',
    'ti',
    '-n',
    'shop',
    '--verb=create,get',
    '--resource=templateinstances.template.openshift.io,processedtemplates.template.openshift.io',
  ]);
  for (const role of ['maps', 'ti'])
    await appliance.must(['create', 'rolebinding', role, '-n', 'shop', `--role=${role}`, '--user=dev']);
  const dev = ['--as=dev', '--as-group=system:authenticated'];
  await appliance.must([...dev, 'create', '-f', '-'], { input: JSON.stringify(instance('poor')) });
  await appliance.must(['create', '-f', '-'], { input: JSON.stringify(instance('rich')) });
  const conditionOf = (name: string, type: string): Promise<string> =>
    eventually(`${name} ${type}`, 30_000, async () => {
      const path = `jsonpath={.status.conditions[?(@.type=="${type}")].message}|{.status.conditions[?(@.type=="${type}")].status}`;
      const text = await appliance.must(['get', 'templateinstances', name, '-n', 'shop', '-o', path]);
      return text.endsWith('|True') ? text : undefined;
    });
  assert.match(await conditionOf('poor', 'InstantiateFailure'), /secrets is forbidden: User "dev" cannot create/);
  assert.notEqual((await appliance.kubectl(['get', 'configmap', 'poor', '-n', 'shop'])).code, 0);
  await conditionOf('rich', 'Ready');
  await appliance.must(['get', 'configmap/rich', 'secret/rich', '-n', 'shop']);
  const requester = 'jsonpath={.spec.requester.username}';
  assert.equal(await appliance.must(['get', 'templateinstances', 'poor', '-n', 'shop', '-o', requester]), 'dev');
  await appliance.must(['delete', 'templateinstances', 'rich', 'poor', '-n', 'shop', '--timeout=30s']);
  const left = await appliance.kubectl(['get', 'secret', 'rich', '-n', 'shop']);
  assert.match(left.stderr, /not found/);
});

test("imports an image of the host's store into an image stream, and pods and triggers follow its tag", async () => {
  const unknown = await post<Imported>(`${IMAGE}/imagestreamimports`, importRequest('lab.local/none:1'));
  assert.equal(unknown.status.images[0]?.status.status, 'Failure');
  assert.match(unknown.status.images[0]?.status.message ?? '', /lab\.local\/none:1" not found/);
  await importApp('one');
  await eventually('imported', 60_000, async () => {
    const imported = await post<Imported>(`${IMAGE}/imagestreamimports`, importRequest('lab.local/app:1'));
    return imported.status.images[0]?.status.status === 'Success' ? true : undefined;
  });
  const first = await eventually('configuration of the image', 30_000, async () => {
    const tag = await get<StreamTag>(`${IMAGE}/imagestreamtags/app:1`);
    return tag.image.dockerImageMetadata.Config?.ExposedPorts === undefined ? undefined : tag;
  });
  assert.match(first.image.dockerImageReference, /^lab\.local\/app@sha256:[0-9a-f]{64}$/);
  assert.match(await appliance.must(['get', 'is', '-n', 'shop']), /NAME +IMAGE REPOSITORY +TAGS +UPDATED\napp +1 /);
  assert.match(await appliance.must(['get', 'istag', '-n', 'shop']), /app:1 +lab\.local\/app@sha256/);
  await get(`${IMAGE}/imagestreamimages/app@${first.image.metadata.name}`);

  await appliance.must([
    'patch',
    'is',
    'app',
    '-n',
    'shop',
    '--type=merge',
    '-p',
    '{"spec":{"lookupPolicy":{"local":true}}}',
  ]);
  const container = { name: 'app', image: 'app:1' };
  await apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'local', namespace: 'shop' },
    spec: { terminationGracePeriodSeconds: 0, containers: [container] },
  });
  const image = await appliance.must([
    'get',
    'pod',
    'local',
    '-n',
    'shop',
    '-o',
    'jsonpath={.spec.containers[0].image}',
  ]);
  assert.equal(image, first.image.dockerImageReference);
  await eventually('the pod runs', 60_000, async () =>
    /version one/.test((await appliance.kubectl(['logs', 'local', '-n', 'shop'])).stdout) ? true : undefined,
  );

  const from = { kind: 'ImageStreamTag', name: 'app:1' };
  const fieldPath = 'spec.template.spec.containers[?(@.name=="app")].image';
  await apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: 'follows',
      namespace: 'shop',
      annotations: { 'image.openshift.io/triggers': JSON.stringify([{ from, fieldPath }]) },
    },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: 'follows' } },
      template: {
        metadata: { labels: { app: 'follows' } },
        spec: { containers: [{ name: 'app', image: 'example.com/later' }] },
      },
    },
  });
  const followed = (wanted: string): Promise<true> =>
    eventually('trigger', 30_000, async () => {
      const path = 'jsonpath={.spec.template.spec.containers[0].image}';
      return (await appliance.must(['get', 'deploy', 'follows', '-n', 'shop', '-o', path])) === wanted
        ? true
        : undefined;
    });
  await followed(first.image.dockerImageReference);
  await importApp('two');
  const second = await eventually('second image', 60_000, async () => {
    await post<Imported>(`${IMAGE}/imagestreamimports`, importRequest('lab.local/app:1'));
    const tag = await get<StreamTag>(`${IMAGE}/imagestreamtags/app:1`);
    return tag.image.metadata.name === first.image.metadata.name ? undefined : tag;
  });
  await followed(second.image.dockerImageReference);
});

test('writes and deletes tags of an image stream as imagestreamtags', async () => {
  const tag = (name: string, from: object) => ({
    apiVersion: 'image.openshift.io/v1',
    kind: 'ImageStreamTag',
    metadata: { name, namespace: 'shop' },
    tag: { name: 'prod', from },
  });
  await post(`${IMAGE}/imagestreamtags`, tag('app:prod', { kind: 'ImageStreamTag', name: 'app:1' }));
  const [one, prod] = await Promise.all(
    ['app:1', 'app:prod'].map((name) => get<StreamTag>(`${IMAGE}/imagestreamtags/${name}`)),
  );
  assert.equal(prod?.image.metadata.name, one?.image.metadata.name);
  const label = '{"tag":{"annotations":{"by":"test"}}}';
  await appliance.must(['patch', 'istag', 'app:prod', '-n', 'shop', '--type=merge', '-p', label]);
  const patched = await appliance.must([
    'get',
    'is',
    'app',
    '-n',
    'shop',
    '-o',
    'jsonpath={.spec.tags[*].annotations.by}',
  ]);
  assert.equal(patched, 'test');
  await appliance.must(['delete', 'istag', 'app:prod', '-n', 'shop']);
  assert.notEqual((await appliance.kubectl(['get', 'istag', 'app:prod', '-n', 'shop'])).code, 0);
  const image = { metadata: { name: prod?.image.metadata.name }, dockerImageReference: 'lab.local/mapped:1' };
  await post(`${IMAGE}/imagestreammappings`, {
    apiVersion: 'image.openshift.io/v1',
    kind: 'ImageStreamMapping',
    metadata: { name: 'app', namespace: 'shop' },
    image,
    tag: 'mapped',
  });
  const mapped = await get<StreamTag>(`${IMAGE}/imagestreamtags/app:mapped`);
  assert.equal(mapped.image.dockerImageReference, 'lab.local/mapped:1');
  const layers = await get<{ readonly images: object }>(`${IMAGE}/imagestreams/app/layers`);
  assert.ok(Object.hasOwn(layers.images, prod?.image.metadata.name ?? ''));
  assert.equal((await get<{ readonly kind: string }>(`${IMAGE}/imagestreams/app/secrets`)).kind, 'SecretList');
  await post('/apis/image.openshift.io/v1/imagesignatures', {
    apiVersion: 'image.openshift.io/v1',
    kind: 'ImageSignature',
    metadata: { name: `${prod?.image.metadata.name}@one` },
    type: 'atomic',
    content: 'c2ln',
  });
  const signed = ['get', 'images', prod?.image.metadata.name ?? '', '-o', 'jsonpath={.signatures[0].type}'];
  assert.equal(await appliance.must(signed), 'atomic');

  const dev = ['--as=dev', '--as-group=system:authenticated'];
  await appliance.must([...dev, 'get', 'istag', 'tools:latest', '-n', 'openshift']);
  await appliance.must(['create', 'namespace', 'else']);
  await appliance.must(['create', 'rolebinding', 'dev', '-n', 'else', '--clusterrole=edit', '--user=dev']);
  const elsewhere = '/apis/image.openshift.io/v1/namespaces/else/imagestreamtags';
  const stolen = {
    ...tag('mine:1', { kind: 'ImageStreamTag', name: 'app:1', namespace: 'shop' }),
    metadata: { name: 'mine:1', namespace: 'else' },
  };
  const refused = await appliance.kubectl([...dev, 'create', '--raw', elsewhere, '-f', '-'], {
    input: JSON.stringify(stolen),
  });
  assert.match(refused.stderr, /cannot get resource "imagestreams\/layers".*in the namespace "shop"/);
  await apply({
    apiVersion: 'image.openshift.io/v1',
    kind: 'ImageStream',
    metadata: { name: 'declared', namespace: 'shop' },
    spec: { tags: [{ name: 'x', from: { kind: 'DockerImage', name: 'lab.local/app:1' } }] },
  });
  await eventually('tag of an applied stream', 40_000, async () =>
    (await appliance.kubectl(['get', 'itag', 'declared:x', '-n', 'shop'])).stdout.includes('sha256:')
      ? true
      : undefined,
  );
});

test("runs the pod of oc debug node with the host's programs, and refuses the programs to unprivileged pods", async () => {
  const tools = await eventually('openshift/tools', 40_000, async () => {
    const ran = await appliance.kubectl([
      'get',
      '--raw',
      '/apis/image.openshift.io/v1/namespaces/openshift/imagestreamtags/tools:latest',
    ]);
    const reference = ran.code === 0 ? (JSON.parse(ran.stdout) as StreamTag).image.dockerImageReference : undefined;
    return reference === undefined || reference === '' ? undefined : reference;
  });
  const node = await appliance.must(['get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}']);
  const pod = (name: string, privileged: boolean) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop' },
    spec: {
      nodeName: node,
      hostNetwork: true,
      hostPID: true,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      volumes: [{ name: 'host', hostPath: { path: '/', type: 'Directory' } }],
      containers: [
        {
          name: 'container-00',
          image: tools,
          command: ['chroot', '/host', 'true'],
          stdin: true,
          stdinOnce: true,
          tty: true,
          securityContext: { privileged, runAsUser: 0 },
          volumeMounts: [{ name: 'host', mountPath: '/host' }],
        },
      ],
    },
  });
  await apply(pod('debug', true));
  const phase = await eventually('debug pod', 60_000, async () => {
    const text = await appliance.must(['get', 'pod', 'debug', '-n', 'shop', '-o', 'jsonpath={.status.phase}']);
    return text === 'Succeeded' || text === 'Failed' ? text : undefined;
  });
  assert.equal(phase, 'Succeeded');
  const refused = await appliance.kubectl(['apply', '-f', '-'], { input: JSON.stringify(pod('plain', false)) });
  assert.match(refused.stderr, /hyperedge\.local\/host-root is reserved/);
});

test("runs oc adm must-gather with the host's programs, without access to other host files", async () => {
  const namespace = 'openshift-must-gather-e2e';
  await appliance.must(['create', 'namespace', namespace]);
  const account = `${namespace}:default`;
  await appliance.must([
    'create',
    'clusterrolebinding',
    'gather',
    '--clusterrole=cluster-admin',
    `--serviceaccount=${account}`,
  ]);
  const image = await appliance.must([
    ...['get', 'istag', 'must-gather:latest', '-n', 'openshift', '-o', 'jsonpath={.image.dockerImageReference}'],
  ]);
  const check = 'ls -d /etc/origin /etc/shadow /var/lib /root; ls /etc; ls -R /must-gather';
  await eventually('admitted', 20_000, async () => {
    const ran = await appliance.kubectl(['apply', '-f', '-'], {
      input: JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'gather', namespace },
        spec: {
          nodeSelector: { 'node-role.kubernetes.io/master': '' },
          restartPolicy: 'Never',
          terminationGracePeriodSeconds: 0,
          tolerations: [{ operator: 'Exists' }],
          volumes: [{ name: 'out', emptyDir: {} }],
          containers: [
            {
              name: 'gather',
              image,
              command: ['/bin/bash', '-c', `/usr/bin/gather; sync; ${check}`],
              volumeMounts: [{ name: 'out', mountPath: '/must-gather' }],
            },
          ],
        },
      }),
    });
    return ran.code === 0 ? true : undefined;
  });
  const log = await eventually('gathered', 60_000, async () => {
    const phase = await appliance.must(['get', 'pod', 'gather', '-n', namespace, '-o', 'jsonpath={.status.phase}']);
    if (phase !== 'Succeeded' && phase !== 'Failed') return undefined;
    return appliance.must(['logs', 'gather', '-n', namespace]);
  });
  assert.match(log, /Wrote what was gathered to \/must-gather; 0 parts are missing/, log);
  assert.match(log, /\/must-gather\/cluster-scoped-resources\/core\/nodes:\n\S+\.yaml/);
  assert.doesNotMatch(log, /secrets\.yaml|oauthaccesstokens/);
  for (const path of ['/etc/origin', '/etc/shadow', '/var/lib', '/root'])
    assert.match(log, new RegExp(`cannot access '${path}'`), path);
});
