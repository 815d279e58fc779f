/** `logs` of containers, also of several pods and containers at once. Source: k8s.io/kubectl/pkg/cmd/logs. */

import { isApiError } from '../../../api/meta/status.ts';
import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, listAt, textAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Query, Session } from '../../session.ts';
import { oneTarget, podsOf } from '../../targets.ts';

const NEWLINE = 0x0a;
/** Maximum length of a line; longer lines are printed in parts. */
const MAX_LINE_BYTES = 1 << 20;
const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args } = context;
    const selector = flags.text('selector');
    if (selector !== '' && args.length > 0) throw new ClientError('only a selector (-l) or a POD name is allowed');
    if (selector === '' && args.length === 0)
      throw new ClientError(
        "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\n" +
          'POD or TYPE/NAME is a required argument for the logs command',
        { usage: true },
      );
    const pods = selector === '' ? await named(session, args[0] ?? '') : await selected(session, selector);
    const several = selector !== '' || flags.bool('all-pods');
    const [first] = pods;
    if (first === undefined) {
      if (selector !== '') context.io.err(`No resources found in ${session.namespace} namespace.\n`);
      else throw new ClientError(`timed out waiting for the condition: no pod of ${args[0] ?? ''} exists`);
      return 0;
    }
    if (!several && pods.length > 1)
      context.io.err(`Found ${pods.length} pods, using pod/${first.metadata?.name ?? ''}\n`);
    const chosen = several ? pods : [first];
    const streams = chosen.flatMap((pod) =>
      containersOf(session, pod, args[1]).map((container) => ({ pod, container })),
    );
    const maximum = flags.int('max-log-requests') || 5;
    if (flags.bool('follow') && streams.length > maximum)
      throw new ClientError(
        `you are attempting to follow ${streams.length} log streams, but maximum allowed concurrency is ${maximum}, ` +
          'use --max-log-requests to increase the limit',
      );
    const query = queryOf(session, selector !== '');
    const prefixed = flags.bool('prefix');
    const show = ({ pod, container }: (typeof streams)[number]): Promise<void> =>
      copyLog(session, { pod, container }, query, {
        prefix: prefixed ? `[pod/${pod.metadata?.name ?? ''}/${container}] ` : '',
        byLine: streams.length > 1,
      });
    if (flags.bool('follow')) await Promise.all(streams.map(show));
    else for (const stream of streams) await show(stream);
    return 0;
  });

async function named(session: Session, name: string): Promise<AnyObject[]> {
  const target = await oneTarget(session, [name], 'pods');
  try {
    return await podsOf(session, target);
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    throw new ClientError(`error from server (NotFound): ${error.message} in namespace "${target.namespace ?? ''}"`);
  }
}

async function selected(session: Session, selector: string): Promise<AnyObject[]> {
  const pods = await session.resource('pods');
  return session.list(pods, session.namespace, { labelSelector: selector });
}

function containersOf(session: Session, pod: AnyObject, positional: string | undefined): string[] {
  const { flags, io } = session.context;
  const names = (field: string): string[] => listAt(pod, 'spec', field).map((each) => textAt(each, 'name'));
  const regular = names('containers');
  const all = [...names('initContainers'), ...regular, ...names('ephemeralContainers')];
  const wanted = flags.text('container') || positional;
  if (wanted !== undefined && wanted !== '') {
    if (!all.includes(wanted))
      throw new ClientError(
        `container ${wanted} is not valid for pod ${pod.metadata?.name ?? ''} out of: ${all.join(', ')}`,
      );
    return [wanted];
  }
  if (flags.bool('all-containers')) return all;
  const byAnnotation = pod.metadata?.annotations?.[DEFAULT_CONTAINER];
  if (byAnnotation !== undefined && all.includes(byAnnotation)) return [byAnnotation];
  const [first = ''] = regular;
  if (all.length > 1) {
    const inits = names('initContainers');
    const listed = [
      ...regular,
      ...inits.map((name) => `${name} (init)`),
      ...names('ephemeralContainers').map((name) => `${name} (ephem)`),
    ];
    io.err(`Defaulted container "${first}" out of: ${listed.join(', ')}\n`);
  }
  return [first];
}

function queryOf(session: Session, withSelector: boolean): Query {
  const { flags } = session.context;
  const since = flags.text('since');
  if (since !== '' && flags.text('since-time') !== '')
    throw new ClientError('at most one of `sinceTime` or `sinceSeconds` may be specified');
  const tail = flags.has('tail') ? flags.int('tail') : withSelector && !flags.bool('all-containers') ? 10 : -1;
  if (tail < -1) throw new ClientError('TailLines must be greater than or equal to -1');
  return {
    follow: flags.bool('follow') || undefined,
    previous: flags.bool('previous') || undefined,
    timestamps: flags.bool('timestamps') || undefined,
    limitBytes: flags.has('limit-bytes') ? flags.int('limit-bytes') : undefined,
    sinceSeconds: since === '' || since === '0s' ? undefined : Math.ceil(parseGoDuration(since) / 1_000),
    sinceTime: flags.text('since-time'),
    tailLines: tail < 0 ? undefined : tail,
  };
}

async function copyLog(
  session: Session,
  { pod, container }: { readonly pod: AnyObject; readonly container: string },
  query: Query,
  { prefix, byLine }: { readonly prefix: string; readonly byLine: boolean },
): Promise<void> {
  const { io, flags } = session.context;
  const pods = await session.resource('pods');
  const path = pathOf(pods, pod.metadata?.namespace, pod.metadata?.name, 'log');
  try {
    const body = await session.stream(path, { ...query, container }, 'text/plain, application/json');
    if (prefix === '' && !byLine) {
      for await (const chunk of body) {
        io.out(chunk);
        await io.drained();
      }
      return;
    }
    // Incomplete lines are held back, so that lines of several containers do not mix.
    let rest = Buffer.alloc(0);
    for await (const chunk of body) {
      const text = Buffer.concat([rest, chunk]);
      const end = text.lastIndexOf(NEWLINE) + 1;
      for (let start = 0; start < end; ) {
        const next = text.indexOf(NEWLINE, start) + 1;
        io.out(Buffer.concat([Buffer.from(prefix), text.subarray(start, next)]));
        start = next;
      }
      rest = text.subarray(end);
      if (rest.length > MAX_LINE_BYTES) {
        io.out(Buffer.concat([Buffer.from(prefix), rest]));
        rest = Buffer.alloc(0);
      }
      await io.drained();
    }
    if (rest.length > 0) io.out(Buffer.concat([Buffer.from(prefix), rest, Buffer.from('\n')]));
  } catch (error) {
    if (session.context.signal.aborted) return;
    if (!flags.bool('ignore-errors')) throw error;
    io.out(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  }
}
