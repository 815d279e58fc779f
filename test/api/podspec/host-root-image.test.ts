import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import {
  HOST_PROGRAMS_IMAGE,
  HOST_ROOT_ID,
  HOST_ROOT_IMAGE,
  hostRootFields,
  isHostRootImage,
  mayUseHostRoot,
} from '../../../src/api/podspec/host-root-image.ts';

const hex = createHash('sha256').update(HOST_ROOT_IMAGE).digest('hex');

describe('reserved image of the host root', () => {
  it('reserved image of the host root has the digest of its name as its ID', () =>
    assert.equal(HOST_ROOT_ID, `sha256:${hex}`));

  for (const image of [
    HOST_ROOT_IMAGE,
    `${HOST_ROOT_IMAGE}:latest`,
    `${HOST_ROOT_IMAGE}:v9`,
    `${HOST_ROOT_IMAGE}@sha256:${'0'.repeat(64)}`,
    `${HOST_ROOT_IMAGE}:x@sha256:${'0'.repeat(64)}`,
    'HYPEREDGE.LOCAL/host-root',
    'hyperedge.local:443/host-root',
    'hyperedge.local./host-root:1',
    'docker.io/hyperedge.local/host-root',
    'index.docker.io/library/hyperedge.local/host-root:1',
    ` ${HOST_ROOT_IMAGE} `,
    hex,
    hex.toUpperCase(),
    `sha256:${hex}`,
    `busybox@sha256:${hex}`,
  ])
    it(`recognizes ${image.slice(0, 70)} as the host-root image`, () => assert.equal(isHostRootImage(image), true));

  for (const image of [
    '',
    'busybox',
    'hyperedge.local/hello:1',
    'hyperedge.local/host-root-2',
    'hyperedge.local/host-root/tools:1',
    'registry.example/hyperedge.local/host-root',
    'example.local/host-root',
    'host-root',
    `busybox@sha256:${'0'.repeat(64)}`,
  ])
    it(`does not recognize ${image.slice(0, 70) || 'an empty name'} as the host-root image`, () =>
      assert.equal(isHostRootImage(image), false));

  it('reserved image of the host root is detected in every pod field that names an image', () => {
    const named = (image: string) => ({ name: 'c', image });
    const spec = {
      containers: [named('busybox'), named(HOST_ROOT_IMAGE)],
      initContainers: [named(HOST_ROOT_ID)],
      ephemeralContainers: [named(`${HOST_ROOT_IMAGE}:x`)],
      volumes: [{ name: 'a' }, { name: 'b', image: { reference: HOST_ROOT_IMAGE } }],
    };
    assert.deepEqual(hostRootFields({ spec } as Pod), [
      'spec.initContainers[0].image',
      'spec.containers[1].image',
      'spec.ephemeralContainers[0].image',
      'spec.volumes[1].image.reference',
    ]);
    assert.deepEqual(hostRootFields({ spec: { containers: [named('busybox')] } }), []);
    assert.deepEqual(hostRootFields({}), []);
  });

  it('reserved image of the host root is allowed for containers that already have access to the whole host', () => {
    const debug = {
      name: 'c',
      image: HOST_ROOT_IMAGE,
      securityContext: { privileged: true },
      volumeMounts: [{ name: 'host', mountPath: '/host' }],
    };
    const volumes = [{ name: 'host', hostPath: { path: '/' } }];
    const fields = (container: object, spec: object = {}): string[] =>
      hostRootFields({ spec: { volumes, containers: [container], ...spec } } as Pod);
    assert.deepEqual(fields(debug), []);
    const refused = ['spec.containers[0].image'];
    assert.deepEqual(fields({ ...debug, securityContext: { privileged: false } }), refused);
    assert.deepEqual(fields({ ...debug, securityContext: undefined }), refused);
    assert.deepEqual(fields({ ...debug, volumeMounts: [] }), refused);
    assert.deepEqual(fields({ ...debug, volumeMounts: [{ name: 'host', mountPath: '/h', subPath: 'tmp' }] }), refused);
    assert.deepEqual(fields(debug, { volumes: [{ name: 'host', hostPath: { path: '/tmp' } }] }), refused);
    assert.deepEqual(fields(debug, { hostUsers: false }), refused);
  });

  it('reserved image of the host root is allowed as the programs image in namespaces of the cluster', () => {
    const fields = (namespace: string, image: string): string[] =>
      hostRootFields({ metadata: { namespace }, spec: { containers: [{ name: 'c', image }] } } as Pod);
    assert.deepEqual(fields('openshift-must-gather-x', HOST_PROGRAMS_IMAGE), []);
    const refused = ['spec.containers[0].image'];
    assert.deepEqual(fields('shop', HOST_PROGRAMS_IMAGE), refused);
    assert.deepEqual(fields('openshift', HOST_PROGRAMS_IMAGE), refused);
    assert.deepEqual(fields('openshift-x', ` ${HOST_PROGRAMS_IMAGE}`), refused);
    assert.deepEqual(fields('openshift-x', HOST_ROOT_IMAGE), refused);
  });

  it('reserved image of the host root is allowed for the manifest directory only', () => {
    assert.deepEqual((['file', 'http', 'api'] as const).map(mayUseHostRoot), [true, false, false]);
  });
});
