/**
 * Filter for volumes with zone or region labels: the node must be in the same zone or region. Source: upstream's
 * volumezone plug-in.
 */
import { isFullyBound } from '../../../api/volumes/binding.ts';
import { type Filter, rejectUnresolvable } from './filter.ts';

/** Topology labels, each with its deprecated name, which volumes and nodes may still have. */
const TOPOLOGY_LABELS: ReadonlyMap<string, string> = new Map([
  ['topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone'],
  ['topology.kubernetes.io/region', 'failure-domain.beta.kubernetes.io/region'],
]);
/** Separator in the label of a volume that is in several zones. */
const SEPARATOR = '__';

export const volumeZone: Filter = (pod, view) => {
  const wanted = pod.claims.flatMap((key) => {
    const claim = view.volumes?.claim(pod.namespace, key.slice(key.indexOf('/') + 1));
    if (claim === undefined || !isFullyBound(claim)) return [];
    const labels = view.volumes?.volume(claim.spec?.volumeName ?? '')?.metadata?.labels ?? {};
    return [...TOPOLOGY_LABELS].flatMap((names) => {
      const name = names.find((each) => Object.hasOwn(labels, each));
      return name === undefined ? [] : [{ names, values: (labels[name] ?? '').split(SEPARATOR) }];
    });
  });
  if (wanted.length === 0) return undefined;
  return (node) => {
    const labelOf = (names: readonly string[]): string | undefined =>
      names.map((name) => node.label(name)).find((value) => value !== undefined);
    // As in upstream, a node that has none of these labels is not restricted.
    if ([...TOPOLOGY_LABELS].every((names) => labelOf(names) === undefined)) return undefined;
    const fits = wanted.every(({ names, values }) => values.includes(labelOf(names) ?? ''));
    return fits ? undefined : rejectUnresolvable('VolumeZone', 'node(s) had no available volume zone');
  };
};
