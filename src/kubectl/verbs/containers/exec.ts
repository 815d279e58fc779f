/** `exec` and `attach`: connect this terminal to a process in a container. Source: k8s.io/kubectl/pkg/cmd/exec. */
import { openRemoteChannels, outcomeOf, REMOTE_CHANNEL } from '../../../client/remote-command.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, listAt, textAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { oneTarget, podsOf } from '../../targets.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, dashAt } = context;
    const [name, ...rest] = args;
    if (name === undefined || dashAt === 0) throw new ClientError('pod, type/name or --filename must be specified');
    const command = dashAt === undefined ? rest : args.slice(dashAt);
    if (dashAt === undefined && rest.length > 0)
      throw new ClientError('exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead', {
        usage: true,
      });
    if (command.length === 0) throw new ClientError('you must specify at least one command for the container');
    const pod = await runningPod(session, name);
    const container = containerOf(session, pod);
    return connectTerminal(session, pod, 'exec', {
      container,
      command,
      stdin: flags.bool('stdin'),
      tty: flags.bool('tty'),
    });
  });

/** The pod for a name such as `web`, `pod/web` or `deploy/web`. Throws ClientError if the pod has ended. */
export async function runningPod(session: Session, name: string, namespace?: string): Promise<AnyObject> {
  const found = await oneTarget(session, [name], 'pods');
  const target = namespace === undefined ? found : { ...found, namespace };
  const [pod] = await podsOf(session, target);
  if (pod === undefined) throw new ClientError(`no pod of ${name} exists`);
  const phase = textAt(pod, 'status', 'phase');
  if (phase === 'Succeeded' || phase === 'Failed')
    throw new ClientError(`cannot exec into a container in a completed pod; current phase is ${phase}`);
  return pod;
}

export function containerOf(session: Session, pod: AnyObject): string {
  const { flags, io } = session.context;
  const names = listAt(pod, 'spec', 'containers').map((each) => textAt(each, 'name'));
  const all = [
    ...names,
    ...listAt(pod, 'spec', 'initContainers').map((each) => textAt(each, 'name')),
    ...listAt(pod, 'spec', 'ephemeralContainers').map((each) => textAt(each, 'name')),
  ];
  const wanted = flags.text('container');
  if (wanted !== '') {
    if (!all.includes(wanted))
      throw new ClientError(`container ${wanted} not found in pod ${pod.metadata?.name ?? ''}`);
    return wanted;
  }
  const byAnnotation = pod.metadata?.annotations?.['kubectl.kubernetes.io/default-container'];
  if (byAnnotation !== undefined && all.includes(byAnnotation)) return byAnnotation;
  const [first = ''] = names;
  if (all.length > 1 && !flags.bool('quiet')) io.err(`Defaulted container "${first}" out of: ${all.join(', ')}\n`);
  return first;
}

export interface RemoteProcess {
  readonly container: string;
  /** Command to run; undefined for `attach`. */
  readonly command?: readonly string[];
  readonly stdin: boolean;
  readonly tty: boolean;
  /** Input that replaces the terminal's; used by `cp`. */
  readonly input?: AsyncIterable<Uint8Array>;
  readonly onStdout?: (bytes: Uint8Array) => Promise<unknown> | undefined;
  /** Ends the connection, in addition to the signal of the invocation. */
  readonly stop?: AbortSignal;
}

/** Connects to the process until it ends. Resolves with its exit code; throws ClientError if it could not be run. */
export async function connectTerminal(
  session: Session,
  pod: AnyObject,
  subresource: 'exec' | 'attach',
  process: RemoteProcess,
): Promise<number> {
  const { io, signal } = session.context;
  const { connection } = session;
  const isTerminal = process.tty && io.isInputTerminal && process.input === undefined;
  if (process.tty && !io.isInputTerminal && process.stdin)
    io.err('Unable to use a TTY - input is not a terminal or the right kind of file\n');
  const tty = process.tty && (isTerminal || !process.stdin);
  const pods = await session.resource('pods');
  const query = new URLSearchParams();
  query.set('container', process.container);
  for (const word of process.command ?? []) query.append('command', word);
  if (process.stdin) query.set('stdin', 'true');
  query.set('stdout', 'true');
  if (tty) query.set('tty', 'true');
  else query.set('stderr', 'true');
  const status: Uint8Array[] = [];
  const channels = await openRemoteChannels({
    server: connection.server,
    path: `${pathOf(pods, pod.metadata?.namespace, pod.metadata?.name, subresource)}?${query}`,
    credentials: connection.credentials(),
    headers: connection.headers,
    insecureSkipTlsVerify: connection.insecure,
    ...(connection.tlsServerName === undefined ? {} : { tlsServerName: connection.tlsServerName }),
    ...(connection.agent === undefined ? {} : { agent: connection.agent }),
    signal: process.stop === undefined ? signal : AbortSignal.any([signal, process.stop]),
    onData: (channel, bytes) => {
      if (channel === REMOTE_CHANNEL.stdout) {
        if (process.onStdout !== undefined) return process.onStdout(bytes);
        io.out(bytes);
        return io.drained();
      }
      if (channel === REMOTE_CHANNEL.stderr) io.err(bytes);
      else if (channel === REMOTE_CHANNEL.error) status.push(Buffer.from(bytes));
      return undefined;
    },
  });
  const restore = isTerminal ? io.raw() : () => {};
  const sendSize = (): void => {
    const size = io.size();
    if (size !== undefined)
      void channels.send(
        REMOTE_CHANNEL.resize,
        Buffer.from(JSON.stringify({ Width: size.columns, Height: size.rows })),
      );
  };
  const stopResize = tty ? io.onResize(sendSize) : () => {};
  if (tty) sendSize();
  if (process.stdin)
    void (async () => {
      for await (const chunk of process.input ?? io.stdin) await channels.send(REMOTE_CHANNEL.stdin, chunk);
      channels.endChannel(REMOTE_CHANNEL.stdin);
      // The error is dropped, because the process itself reports why it has closed its input.
    })().catch(() => channels.close());
  try {
    await channels.closed;
  } finally {
    restore();
    stopResize();
  }
  if (signal.aborted) return 130;
  const { exitCode, failure } = outcomeOf(Buffer.concat(status));
  if (failure !== undefined) throw new ClientError(failure);
  if (exitCode !== 0)
    throw new ClientError(`command terminated with exit code ${exitCode}`, { exitCode, isPlain: true });
  return 0;
}
