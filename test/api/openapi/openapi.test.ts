import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openapiV2 } from '../../../src/api/openapi/v2.ts';
import { encodeOpenapiV2 } from '../../../src/api/openapi/v2-protobuf.ts';
import { openapiV3, openapiV3Index, openapiV3Paths } from '../../../src/api/openapi/v3.ts';
import { builtinKinds } from '../../../src/api/registry/index.ts';
import { Reader } from '../../../src/wire/protobuf/protobuf.ts';
import { type DocumentsServer, descriptions, serveDocuments } from './documents-server.ts';

/** Every `$ref` in a document. */
function references(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value)) {
      if (key === '$ref' && typeof each === 'string') found.add(each);
      else references(each, found);
    }
  }
  return found;
}

test('every reference in every OpenAPI document exists', () => {
  const v2 = openapiV2(builtinKinds, descriptions);
  for (const reference of references(v2))
    assert.ok(reference.slice('#/definitions/'.length) in v2.definitions, reference);
  for (const path of openapiV3Paths(builtinKinds)) {
    const document = openapiV3(builtinKinds, path, descriptions);
    assert.ok(document);
    for (const reference of references(document)) {
      assert.ok(
        reference.slice('#/components/schemas/'.length) in (document.components.schemas ?? {}),
        `${path} ${reference}`,
      );
    }
  }
  assert.equal(openapiV3(builtinKinds, 'apis/nope/v1', descriptions), undefined);
});

test('operation IDs are unique in the OpenAPI documents', () => {
  const ids = Object.values(openapiV2(builtinKinds, descriptions).paths).flatMap((item) =>
    [item.get, item.put, item.post, item.delete, item.options, item.head, item.patch].flatMap((each) =>
      each === undefined ? [] : [each.operationId],
    ),
  );
  assert.equal(new Set(ids).size, ids.length);
  // Generated clients name their methods after these IDs. Source: upstream's published documents.
  for (const id of [
    'listCoreV1PodForAllNamespaces',
    'listCoreV1NamespacedPod',
    'deleteCoreV1CollectionNamespacedPod',
    'watchCoreV1PodListForAllNamespaces',
    'watchCoreV1NamespacedPodList',
    'watchCoreV1NamespacedPod',
    'connectCoreV1OptionsNamespacedPodProxyWithPath',
    'connectCoreV1PostNamespacedPodExec',
    'createCoreV1NamespacedPodEviction',
    'readCoreV1NamespacedPodLog',
    'patchRbacAuthorizationV1ClusterRole',
    'getFlowcontrolApiserverAPIGroup',
    'getCoreV1APIResources',
    'getCodeVersion',
  ])
    assert.ok(ids.includes(id), id);
});

test('publishes strategic merge patch and dry run for every kind as clients expect', () => {
  const document = openapiV3(builtinKinds, 'apis/apps/v1', descriptions);
  const item = document?.paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}'] as {
    patch: {
      parameters: { name: string; in: string }[];
      requestBody: { content: object };
      'x-kubernetes-group-version-kind': object;
    };
  };
  assert.deepEqual(item.patch['x-kubernetes-group-version-kind'], { group: 'apps', kind: 'Deployment', version: 'v1' });
  const names = item.patch.parameters.map((each) => each.name);
  assert.ok(names.includes('dryRun') && names.includes('fieldValidation') && names.includes('force'));
  assert.ok('application/strategic-merge-patch+json' in item.patch.requestBody.content);
});

test('OpenAPI definitions include the extensions for strategic merge patches', () => {
  const { definitions } = openapiV2(builtinKinds, descriptions);
  const spec = definitions['io.k8s.api.core.v1.PodSpec'] as { properties: Record<string, Record<string, unknown>> };
  assert.equal(spec.properties['volumes']?.['x-kubernetes-patch-strategy'], 'merge,retainKeys');
  assert.equal(spec.properties['containers']?.['x-kubernetes-patch-merge-key'], 'name');
  assert.deepEqual(spec.properties['topologySpreadConstraints']?.['x-kubernetes-list-map-keys'], [
    'topologyKey',
    'whenUnsatisfiable',
  ]);
  const pod = definitions['io.k8s.api.core.v1.Pod'] as Record<string, unknown>;
  assert.deepEqual(pod['x-kubernetes-group-version-kind'], [{ group: '', kind: 'Pod', version: 'v1' }]);
});

test('the protobuf form of OpenAPI contains every definition', () => {
  const document = openapiV2(builtinKinds, descriptions);
  const bytes = encodeOpenapiV2(document);
  const reader = new Reader(bytes);
  const names: string[] = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field !== 9) {
      reader.skip();
      continue;
    }
    const definitions = new Reader(reader.bytes());
    while (definitions.field() === 1) {
      const named = new Reader(definitions.bytes());
      assert.equal(named.field(), 1);
      names.push(named.string());
    }
  }
  assert.deepEqual(names, Object.keys(document.definitions));
});

test('publishes enumerations in both versions and in protobuf', () => {
  const POLICIES = ['Always', 'Never', 'OnFailure'];
  const v2 = openapiV2(builtinKinds, descriptions);
  const v3 = openapiV3(builtinKinds, 'api/v1', descriptions)?.components.schemas ?? {};
  const field = (schemas: object, type: string, name: string): Record<string, unknown> => {
    const found = (schemas as Record<string, { properties: Record<string, Record<string, unknown>> }>)[type];
    return found?.properties[name] ?? {};
  };
  for (const schemas of [v2.definitions, v3]) {
    const { enum: values, description } = field(schemas, 'io.k8s.api.core.v1.PodSpec', 'restartPolicy');
    assert.deepEqual(values, POLICIES);
    assert.match(String(description), /\n\nPossible enum values:\n - `"Always"`\n - `"Never"`\n - `"OnFailure"`$/);
    const modes = field(schemas, 'io.k8s.api.core.v1.PersistentVolumeClaimSpec', 'accessModes');
    assert.deepEqual((modes['items'] as { enum: string[] }).enum.length, 4);
    assert.equal(modes['enum'], undefined);
    const statuses = field(schemas, 'io.k8s.api.core.v1.PersistentVolumeClaimStatus', 'allocatedResourceStatuses');
    assert.ok((statuses['additionalProperties'] as { enum: string[] }).enum.includes('NodeResizePending'));
    assert.equal((field(schemas, 'io.k8s.api.core.v1.HostPathVolumeSource', 'type')['enum'] as string[])[0], '');
    assert.equal(field(schemas, 'io.k8s.api.core.v1.PodSpec', 'nodeName')['enum'], undefined);
  }
  // Each value is a message with YAML text as its second field.
  const encoded = Buffer.from(encodeOpenapiV2(v2));
  for (const value of POLICIES) assert.ok(encoded.includes(`\x12${String.fromCharCode(value.length + 2)}"${value}"`));
});

test('the index of OpenAPI v3 has the hash of each document', () => {
  const index = openapiV3Index(openapiV3Paths(builtinKinds), (path) => `${path}+/=`);
  assert.equal(
    index.paths['apis/apps/v1']?.serverRelativeURL,
    '/openapi/v3/apis/apps/v1?hash=apis%2Fapps%2Fv1%2B%2F%3D',
  );
  assert.ok('api/v1' in index.paths);
});

let server: DocumentsServer | undefined;
let home = '';

before(async () => {
  server = await serveDocuments();
  home = await mkdtemp(join(tmpdir(), 'hyperedge-openapi-'));
});

after(async () => {
  await server?.close();
  await rm(home, { recursive: true, force: true });
});

interface Answer {
  readonly code: number;
  readonly text: string;
}

function kubectl(...args: string[]): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    execFile(
      'kubectl',
      ['--server', server?.url ?? '', ...args],
      { env: { PATH: process.env['PATH'], HOME: home } },
      (error, stdout, stderr) => {
        if (error?.code === 'ENOENT') resolve(undefined);
        else resolve({ code: typeof error?.code === 'number' ? error.code : 0, text: stdout + stderr });
      },
    );
  });
}

test('serves kubectl explain, api-resources and client-side validation', async (t) => {
  const listed = await kubectl('api-resources', '--no-headers');
  if (listed === undefined) return t.skip('kubectl is not installed');
  assert.match(listed.text, /^deployments +deploy +apps\/v1 +true +Deployment$/m);
  const explained = await kubectl('explain', 'deploy.spec.strategy.rollingUpdate.maxSurge');
  assert.match(
    explained?.text ?? '',
    /FIELD: maxSurge <IntOrString>[\s\S]*maximum number of pods that can be scheduled/,
  );
  const policy = await kubectl('explain', 'pod.spec.restartPolicy');
  assert.match(policy?.text ?? '', /Possible enum values:\n +- `"Always"`\n +- `"Never"`\n +- `"OnFailure"`\n/);
  const byV2 = await kubectl('explain', 'pod.spec.containers', '--output=plaintext-openapiv2');
  assert.match(byV2?.text ?? '', /RESOURCE: containers <\[\]Object>[\s\S]*imagePullPolicy\s+<string>/);
  assert.ok(server?.requests.some((each) => each.includes('/openapi/v2') && each.includes('protobuf')));
  const file = join(home, 'good.yaml');
  await writeFile(
    file,
    'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a, image: b, ports: [{containerPort: 1}]}]}\n',
  );
  const created = await kubectl('create', '--dry-run=client', '-f', file);
  assert.equal(created?.text, 'pod/x created (dry run)\n');
});
