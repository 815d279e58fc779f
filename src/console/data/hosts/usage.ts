/** Usage of nodes and pods from the metrics API. */
import { collectionPath } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { type AnyObject, at } from '../api/resources.ts';
import { quantityNumber } from '../format.ts';

export interface Usage {
  readonly name: string;
  readonly namespace: string;
  /** Cores. */
  readonly cpu: number;
  /** Bytes. */
  readonly memory: number;
}

const METRICS = { group: 'metrics.k8s.io', version: 'v1beta1' };

export async function usageOfNodes(api: Api, signal: AbortSignal): Promise<readonly Usage[]> {
  const path = collectionPath({ ...METRICS, kind: 'NodeMetrics', plural: 'nodes', namespaced: false });
  const list = await api.json<{ readonly items?: readonly AnyObject[] }>(path, { signal });
  return (list.items ?? []).map((each) => usageOf(each, [each]));
}

function usageOf({ metadata }: AnyObject, parts: readonly unknown[]): Usage {
  const sum = (resource: string): number =>
    parts.reduce((total: number, part) => total + (quantityNumber(at(part, 'usage', resource)) ?? 0), 0);
  return { name: metadata?.name ?? '', namespace: metadata?.namespace ?? '', cpu: sum('cpu'), memory: sum('memory') };
}
