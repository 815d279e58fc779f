/** Selection of a volume for a claim. Source: k8s.io/component-helpers/storage/volume FindMatchingVolume. */

import { compareQuantity, type Quantity, quantityOf, tryParseQuantity } from '../../base/quantity.ts';
import { labelSelectorOf, matchesLabels } from '../../base/selector.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../generated/core/v1.ts';
import { matchesTerm } from '../podspec/node-terms.ts';
import { classNameOf, isBoundToClaim } from './binding.ts';

const NONE = quantityOf(0);

export interface MatchOptions {
  /** The pod's node, which must be able to access the volume. Undefined if no pod is considered. */
  readonly node?: Node;
  /**
   * True if the claim is bound only when its first pod is scheduled. Without a node, it only gets a volume reserved for
   * it.
   */
  readonly waitsForConsumer: boolean;
  /** Names of volumes that other claims of the pod get. */
  readonly excluded?: ReadonlySet<string>;
}

/** The volume that is reserved for the claim, otherwise the smallest one that fits. */
export function findMatchingVolume(
  claim: PersistentVolumeClaim,
  volumes: readonly PersistentVolume[],
  options: MatchOptions,
): PersistentVolume | undefined {
  const requested = sizeOf(claim.spec?.resources?.requests);
  let smallest: PersistentVolume | undefined;
  for (const volume of volumes) {
    if (volume.metadata?.deletionTimestamp !== undefined || options.excluded?.has(volume.metadata?.name ?? ''))
      continue;
    if (volume.spec?.claimRef !== undefined && !isBoundToClaim(volume, claim)) continue;
    const size = sizeOf(volume.spec?.capacity);
    if (compareQuantity(size, requested) < 0 || mismatchOf(volume, claim) !== undefined) continue;
    if (options.node !== undefined && !isReachableFrom(volume, options.node)) continue;
    if (isBoundToClaim(volume, claim)) return volume;
    if (options.node === undefined && options.waitsForConsumer) continue;
    if (volume.status?.phase !== 'Available' || !isSelected(volume, claim)) continue;
    if (smallest === undefined || isBetter(volume, smallest)) smallest = volume;
  }
  return smallest;
}

/** Reason why the volume does not satisfy the claim, in upstream's wording; undefined if it does. */
export function mismatchOf(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  if (compareQuantity(sizeOf(volume.spec?.capacity), sizeOf(claim.spec?.resources?.requests)) < 0) {
    return 'requested PV is too small';
  }
  if (classNameOf(volume) !== classNameOf(claim)) return 'storageClassName does not match';
  if ((volume.spec?.volumeAttributesClassName ?? '') !== (claim.spec?.volumeAttributesClassName ?? '')) {
    return 'volumeAttributesClassName does not match';
  }
  if ((volume.spec?.volumeMode ?? 'Filesystem') !== (claim.spec?.volumeMode ?? 'Filesystem')) {
    return 'incompatible volumeMode';
  }
  const modes = volume.spec?.accessModes ?? [];
  return (claim.spec?.accessModes ?? []).every((mode) => modes.includes(mode)) ? undefined : 'incompatible accessMode';
}

/** Whether the volume's node affinity matches the node. */
export function isReachableFrom(volume: PersistentVolume, node: Node): boolean {
  const required = volume.spec?.nodeAffinity?.required;
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

function isSelected(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const selector = claim.spec?.selector;
  return selector === undefined || matchesLabels(labelSelectorOf(selector), volume.metadata?.labels);
}

function isBetter(volume: PersistentVolume, best: PersistentVolume): boolean {
  const order = compareQuantity(sizeOf(volume.spec?.capacity), sizeOf(best.spec?.capacity));
  return order < 0 || (order === 0 && (volume.metadata?.name ?? '') < (best.metadata?.name ?? ''));
}

function sizeOf(amounts: Readonly<Record<string, string>> | undefined): Quantity {
  return tryParseQuantity(amounts?.['storage'] ?? '0') ?? NONE;
}
