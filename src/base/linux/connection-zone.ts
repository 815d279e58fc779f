const ZONES = 65_535;

/**
 * Connection tracking zone of a destination. Zones are numbers from 1 to 65535; 0 is the default zone and is never
 * returned. Every process computes the same zone for the same text, with the hash FNV-1a.
 */
export function connectionZone(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return (hash % ZONES) + 1;
}
