/** Warnings for claims. Source: k8s.io/kubernetes/pkg/api/persistentvolumeclaim. */

import { canonicalQuantity, tryParseQuantity } from '../../base/quantity.ts';
import type { PersistentVolumeClaimSpec } from '../generated/core/v1.ts';

export function claimWarnings(spec: PersistentVolumeClaimSpec | undefined, path: string): string[] {
  return (['requests', 'limits'] as const).flatMap((part) => {
    const text = spec?.resources?.[part]?.['storage'];
    const quantity = text === undefined ? undefined : tryParseQuantity(text);
    if (text === undefined || quantity === undefined || quantity.nanos % 1_000_000_000n === 0n) return [];
    const shown = JSON.stringify(canonicalQuantity(text));
    return [`${path}.resources.${part}[storage]: fractional byte value ${shown} is invalid, must be an integer`];
  });
}
