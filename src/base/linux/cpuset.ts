/** Lists of CPUs and memory nodes in the kernel's format: `0-3,7`. Source: cpuset(7), "List format". */

const MAX_CPU = 8191;

/** Parses a list to sorted numbers without duplicates. Throws RangeError for invalid text. */
export function parseCpuSet(text: string): readonly number[] {
  const found = new Set<number>();
  for (const part of text.trim() === '' ? [] : text.trim().split(',')) {
    const match = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part.trim());
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? match?.[1]);
    if (match === null || last < first || last > MAX_CPU)
      throw new RangeError(`"${text}" is not a list of CPUs such as 0-3,7`);
    for (let cpu = first; cpu <= last; cpu += 1) found.add(cpu);
  }
  return [...found].sort((a, b) => a - b);
}

export function formatCpuSet(cpus: Iterable<number>): string {
  const parts: string[] = [];
  const sorted = [...new Set(cpus)].sort((a, b) => a - b);
  for (let index = 0; index < sorted.length; ) {
    let end = index;
    while (sorted[end + 1] === (sorted[end] ?? 0) + 1) end += 1;
    parts.push(end === index ? `${sorted[index]}` : `${sorted[index]}-${sorted[end]}`);
    index = end + 1;
  }
  return parts.join(',');
}
