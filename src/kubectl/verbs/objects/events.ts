/**
 * `events`: prints the events of a namespace or object, the latest event last. Source: k8s.io/kubectl/pkg/cmd/events.
 */

import { printable } from '../../../base/text/printable.ts';
import { LineDecoder } from '../../../client/line-decoder.ts';
import { humanDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, numberAt, textAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import { columnWidths, layout } from '../../core/table.ts';
import type { VerbContext } from '../../port.ts';
import { objectPrinter } from '../../printing.ts';
import { withSession } from '../../run.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io, system } = context;
    const resource = await session.resource('events');
    const all = flags.bool('all-namespaces');
    const namespace = session.namespaceFor(resource, all);
    const selectors: string[] = [];
    if (flags.text('for') !== '') {
      const [type = '', name] = flags.text('for').split('/');
      if (name === undefined) throw new ClientError('--for must be in resource/name form');
      const { kind } = await session.resource(type);
      selectors.push(`involvedObject.kind=${kind}`, `involvedObject.name=${name}`);
    }
    const types = flags.list('types').map((type) => type.toLowerCase());
    if (types.some((type) => type !== 'normal' && type !== 'warning'))
      throw new ClientError('valid --types are Normal or Warning');
    const query = { fieldSelector: selectors.join(',') };
    const matches = (event: AnyObject): boolean =>
      types.length === 0 || types.includes(textAt(event, 'type').toLowerCase());
    const list = await session.get(pathOf(resource, namespace), query);
    const items = (list.items ?? [])
      .filter(matches)
      .map((item) => ({ ...item, apiVersion: 'v1', kind: 'Event' }))
      .sort(byTime);
    const printer = await objectPrinter(context);
    const row = (event: AnyObject): string[] => [
      ...(all ? [event.metadata?.namespace ?? ''] : []),
      lastSeen(event, system.now()),
      textAt(event, 'type'),
      textAt(event, 'reason'),
      `${textAt(event, 'involvedObject', 'kind')}/${textAt(event, 'involvedObject', 'name')}`,
      printable(textAt(event, 'message').trim()),
    ];
    const header = [...(all ? ['NAMESPACE'] : []), 'LAST SEEN', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'];
    if (items.length === 0 && !flags.bool('watch')) {
      io.err(all ? 'No events found.\n' : `No events found in ${session.namespace} namespace.\n`);
      return 0;
    }
    const lines = [...(flags.bool('no-headers') ? [] : [header]), ...items.map(row)];
    const widths = columnWidths(lines);
    io.out(
      printer === undefined
        ? layout(lines, widths)
        : printer({ apiVersion: 'v1', kind: 'EventList', items, metadata: {} }),
    );
    if (!flags.bool('watch')) return 0;
    const body = await session.stream(pathOf(resource, namespace), {
      ...query,
      watch: true,
      resourceVersion: list.metadata?.resourceVersion,
    });
    const decoder = new LineDecoder();
    try {
      for await (const chunk of body)
        for (const line of decoder.push(chunk)) {
          const event: { type: string; object: AnyObject } = JSON.parse(line);
          if (event.type === 'ADDED' || event.type === 'MODIFIED')
            if (matches(event.object))
              io.out(printer === undefined ? layout([row(event.object)], widths) : printer(event.object));
        }
    } catch (error) {
      if (!context.signal.aborted) throw error;
    }
    return 0;
  });

const timeOf = (event: AnyObject): number =>
  Date.parse(
    textAt(event, 'series', 'lastObservedTime') ||
      textAt(event, 'lastTimestamp') ||
      textAt(event, 'eventTime') ||
      (event.metadata?.creationTimestamp ?? ''),
  );

export const byTime = (left: AnyObject, right: AnyObject): number => timeOf(left) - timeOf(right);

/** Time of an event as printed, such as `5m (x3 over 10m)`. */
export function lastSeen(event: AnyObject, now: number): string {
  const age = (time: string): string => (time === '' ? '<unknown>' : humanDuration(now - Date.parse(time)));
  const first = textAt(event, 'firstTimestamp') || textAt(event, 'eventTime');
  const series = numberAt(event, 0, 'series', 'count');
  if (series > 0) return `${age(textAt(event, 'series', 'lastObservedTime'))} (x${series} over ${age(first)})`;
  const count = numberAt(event, 1, 'count');
  const last = textAt(event, 'lastTimestamp') || first;
  return count > 1 ? `${age(last)} (x${count} over ${age(first)})` : age(last);
}
