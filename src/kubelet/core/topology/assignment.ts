/**
 * Selects exclusive CPUs of a container: whole sockets first, then whole cores, then single threads of cores that are
 * already in use. Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go takeByTopology.
 */

/** A logical CPU and its location. */
export interface Cpu {
  readonly id: number;
  readonly core: number;
  readonly socket: number;
  readonly numa: number;
}

/** Returns the selected CPU IDs in ascending order; undefined if `available` has fewer than `count` CPUs. */
export function takeCpus(
  topology: readonly Cpu[],
  available: ReadonlySet<number>,
  count: number,
): readonly number[] | undefined {
  const free = topology.filter(({ id }) => available.has(id));
  if (free.length < count) return undefined;
  const assigned = new Set<number>();
  const takeWhole = (groupOf: (cpu: Cpu) => string): void => {
    const sizes = Map.groupBy(topology, groupOf);
    for (const [name, group] of Map.groupBy(free, groupOf)) {
      const left = group.filter(({ id }) => !assigned.has(id));
      if (left.length !== sizes.get(name)?.length || assigned.size + left.length > count) continue;
      for (const { id } of left) assigned.add(id);
    }
  };
  takeWhole(({ socket }) => `${socket}`);
  takeWhole(({ socket, core }) => `${socket}/${core}`);
  // Prefer the core and socket with the fewest free threads, so that other cores stay completely free.
  const freeIn = (match: (cpu: Cpu) => boolean): number =>
    free.filter((cpu) => !assigned.has(cpu.id) && match(cpu)).length;
  const rest = free
    .filter(({ id }) => !assigned.has(id))
    .map((cpu) => ({
      cpu,
      core: freeIn((each) => each.socket === cpu.socket && each.core === cpu.core),
      socket: freeIn((each) => each.socket === cpu.socket),
    }))
    .sort((a, b) => a.socket - b.socket || a.core - b.core || a.cpu.id - b.cpu.id);
  for (const { cpu } of rest) {
    if (assigned.size >= count) break;
    assigned.add(cpu.id);
  }
  return [...assigned].sort((a, b) => a - b);
}
