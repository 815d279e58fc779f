/**
 * Computes the resources that a host reserves for the system. The reserved share decreases as the host grows. Source:
 * "Automatically allocating resources for nodes" of OpenShift's documentation, which uses the shares of Google
 * Kubernetes Engine.
 */

/** Range of sizes and the share that is reserved in this range. Ranges follow each other, beginning at 0. */
type Band = readonly [width: number, share: number];

const REST = Number.POSITIVE_INFINITY;
const MEMORY_GIB: readonly Band[] = [
  [4, 0.25],
  [4, 0.2],
  [8, 0.1],
  [112, 0.06],
  [REST, 0.02],
];
const CORES: readonly Band[] = [
  [1, 0.06],
  [1, 0.01],
  [2, 0.005],
  [REST, 0.0025],
];
const MIB = 1024 ** 2;

export function systemReservation(
  memoryBytes: number,
  cores: number,
): { readonly cpu: string; readonly memory: string } {
  const memoryMib = shareOf(MEMORY_GIB, memoryBytes / (1024 * MIB)) * 1024;
  return { cpu: `${Math.round(shareOf(CORES, cores) * 1000)}m`, memory: `${Math.floor(memoryMib)}Mi` };
}

function shareOf(bands: readonly Band[], total: number): number {
  let rest = total;
  let sum = 0;
  for (const [width, share] of bands) {
    const inBand = Math.min(rest, width);
    sum += inBand * share;
    rest -= inBand;
  }
  return sum;
}
