/** Maintains the status of BareMetalHosts. The plan is made in openshift/machines/core/bare-metal-host.ts. */

import { semanticEqual } from '../../../api/meta/equality.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { type Inspection, isOffered, planHost } from '../core/bare-metal-host.ts';
import type { BareMetalHost } from '../kinds/machine-types.ts';
import { sshTarget } from './machine-host-steps.ts';

export const bareMetalHostController: ControllerSpec = {
  name: 'metal3-baremetalhost',
  eventSource: 'metal3-baremetal-controller',
  reads: [resources.bareMetalHosts, resources.machines],
  writes: [resources.bareMetalHosts, resources.secrets],
  uses: ['machines'],
  prepare,
};

const RETRY_MS = 30_000;
const WORKERS = 4;

function prepare(handle: ControllerHandle): ControllerRun {
  const hosts = handle.informer(resources.bareMetalHosts);
  const machines = handle.informer(resources.machines);
  const client = handle.writer(resources.bareMetalHosts);
  const provisioner = handle.use('machines');

  return (scope) => {
    if (provisioner === undefined) return;
    /** Inspects the host over SSH. Returns undefined if no inspection is required or possible. */
    const inspect = async (host: BareMetalHost): Promise<Inspection | undefined> => {
      const { spec, status, metadata } = host;
      const isFree = spec?.consumerRef === undefined && metadata?.deletionTimestamp === undefined;
      if (!isFree || isOffered(host) || spec?.bmc === undefined || spec.externallyProvisioned === true)
        return undefined;
      if (status?.provisioning?.state === 'available') return undefined;
      try {
        const hardware = await provisioner.inspect(await sshTarget(handle, host));
        const credentials = { name: spec.bmc.credentialsName ?? '', namespace: metadata?.namespace ?? '' };
        return { status: { hardware, goodCredentials: { credentials } }, error: undefined };
      } catch (error) {
        return { status: {}, error: messageOf(error) };
      }
    };

    const queue = scope.queue(async (key) => {
      const host = hosts.get(key);
      if (host === undefined) return;
      const { nowMs } = handle.plan();
      const { name, namespace } = host.metadata ?? {};
      const consumer = machines.get(`${namespace}/${host.spec?.consumerRef?.name}`);
      const inspection = await inspect(host);
      const { status, forget, nextMs } = planHost(host, consumer, inspection, nowMs);
      if (forget) {
        await ignoreNotFound(() => client.delete(name ?? '', namespace));
        return;
      }
      if (nextMs !== undefined) queue.addAfter(key, Math.max(0, nextMs - nowMs));
      if (inspection?.error !== undefined) queue.addAfter(key, RETRY_MS);
      if (semanticEqual(status, host.status)) return;
      // If the host has offered itself, lastUpdated is the time of its last report, which must be kept.
      const lastUpdated = isOffered(host) ? host.status?.lastUpdated : timestamp(nowMs);
      const next = { ...status, ...(lastUpdated === undefined ? {} : { lastUpdated }) };
      await ignoreNotFound(() => client.update({ ...host, status: next }, { subresource: 'status' }));
      if (status.errorType !== undefined && status.errorMessage !== host.status?.errorMessage)
        handle.recorder.event(host, 'Warning', 'RegistrationError', status.errorMessage ?? '');
    }, WORKERS);
    scope.onChange(hosts, {
      added: (host) => queue.add(objectKey(host)),
      updated: (host) => queue.add(objectKey(host)),
    });
    scope.onChange(machines, {
      updated: ({ metadata }) => {
        const found = hosts.list().find(({ spec }) => spec?.consumerRef?.uid === metadata?.uid);
        if (found !== undefined) queue.add(objectKey(found));
      },
    });
  };
}
