/**
 * Order of snapshots by age. The date of a snapshot may be wrong: without a battery, the clock of a host starts in 1970
 * at each boot. Revisions only increase, but a restore of an older snapshot begins a new cluster with lower revisions.
 */
interface Aged {
  /** Empty if the file cannot be read. */
  readonly clusterId: string;
  readonly revision: number;
  readonly takenMs: number;
}

/**
 * Sorts the snapshots of a cluster by revision, and the clusters by the date of their latest snapshot. Clusters with a
 * snapshot for which `isCurrent` is true come first.
 */
export function newestFirst<T extends Aged>(snapshots: readonly T[], isCurrent: (snapshot: T) => boolean): T[] {
  const clusters = [...Map.groupBy(snapshots, ({ clusterId }) => clusterId).values()].map((members) => ({
    isCurrent: members.some(isCurrent),
    latestMs: Math.max(...members.map(({ takenMs }) => takenMs)),
    members: members.toSorted((left, right) => right.revision - left.revision || right.takenMs - left.takenMs),
  }));
  clusters.sort((left, right) => Number(right.isCurrent) - Number(left.isCurrent) || right.latestMs - left.latestMs);
  return clusters.flatMap(({ members }) => members);
}
