/**
 * Order of the claims that wait for a rig. Each requester in a namespace has one turn per round. The requester that
 * holds the rig has already used its turn of the first round. Within a round, older claims come first.
 */

import { objectKey } from '../../api/meta/object.ts';
import { timeMs } from '../../base/time/timestamps.ts';
import type { RigClaim } from '../kinds/rig-types.ts';

/** Key of the requester in its namespace. All claims with this key share the turns of the queue. */
export const requesterOf = ({ metadata, status }: RigClaim): string =>
  `${metadata?.namespace ?? ''}/${status?.requester ?? ''}`;

function byAge(a: RigClaim, b: RigClaim): number {
  const [first, second] = [timeMs(a.metadata?.creationTimestamp), timeMs(b.metadata?.creationTimestamp)];
  if (first !== second) return first - second;
  return objectKey(a) < objectKey(b) ? -1 : 1;
}

/** @param holder Requester that has the rig now. */
export function fairOrder(waiting: readonly RigClaim[], holder: string | undefined): RigClaim[] {
  const turns = new Map<string, number>(holder === undefined ? [] : [[holder, 1]]);
  const ranked = [...waiting].sort(byAge).map((claim, age) => {
    const requester = requesterOf(claim);
    const round = turns.get(requester) ?? 0;
    turns.set(requester, round + 1);
    return { claim, round, age };
  });
  return ranked.sort((a, b) => a.round - b.round || a.age - b.age).map(({ claim }) => claim);
}
