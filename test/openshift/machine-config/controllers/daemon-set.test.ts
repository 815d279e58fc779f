/** The pods `machine-config-daemon` on a real API server: admitted, restored, and only in the profile `okd`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DaemonSet } from '../../../../src/api/generated/apps/v1.ts';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import {
  DAEMON,
  DAEMON_NAMESPACE,
  hasFields,
  machineConfigDaemonSet,
} from '../../../../src/openshift/machine-config/core/pools/daemon-set.ts';
import { startServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, startControlPlane, eventually as within } from '../../../controllers/harness.ts';

const eventually = <T>(check: () => Promise<T | undefined | false>, what: string): Promise<T> =>
  within(check, what, 30_000);

const stored = (plane: ControlPlane): Promise<DaemonSet | undefined> =>
  plane
    .of(resources.daemonSets)
    .get(DAEMON, DAEMON_NAMESPACE)
    .catch((error: unknown) => {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    });

test('runs a privileged pod of the machine config daemon on each node in profile okd, and none in profile kubernetes', async () => {
  const api = await startServer({ config: { openshift: { profile: 'okd', domain: 'apps.lab.example' } } });
  const plane = await startControlPlane({ api, controllers: { daemonPods: true } });
  try {
    await plane.addNode('tainted', (node) => {
      node.metadata = { ...node.metadata, labels: { ...node.metadata?.labels, 'kubernetes.io/os': 'linux' } };
      node.spec = { ...node.spec, taints: [{ key: 'node-role.kubernetes.io/master', effect: 'NoSchedule' }] };
    });
    const pod = await eventually(async () => {
      const { items } = await plane.of(resources.pods).list({ namespace: DAEMON_NAMESPACE });
      return items[0];
    }, 'a pod on the node');
    assert.equal(pod.metadata?.labels?.['k8s-app'], DAEMON);
    assert.equal(pod.metadata?.annotations?.['openshift.io/scc'], 'privileged');
    assert.equal(pod.spec?.serviceAccountName, DAEMON);

    const sets = plane.of(resources.daemonSets);
    await sets.patch(DAEMON, DAEMON_NAMESPACE, 'merge', {
      spec: { template: { spec: { tolerations: [], hostPID: false } } },
    });
    await eventually(
      async () => hasFields((await stored(plane))?.spec, machineConfigDaemonSet.spec),
      'the fields that were changed',
    );
    const { uid } = (await stored(plane))?.metadata ?? {};
    await sets.delete(DAEMON, DAEMON_NAMESPACE);
    await eventually(async () => {
      const found = await stored(plane);
      return found !== undefined && found.metadata?.uid !== uid;
    }, 'another DaemonSet');
    await plane.controllers.stop();

    const other = await startControlPlane({ api, identity: 'other' });
    try {
      await eventually(async () => (await stored(other)) === undefined, 'no DaemonSet under the other profile');
    } finally {
      await other.stop();
    }
  } finally {
    await plane.stop();
    await api.stop();
  }
});
