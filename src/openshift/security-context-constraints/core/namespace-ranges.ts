/**
 * Allocates UID ranges and SELinux levels to namespaces. Each namespace gets a block of 10,000 UIDs; the first block
 * starts at 1,000,000,000. Source: openshift/cluster-policy-controller pkg/security/controller, openshift/library-go
 * pkg/security/{uid,mcs}.
 */
import type { Namespace } from '../../../api/generated/core/v1.ts';
import { MCS, SUPPLEMENTAL_GROUPS, UID_RANGE } from '../../../api/kinds/cluster/namespaces/security.ts';
import type { RangeAllocation } from '../kinds/rangeallocations/index.ts';

export const SCC_UID = 'scc-uid';
const FIRST_UID = 1_000_000_000;
const LAST_UID = 1_999_999_999;
const BLOCK_SIZE = 10_000;
const BLOCKS = (LAST_UID - FIRST_UID + 1) / BLOCK_SIZE;
export const RANGE = `${FIRST_UID}-${LAST_UID}/${BLOCK_SIZE}`;
/** Distance between the SELinux levels of consecutive blocks. */
const LEVELS_PER_BLOCK = 5;
const BITS = 8;

export type AllocationPlan =
  | { readonly kind: 'keep' }
  | { readonly kind: 'annotate'; readonly block: number; readonly annotations: Readonly<Record<string, string>> }
  | { readonly kind: 'full' };

/** Whether the namespace lacks its UID range, its supplemental groups or its SELinux level. */
export function lacksAllocation({ metadata }: Namespace): boolean {
  return [UID_RANGE, SUPPLEMENTAL_GROUPS, MCS].some((key) => metadata?.annotations?.[key] === undefined);
}

/** Block of the namespace; undefined if it has none, or if its UID range is not one of the blocks. */
export function blockOf({ metadata }: Namespace): number | undefined {
  const match = /^(\d{10})\/10000$/.exec(metadata?.annotations?.[UID_RANGE] ?? '');
  const offset = Number(match?.[1] ?? Number.NaN) - FIRST_UID;
  return offset >= 0 && offset % BLOCK_SIZE === 0 && offset < BLOCKS * BLOCK_SIZE ? offset / BLOCK_SIZE : undefined;
}

/**
 * Plans the annotations that the namespace lacks. Annotations that it has are kept.
 *
 * @param used Blocks of other namespaces.
 */
export function planAllocation(namespace: Namespace, used: ReadonlySet<number>): AllocationPlan {
  if (!lacksAllocation(namespace) || namespace.metadata?.deletionTimestamp !== undefined) return { kind: 'keep' };
  const own = namespace.metadata?.annotations ?? {};
  const block = blockOf(namespace) ?? firstFree(used);
  if (block === undefined) return { kind: 'full' };
  const range = own[UID_RANGE] ?? `${FIRST_UID + block * BLOCK_SIZE}/${BLOCK_SIZE}`;
  const values: Record<string, string> = { [UID_RANGE]: range, [SUPPLEMENTAL_GROUPS]: range, [MCS]: level(block) };
  const annotations = Object.fromEntries(Object.entries(values).filter(([key]) => own[key] === undefined));
  return { kind: 'annotate', block, annotations };
}

function firstFree(used: ReadonlySet<number>): number | undefined {
  for (let block = 0; block < BLOCKS; block++) if (!used.has(block)) return block;
  return undefined;
}

/** SELinux level of a block. The category pairs are ordered c1,c0 c2,c0 c2,c1 c3,c0 and so on. */
function level(block: number): string {
  const index = block * LEVELS_PER_BLOCK;
  const pairs = (category: number): number => (category * (category - 1)) / 2;
  let high = Math.floor((1 + Math.sqrt(1 + 8 * index)) / 2);
  if (pairs(high) > index) high -= 1;
  return `s0:c${high},c${index - pairs(high)}`;
}

/** Allocation record with one bit for each block in use, stored as the bytes of a big-endian number. */
export function allocationOf(used: ReadonlySet<number>, stored?: RangeAllocation): RangeAllocation {
  let highest = -1;
  for (const block of used) highest = Math.max(highest, block);
  const bytes = new Uint8Array(Math.floor(highest / BITS) + 1);
  for (const block of used) {
    const at = bytes.length - 1 - Math.floor(block / BITS);
    bytes[at] = (bytes[at] ?? 0) | (1 << (block % BITS));
  }
  return {
    apiVersion: 'security.openshift.io/v1',
    kind: 'RangeAllocation',
    metadata: stored?.metadata ?? { name: SCC_UID },
    range: RANGE,
    data: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')),
  };
}
