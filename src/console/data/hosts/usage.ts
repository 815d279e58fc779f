/** Usage of nodes and pods from the metrics API. */
import type { Node } from '../../../api/generated/core/v1.ts';
import { collectionPath } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { type AnyObject, fieldAt } from '../api/resources.ts';
import { quantityNumber } from '../format.ts';
import { answering } from './contact.ts';

export interface Usage {
  readonly name: string;
  readonly namespace: string;
  /** CPU usage in cores. */
  readonly cpu: number;
  /** Memory usage in bytes. */
  readonly memory: number;
}

const METRICS = { group: 'metrics.k8s.io', version: 'v1beta1' };

export async function usageOfNodes(api: Api, signal: AbortSignal): Promise<readonly Usage[]> {
  const path = collectionPath({ ...METRICS, kind: 'NodeMetrics', plural: 'nodes', namespaced: false });
  const list = await api.json<{ readonly items?: readonly AnyObject[] }>(path, { signal });
  return (list.items ?? []).map((each) => usageOf(each, [each]));
}

/** Usage of hosts that respond. For other hosts, the server reports outdated values for up to a minute. */
export function currentUsage(usage: readonly Usage[], nodes: readonly Node[]): readonly Usage[] {
  const names = new Set(answering(nodes).map(({ metadata }) => metadata?.name));
  return usage.filter(({ name }) => names.has(name));
}

function usageOf({ metadata }: AnyObject, parts: readonly unknown[]): Usage {
  const sum = (resource: string): number =>
    parts.reduce((total: number, part) => total + (quantityNumber(fieldAt(part, 'usage', resource)) ?? 0), 0);
  return { name: metadata?.name ?? '', namespace: metadata?.namespace ?? '', cpu: sum('cpu'), memory: sum('memory') };
}
