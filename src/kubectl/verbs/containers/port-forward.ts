/** `port-forward`: forwards local ports to ports of a pod, with a WebSocket for each connection. */

import { printable } from '../../../base/text/printable.ts';
import { openRemoteChannels } from '../../../client/remote-command.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, listAt, numberAt, textAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import type { LocalListener, LocalSocket, VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, oneTarget, podsOf } from '../../targets.ts';

const DATA = 0;
const ERROR = 1;
/** Length of the first message of each channel, which contains the port. */
const PORT_BYTES = 2;

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, io, system, signal } = context;
    const [name, ...ports] = args;
    if (name === undefined || ports.length === 0)
      throw new ClientError('TYPE/NAME and list of ports are required for port-forward');
    const target = await oneTarget(session, [name], 'pods');
    const [object, [pod]] = await Promise.all([currentObject(session, target), podsOf(session, target)]);
    if (pod === undefined) throw new ClientError(`no pod of ${name} exists`);
    const phase = textAt(pod, 'status', 'phase');
    if (phase !== 'Running')
      throw new ClientError(`unable to forward port because pod is not running. Current status=${phase}`);
    const listeners: LocalListener[] = [];
    try {
      for (const spec of ports) {
        const { local, remote } = portsOf(spec, object, pod);
        for (const address of flags
          .text('address')
          .split(',')
          .flatMap((each) => (each === 'localhost' ? ['127.0.0.1', '::1'] : [each]))) {
          const listener = await system
            .listen(address, local, (socket) => void forward(session, pod, remote, local, socket))
            .catch((error: unknown) => {
              // Hosts without IPv6 have no address ::1, so this failure is ignored.
              if (address === '::1' && listeners.length > 0) return undefined;
              throw error;
            });
          if (listener === undefined) continue;
          listeners.push(listener);
          io.out(`Forwarding from ${address.includes(':') ? `[${address}]` : address}:${listener.port} -> ${remote}\n`);
        }
      }
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      return 0;
    } finally {
      for (const listener of listeners) listener.close();
    }
  });

/**
 * Ports of an argument such as `8080`, `8080:80`, `:80` or `8080:http`. A service port is translated to the pod's port.
 */
function portsOf(spec: string, object: AnyObject, pod: AnyObject): { readonly local: number; readonly remote: number } {
  const [left = '', right] = spec.split(':');
  const remote = remotePort(right ?? left, object, pod);
  const isName = right === undefined && !/^\d+$/.test(left);
  // `:80` chooses a free local port, and a single port name uses the number of the remote port.
  const local = isName ? remote : Number(left);
  if (!Number.isInteger(local) || local < 0 || local > 65_535) throw new ClientError(`invalid port format '${spec}'`);
  return { local, remote };
}

function remotePort(text: string, object: AnyObject, pod: AnyObject): number {
  const named = (name: string): number => {
    const ports = listAt(pod, 'spec', 'containers').flatMap((container) => listAt(container, 'ports'));
    const found = numberAt(
      ports.find((port) => port['name'] === name),
      0,
      'containerPort',
    );
    if (found === 0) throw new ClientError(`Pod '${pod.metadata?.name ?? ''}' does not have a named port '${name}'`);
    return found;
  };
  if (object.kind !== 'Service') {
    if (!/^\d+$/.test(text)) return named(text);
    if (Number(text) < 1 || Number(text) > 65_535)
      throw new ClientError(`invalid port number ${text}: use a number from 1 to 65535`);
    return Number(text);
  }
  const port = listAt(object, 'spec', 'ports').find((each) => each['name'] === text || String(each['port']) === text);
  if (port === undefined)
    throw new ClientError(`Service ${object.metadata?.name ?? ''} does not have a service port ${text}`);
  const target = port['targetPort'] ?? port['port'];
  return typeof target === 'number' ? target : named(String(target));
}

async function forward(
  session: Session,
  pod: AnyObject,
  remote: number,
  local: number,
  socket: LocalSocket,
): Promise<void> {
  const { io, signal } = session.context;
  const { connection } = session;
  io.out(`Handling connection for ${local}\n`);
  const errors: Uint8Array[] = [];
  const skipped = new Map<number, number>([
    [DATA, PORT_BYTES],
    [ERROR, PORT_BYTES],
  ]);
  let writes = Promise.resolve();
  try {
    const pods = await session.resource('pods');
    const channels = await openRemoteChannels({
      server: connection.server,
      path: `${pathOf(pods, pod.metadata?.namespace, pod.metadata?.name, 'portforward')}?ports=${remote}`,
      credentials: connection.credentials(),
      headers: connection.headers,
      insecureSkipTlsVerify: connection.insecure,
      ...(connection.tlsServerName === undefined ? {} : { tlsServerName: connection.tlsServerName }),
      ...(connection.agent === undefined ? {} : { agent: connection.agent }),
      protocols: ['v4.channel.k8s.io'],
      signal,
      onData: (channel, bytes) => {
        const skip = Math.min(skipped.get(channel) ?? 0, bytes.length);
        skipped.set(channel, (skipped.get(channel) ?? 0) - skip);
        const content = Buffer.from(bytes.subarray(skip));
        if (content.length === 0) return undefined;
        if (channel === ERROR) errors.push(content);
        if (channel !== DATA) return undefined;
        writes = writes.then(() => socket.write(content));
        return writes;
      },
    });
    const sending = (async () => {
      for await (const chunk of socket.input) await channels.send(DATA, chunk);
    })();
    await Promise.race([channels.closed, sending.then(() => channels.closed)]);
    await writes;
    if (errors.length > 0)
      io.err(
        `E an error occurred forwarding ${local} -> ${remote}: ${printable(Buffer.concat(errors).toString('utf8').trim())}\n`,
      );
  } catch (error) {
    if (!signal.aborted)
      io.err(
        `E an error occurred forwarding ${local} -> ${remote}: ${error instanceof Error ? error.message : String(error)}\n`,
      );
  } finally {
    socket.end();
    socket.destroy();
  }
}
