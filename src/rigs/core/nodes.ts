import type { Rig } from '../kinds/rig-types.ts';

/** Nodes of a rig: the present node, then the nodes of earlier uses from newest to oldest. */
export function rigNodes({ spec, status }: Rig): readonly string[] {
  const present = status?.node ?? spec?.node;
  const earlier = (status?.history ?? []).map(({ node }) => node);
  return [...new Set([present, ...earlier].flatMap((node = '') => (node === '' ? [] : [node])))];
}
