/**
 * Creates the default pools with their base fragments, and the ControllerConfig. Their contents are defined in
 * openshift/machine-config/core/pools/defaults. Source: pkg/controller/template of openshift/machine-config-operator.
 */

import { semanticEqual } from '../../../api/meta/equality.ts';
import type { JsonObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { addressAt, parseNetworks } from '../../../base/addresses/networks.ts';
import { createUnlessPresent } from '../../../controllers/framework/create-unless-present.ts';
import type { ControllerHandle, ControllerSpec } from '../../../controllers/framework/framework.ts';
import { baseConfigs, completedConditions, controllerConfig, defaultPools } from '../core/pools/default-pools.ts';
import { nameOf } from '../core/pools/pools.ts';
import { CONTROLLER_CONFIG } from '../kinds/machine-config-types.ts';
import type { MachineConfigFacts } from './machine-config-port.ts';

/** Index of the address of the cluster DNS service within the service network. */
const DNS_INDEX = 10;

export const machineConfigTemplateController: ControllerSpec = {
  name: 'machine-config-template',
  eventSource: 'machineconfigcontroller-templatecontroller',
  reads: [resources.machineConfigs, resources.machineConfigPools, resources.controllerConfigs],
  writes: [resources.machineConfigs, resources.machineConfigPools, resources.controllerConfigs],
  uses: ['machineConfig', 'rootCaPem', 'read'],
  prepare: (handle) => {
    const facts = handle.use('machineConfig');
    const bases = baseConfigs(facts.version);
    const known = {
      configs: handle.informer(resources.machineConfigs),
      pools: handle.informer(resources.machineConfigPools),
      controllers: handle.informer(resources.controllerConfigs),
    };
    const configs = handle.writer(resources.machineConfigs);
    const pools = handle.writer(resources.machineConfigPools);
    return (scope) => {
      const queue = scope.queue(async () => {
        for (const base of bases) await createUnlessPresent(() => configs.create(base));
        for (const pool of defaultPools) await createUnlessPresent(() => pools.create(pool));
        await writeControllerConfig(handle, facts, scope.signal);
      }, 1);
      const wake = (): void => queue.add('all');
      // Default objects are created again when they are deleted.
      scope.onChange(known.configs, {
        deleted: (config) => {
          if (bases.some((base) => nameOf(base) === nameOf(config))) wake();
        },
      });
      scope.onChange(known.pools, { deleted: wake });
      scope.onChange(known.controllers, { deleted: wake });
      wake();
    };
  },
};

async function writeControllerConfig(
  handle: ControllerHandle,
  facts: MachineConfigFacts,
  signal: AbortSignal,
): Promise<void> {
  const client = handle.writer(resources.controllerConfigs);
  const ranges = parseNetworks(handle.options.serviceCidr) ?? [];
  const [primary] = ranges;
  const families = new Set(ranges.map(({ family }) => family));
  const wanted = controllerConfig({
    version: facts.version,
    rootCaPem: handle.use('rootCaPem'),
    clusterDnsIp: primary === undefined ? '' : addressAt(primary, DNS_INDEX),
    infrastructure: await configOf(handle, 'infrastructures', signal),
    dns: await configOf(handle, 'dnses', signal),
    ipFamilies: families.size > 1 ? 'DualStack' : families.has(6) ? 'IPv6' : 'IPv4',
    encode: facts.base64,
  });
  await createUnlessPresent(() => client.create(wanted));
  const stored = await client.get(CONTROLLER_CONFIG);
  const { annotations, labels, ...metadata } = stored.metadata ?? {};
  const merged = {
    ...stored,
    metadata: {
      ...metadata,
      annotations: { ...annotations, ...wanted.metadata?.annotations },
      labels: { ...labels, ...wanted.metadata?.labels },
    },
    spec: { ...stored.spec, ...wanted.spec },
  };
  const written = semanticEqual(merged, stored) ? stored : await client.update(merged);
  const generation = written.metadata?.generation ?? 0;
  if (written.status?.observedGeneration === generation) return;
  const status = completedConditions(handle.clock.nowMs(), generation);
  await client.update({ ...written, status }, { subresource: 'status' });
}

/** Reads the object `cluster` of a kind of config.openshift.io; undefined if it does not exist. */
async function configOf(
  handle: ControllerHandle,
  plural: string,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  try {
    const object = await handle.use('read')<JsonObject>(`/apis/config.openshift.io/v1/${plural}/cluster`, signal);
    const { kind, apiVersion, metadata, spec, status } = object;
    const { name } = (metadata ?? {}) as JsonObject;
    return { kind, apiVersion, metadata: { name }, spec: spec ?? {}, status: status ?? {} } as JsonObject;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
