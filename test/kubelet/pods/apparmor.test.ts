/**
 * AppArmor profiles of a pod. Without kernel support the pod is blocked with upstream's message; otherwise the profile
 * is passed to the runtime.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { containerConfig } from '../../../src/kubelet/pods/containers/container-config.ts';
import { unsupportedField } from '../../../src/kubelet/pods/containers/unsupported-fields.ts';

const pod = (ofPod: object | undefined, ofContainer: object | undefined): Pod => ({
  spec: {
    securityContext: { ...(ofPod === undefined ? {} : { appArmorProfile: ofPod }) },
    containers: [
      { name: 'main', securityContext: { ...(ofContainer === undefined ? {} : { appArmorProfile: ofContainer }) } },
    ],
  } as never,
});

const handed = (each: Pod) =>
  containerConfig({
    pod: each,
    container: each.spec?.containers[0] ?? { name: '' },
    attempt: 0,
    env: [],
    mounts: [],
    devices: [],
    image: { id: 'sha256:0', repoTags: [], repoDigests: [], sizeBytes: 0 },
    pidNamespaceOf: undefined,
    hostRoot: false,
    seccompDefault: true,
    seccompProfileRoot: '/',
    logLimitBytes: 1,
    memoryCapacityBytes: 1,
    oomScoreFloor: -1000,
    cpuCfsQuota: true,
  }).security.appArmor;

it('blocks a pod that requires an AppArmor profile on a kernel without AppArmor', () => {
  const refused = { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' };
  const wanting = [
    pod({ type: 'RuntimeDefault' }, undefined),
    pod(undefined, { type: 'Localhost', localhostProfile: 'x' }),
  ];
  for (const each of wanting) {
    assert.deepEqual(unsupportedField(each, { selinux: false }), refused);
    assert.equal(unsupportedField(each, { selinux: false, appArmor: true }), undefined);
  }
  assert.equal(unsupportedField(pod({ type: 'Unconfined' }, undefined), { selinux: false }), undefined);
});

it('the AppArmor profile of a container overrides that of its pod', () => {
  const local = { type: 'Localhost', localhostProfile: 'own' };
  assert.deepEqual(handed(pod({ type: 'RuntimeDefault' }, local)), { type: 'localhost', profile: 'own' });
  assert.deepEqual(handed(pod({ type: 'RuntimeDefault' }, undefined)), { type: 'runtime/default' });
  assert.deepEqual(handed(pod(local, { type: 'Unconfined' })), { type: 'unconfined' });
  assert.equal(handed(pod(undefined, undefined)), undefined);
});
