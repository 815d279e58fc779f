import type { Node } from '../../../api/generated/core/v1.ts';
import { conditionOf, conditionsOf } from '../api/resources.ts';

/** Conditions that are problems when they are true. */
export const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable'];

export function nodeState(node: Node): { readonly text: string; readonly level: 'good' | 'warn' | 'bad' } {
  const ready = conditionOf(node, 'Ready');
  const cordoned = node.spec?.unschedulable === true;
  if (ready?.status !== 'True') return { text: ready?.status === 'Unknown' ? 'Unreachable' : 'NotReady', level: 'bad' };
  if (conditionsOf(node).some(({ type, status }) => PRESSURES.includes(type) && status === 'True'))
    return { text: 'Under pressure', level: 'warn' };
  return cordoned ? { text: 'Cordoned', level: 'warn' } : { text: 'Ready', level: 'good' };
}
