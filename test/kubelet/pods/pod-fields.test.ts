/** Every pod field of the schema is either honoured by some source or refused by its name. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Container, EphemeralContainer, Pod } from '../../../src/api/generated/core/v1.ts';
import { failuresOf } from '../../../src/api/meta/field-error.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { HONOURED } from '../../../src/api/podspec/fields/honoured.ts';
import { CONTAINER_FIELDS, SECURITY_FIELDS } from '../../../src/api/podspec/fields/table.ts';
import { validatePod } from '../../../src/api/podspec/validate.ts';
import { type SchemaNode, schemaOfType } from '../../../src/api/schema/index.ts';
import { KUBERNETES_VERSION } from '../../../src/base/versions/version.ts';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import {
  unsupportedContainerField,
  unsupportedField,
} from '../../../src/kubelet/pods/containers/unsupported-fields.ts';
import { PodDirectories } from '../../../src/kubelet/pods/directories.ts';
import { VolumeManager } from '../../../src/kubelet/volumes/manager.ts';
import { realClock } from '../lab.ts';
import { FORBIDDEN_BY_VALIDATION, REFUSED, type Refusal } from './pod-fields.ts';

interface Refused extends Refusal {
  /** Path below `spec`, such as `containers[].volumeDevices`. */
  readonly path: string;
}

interface Walk {
  readonly refused: Refused[];
  readonly forbidden: string[];
  /** Every `Type.field` that was visited. */
  readonly met: Set<string>;
  readonly missing: Set<string>;
  /** Paths of honoured fields. */
  readonly paths: Set<string>;
}

const shortName = (typeName: string): string => typeName.slice(typeName.lastIndexOf('.') + 1);
/** Field names of an entry, with the release that introduced them. */
const tokens = (text: string): [field: string, since: string][] =>
  text.split(' ').map((token) => {
    const [field = '', since = '1.0'] = token.split('@');
    return [field, since];
  });
const honouredBy = (type: string, field: string): string[] =>
  Object.entries(HONOURED[type] ?? {}).flatMap(([file, fields]) =>
    tokens(fields).some(([name]) => name === field) ? [file] : [],
  );

const RUNTIME_FIELDS = [...Object.values(CONTAINER_FIELDS), ...Object.values(SECURITY_FIELDS)];
/** Path in the table of the fields that go to the runtime, which names only `containers[]`. */
const inTable = (path: string): string => path.replace(/^(?:init|ephemeral)Containers\[\]/, 'containers[]');
const isForRuntime = (path: string): boolean => RUNTIME_FIELDS.some((entry) => entry.path === inTable(path));

function walk(node: SchemaNode, path: string, into: Walk): void {
  if (node.kind !== 'object') return;
  const type = shortName(node.typeName);
  for (const [field, schema] of node.fields) {
    let below: SchemaNode = schema;
    let at = path === '' ? field : `${path}.${field}`;
    for (; below.kind === 'list' || below.kind === 'map'; below = below.items) if (below.kind === 'list') at += '[]';
    const plain = path === '' ? field : `${path}.${field}`;
    into.met.add(`${type}.${field}`);
    const refusal = REFUSED[type]?.[field];
    if (refusal !== undefined) into.refused.push({ ...refusal, path: plain });
    else if (FORBIDDEN_BY_VALIDATION[type]?.includes(field) === true) into.forbidden.push(plain);
    else if (honouredBy(type, field).length > 0 || isForRuntime(plain)) into.paths.add(inTable(plain));
    else if (below.kind === 'object') walk(below, at, into);
    else into.missing.add(`${type}.${field}`);
  }
}

function walked(): Walk {
  const schema = schemaOfType('io.k8s.api.core.v1.PodSpec');
  assert.ok(schema !== undefined);
  const found: Walk = { refused: [], forbidden: [], met: new Set(), missing: new Set(), paths: new Set() };
  walk(schema, '', found);
  return found;
}

type Fields = Record<string, unknown>;

/** Pod that is valid except for the value at `path`. New list items get a name. */
function podWith(path: string, value: unknown, beside: object = {}): Pod {
  const container = { name: 'c', image: 'i' };
  const spec: Fields = { containers: [{ ...container }] };
  const parts = path.split('.');
  const last = parts.pop() ?? '';
  let owner = spec;
  for (const part of parts) {
    const name = part.replace('[]', '');
    if (part.endsWith('[]')) {
      const item = name.toLowerCase().endsWith('containers') ? { ...container, name: name.toLowerCase() } : { name };
      owner[name] ??= [item];
      owner = (owner[name] as Fields[])[0] as Fields;
    } else {
      owner[name] ??= {};
      owner = owner[name] as Fields;
    }
  }
  Object.assign(owner, beside, { [last]: value });
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec } as unknown as Pod;
}

const concrete = (path: string): string => `spec.${path.replaceAll('[]', '[0]')}`;
const ephemeral = (pod: Pod): EphemeralContainer | undefined => pod.spec?.ephemeralContainers?.[0];

const SELINUX = { selinux: true };

test('the table of pod fields lists exactly the fields of the schema', () => {
  const { met, missing, paths, refused } = walked();
  assert.deepEqual([...missing], [], 'neither honoured nor refused');
  const listed = [
    ...Object.entries(HONOURED).flatMap(([type, files]) =>
      Object.values(files).flatMap((fields) => tokens(fields).map(([field]) => `${type}.${field}`)),
    ),
    ...[
      REFUSED,
      Object.fromEntries(Object.entries(FORBIDDEN_BY_VALIDATION).map(([type, list]) => [type, asObject(list)])),
    ]
      .flatMap((table) => Object.entries(table))
      .flatMap(([type, fields]) => Object.keys(fields).map((field) => `${type}.${field}`)),
  ];
  assert.deepEqual(
    listed.filter((each) => !met.has(each)),
    [],
    'no such field can be reached',
  );
  const reached = new Set([...paths, ...refused.map(({ path }) => path)]);
  assert.deepEqual(
    RUNTIME_FIELDS.filter(({ path }) => !reached.has(path)),
    [],
    'no such path can be reached',
  );
});

const asObject = (list: readonly string[]): Fields => Object.fromEntries(list.map((each) => [each, true]));

test('each supported pod field is read in the source file that the table lists', async () => {
  const texts = new Map<string, string>();
  for (const [type, files] of Object.entries(HONOURED)) {
    for (const [file, fields] of Object.entries(files)) {
      const text = texts.get(file) ?? (await readFile(join(import.meta.dirname, '../../..', file), 'utf8'));
      texts.set(file, text);
      for (const [field] of tokens(fields)) assert.match(text, new RegExp(`\\b${field}\\b`), `${type}.${field}`);
    }
  }
});

test('declares the release that introduced each supported field', () => {
  const listed = Object.values(HONOURED).flatMap((files) => Object.values(files).flatMap(tokens));
  const releases = [...listed.map(([, since]) => since), ...RUNTIME_FIELDS.map(({ since }) => since)];
  const latest = Number(KUBERNETES_VERSION.minor);
  for (const release of releases) {
    const minor = Number(/^1\.(\d+)$/.exec(release)?.[1]);
    assert.ok(minor >= 0 && minor <= latest, release);
  }
});

test('rejects a pod with an unsupported field, and names the field path', () => {
  const cases = walked().refused.filter(({ by }) => by === 'pod');
  assert.ok(cases.length > 10, String(cases.length));
  for (const { path, value, beside } of cases) {
    const pod = podWith(path, value, beside);
    const late = ephemeral(pod);
    const found = late === undefined ? unsupportedField(pod, SELINUX) : unsupportedContainerField(pod, late, SELINUX);
    assert.ok(found !== undefined, path);
    if (found.reason === 'AppArmor') continue;
    assert.equal(found.reason, 'PodFieldNotSupported', path);
    assert.equal(found.message, `${concrete(path)}: not supported by this node; remove the field`);
  }
});

test('does not start a container with an unsupported field, even if its pod is older than this kubelet', () => {
  const pod = podWith('containers[].securityContext.windowsOptions', { hostProcess: true });
  const [container] = pod.spec?.containers ?? [];
  assert.equal(unsupportedContainerField(pod, container as Container, SELINUX)?.reason, 'PodFieldNotSupported');
});

test('does not mount an unsupported volume type, and reports the volume in an event', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'pod-fields-'));
  try {
    const manager = new VolumeManager({
      directories: new PodDirectories({ volumes: directory } as never, {} as never),
      files: createKubeletFiles(createMounter()).volumes,
      foreign: createKubeletFiles(createMounter()).foreign,
      mounts: { isMountPoint: async () => true } as never,
      config: {} as never,
      plugins: {} as never,
      tokens: {} as never,
      clock: realClock,
      allocatable: () => ({}),
      features: { recursiveReadOnlyMounts: true, selinux: false },
    });
    const cases = walked().refused.filter(({ by }) => by === 'mount');
    assert.ok(cases.length > 10, String(cases.length));
    for (const { path, value } of cases) {
      const pod = podWith(path, value);
      await assert.rejects(
        manager.setUp(pod, { podIps: [], hostIps: [] }),
        new RegExp(`volume ".*${path.slice(path.lastIndexOf('.') + 1)}.* not supported on this node`),
        path,
      );
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('rejects fields that validation forbids in ephemeral containers', () => {
  for (const path of walked().forbidden) {
    const pod = podWith(
      path,
      path.endsWith('ports') ? [{ containerPort: 1 }] : path.endsWith('resizePolicy') ? [{}] : { x: 1 },
    );
    setPodDefaults(pod);
    const errors = failuresOf(() => validatePod(pod));
    assert.ok(
      errors.some(({ field }) => field === concrete(path)),
      path,
    );
  }
});

test('the kubelet accepts defaults of pod fields and values set by the API server', () => {
  const pod = podWith('containers[].volumeMounts', [{ name: 'v', mountPath: '/v', mountPropagation: 'None' }], {
    restartPolicy: 'Always',
    restartPolicyRules: [],
    volumeDevices: [],
    env: [{ name: 'A', value: 'b' }],
    lifecycle: { preStop: { exec: { command: ['x'] } }, stopSignal: 'SIGUSR1' },
    securityContext: {
      procMount: 'Default',
      appArmorProfile: { type: 'Unconfined' },
      windowsOptions: { runAsUserName: 'a' },
    },
  });
  const sidecar = { name: 's', image: 'i', restartPolicy: 'Always' };
  const spec = { ...pod.spec, hostUsers: true, runtimeClassName: '', resources: {}, initContainers: [sidecar] };
  const defaulted = { ...pod, spec } as unknown as Pod;
  setPodDefaults(defaulted);
  assert.equal(unsupportedField(defaulted, SELINUX), undefined);
});

test('ignores SELinux options on a host without SELinux', () => {
  const pod: Pod = {
    spec: {
      securityContext: { seLinuxOptions: { level: 's0' } },
      containers: [{ name: 'a', securityContext: { seLinuxOptions: { level: 's0' } } }],
    },
  };
  assert.equal(unsupportedField(pod, { selinux: false }), undefined);
  assert.match(unsupportedField(pod, SELINUX)?.message ?? '', /^spec\.securityContext\.seLinuxOptions/);
});
