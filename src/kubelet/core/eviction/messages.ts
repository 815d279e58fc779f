/**
 * Messages of evicted and rejected pods, which programs may parse. Source:
 * pkg/kubelet/eviction/{helpers.go,eviction_manager.go}.
 */
import { formatQuantity, quantityOf } from '../../../base/quantity.ts';
import type { Observations } from './assess.ts';
import { absolute, type EvictionResource, type Pressure, RESOURCE_OF, type Threshold } from './thresholds.ts';

export const EVICTED = 'Evicted';

export interface ContainerUse {
  readonly name: string;
  /** Bytes. */
  readonly used: number;
  readonly requested: number;
}

/** Message of a pod evicted for `threshold`. `containers` is used for memory and ephemeral-storage. */
export function evictionMessage(
  threshold: Threshold,
  observations: Observations,
  containers: readonly ContainerUse[],
): string {
  const resource = RESOURCE_OF[threshold.signal];
  let message = `The node was low on resource: ${resource}. `;
  const observation = observations.get(threshold.signal);
  if (observation !== undefined) {
    const { available, capacity } = observation;
    message += `Threshold quantity: ${amount(resource, absolute(threshold.value, capacity))}, available: ${amount(resource, available)}. `;
  }
  for (const { name, used, requested } of containers) {
    if (used <= requested) continue;
    message += `Container ${name} was using ${amount(resource, used)}, request is ${amount(resource, requested)}, has larger consumption of ${resource}. `;
  }
  return message;
}

export const refusalMessage = (pressures: readonly Pressure[]): string =>
  `The node had condition: [${pressures.join(' ')}]. `;

export const emptyDirMessage = (volume: string, limit: string): string =>
  `Usage of EmptyDir volume "${volume}" exceeds the limit "${limit}". `;

export const podStorageMessage = (limitBytes: number): string =>
  `Pod ephemeral local storage usage exceeds the total limit of containers ${amount('ephemeral-storage', limitBytes)}. `;

export const containerStorageMessage = (container: string, limit: string): string =>
  `Container ${container} exceeded its local ephemeral storage limit "${limit}". `;

/** Formats bytes as upstream does, in binary units if they divide evenly. */
function amount(resource: EvictionResource, value: number): string {
  const isBytes = resource === 'memory' || resource === 'ephemeral-storage';
  return formatQuantity(quantityOf(value, isBytes ? 'BinarySI' : 'DecimalSI'));
}
