/** `top` of nodes and pods, from the resource metrics API. Source: k8s.io/kubectl/pkg/cmd/top. */

import { isApiError } from '../../../api/meta/status.ts';
import { parseQuantity } from '../../../base/quantity.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, listAt, textAt } from '../../core/objects.ts';
import { layout } from '../../core/table.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Query, Session } from '../../session.ts';

const METRICS = '/apis/metrics.k8s.io/v1beta1';

interface Usage {
  readonly milli: number;
  readonly bytes: number;
}

export const runNodes = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, io } = context;
    const index = await session.resources();
    const names = args[0];
    const query: Query = { labelSelector: flags.text('selector') };
    const [metrics, nodes] = await Promise.all([
      read(session, `${METRICS}/nodes`, names, query),
      session.list(index.get('nodes'), undefined, query),
    ]);
    if (metrics.length === 0) throw new ClientError('metrics not available yet');
    const rows = sorted(
      session,
      metrics.map((each) => ({ name: each.metadata?.name ?? '', usage: usageOf(each['usage']) })),
    ).map(({ name, usage }) => {
      const node = nodes.find(({ metadata }) => metadata?.name === name);
      const field = flags.bool('show-capacity') ? 'capacity' : 'allocatable';
      const room = usageOf((node?.['status'] as Record<string, unknown> | undefined)?.[field]);
      const percent = (part: number, all: number): string =>
        all === 0 ? '<unknown>' : `${Math.trunc((part * 100) / all)}%`;
      return [name, cpu(usage), percent(usage.milli, room.milli), memory(usage), percent(usage.bytes, room.bytes)];
    });
    io.out(
      layout(
        [
          ...(flags.bool('no-headers') ? [] : [['NAME', 'CPU(cores)', 'CPU(%)', 'MEMORY(bytes)', 'MEMORY(%)']]),
          ...rows.map((row) => [...row, '']),
        ].map((row) => (row.length === 5 ? [...row, ''] : row)),
      ),
    );
    return 0;
  });

export const runPods = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, io } = context;
    const all = flags.bool('all-namespaces');
    const path = all ? `${METRICS}/pods` : `${METRICS}/namespaces/${session.namespace}/pods`;
    const metrics = await read(session, path, args[0], {
      labelSelector: flags.text('selector'),
      fieldSelector: flags.text('field-selector'),
    });
    if (metrics.length === 0) {
      const pods = await session.list(await session.resource('pods'), all ? undefined : session.namespace, {
        labelSelector: flags.text('selector'),
      });
      if (pods.length > 0) throw new ClientError('metrics not available yet');
      io.err(all ? 'No resources found\n' : `No resources found in ${session.namespace} namespace.\n`);
      return 0;
    }
    const perContainer = flags.bool('containers');
    const entries = metrics.flatMap((each) => {
      const containers = listAt(each, 'containers').map((container) => ({
        container: textAt(container, 'name'),
        usage: usageOf(container['usage']),
      }));
      const base = { namespace: each.metadata?.namespace ?? '', name: each.metadata?.name ?? '' };
      return perContainer
        ? containers.map((one) => ({ ...base, ...one }))
        : [{ ...base, container: '', usage: total(containers.map(({ usage }) => usage)) }];
    });
    const rows = sorted(session, entries).map(({ namespace, name, container, usage }) => [
      ...(all ? [namespace] : []),
      name,
      ...(perContainer ? [container] : []),
      cpu(usage),
      memory(usage),
      '',
    ]);
    const header = [
      ...(all ? ['NAMESPACE'] : []),
      ...(perContainer ? ['POD', 'NAME'] : ['NAME']),
      'CPU(cores)',
      'MEMORY(bytes)',
      '',
    ];
    const sum = total(entries.map(({ usage }) => usage));
    const start = [...(all ? [''] : []), ...(perContainer ? ['', ''] : [''])];
    const sumRows = [
      [...start, '________', '________', ''],
      [...start, cpu(sum), memory(sum), ''],
    ];
    const lines = [...(flags.bool('no-headers') ? [] : [header]), ...rows, ...(flags.bool('sum') ? sumRows : [])];
    io.out(layout(lines));
    return 0;
  });

async function read(session: Session, path: string, name: string | undefined, query: Query): Promise<AnyObject[]> {
  try {
    if (name !== undefined) return [await session.get(`${path}/${encodeURIComponent(name)}`)];
    return (await session.get(path, query)).items ?? [];
  } catch (error) {
    if (isApiError(error, 'ServiceUnavailable') || (isApiError(error, 'NotFound') && name === undefined))
      throw new ClientError('Metrics API not available');
    throw error;
  }
}

function usageOf(list: unknown): Usage {
  const { cpu: cores = '0', memory: bytes = '0' } = (list ?? {}) as { cpu?: string; memory?: string };
  return { milli: Math.ceil(amountOf(cores) * 1_000), bytes: amountOf(bytes) };
}

const amountOf = (quantity: string): number => Number(parseQuantity(quantity).nanos) / 1e9;
const total = (usages: readonly Usage[]): Usage =>
  usages.reduce((sum, each) => ({ milli: sum.milli + each.milli, bytes: sum.bytes + each.bytes }), {
    milli: 0,
    bytes: 0,
  });
const cpu = ({ milli }: Usage): string => `${milli}m`;
const memory = ({ bytes }: Usage): string => `${Math.trunc(bytes / (1 << 20))}Mi`;

function sorted<T extends { readonly name: string; readonly usage: Usage }>(
  session: Session,
  entries: readonly T[],
): T[] {
  const by = session.context.flags.text('sort-by');
  if (by !== '' && by !== 'cpu' && by !== 'memory') throw new ClientError('--sort-by accepts only cpu or memory');
  return entries.toSorted((left, right) => {
    if (by === 'cpu') return right.usage.milli - left.usage.milli;
    if (by === 'memory') return right.usage.bytes - left.usage.bytes;
    return left.name < right.name ? -1 : 1;
  });
}
