const ZONES = 65_535;

/**
 * The connection tracking zone of a destination: 1 to 65535, as 0 is the default. The same text has the same zone in
 * every process. Source: FNV-1a.
 */
export function connectionZone(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return (hash % ZONES) + 1;
}
