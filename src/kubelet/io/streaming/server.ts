import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import {
  acceptedStreamProtocols,
  negotiateSpdyPortForward,
  negotiateSpdyRemoteCommand,
  refuseUpgrade,
  requestedStreams,
  upgradeKind,
  writeSwitchingProtocols,
} from './negotiation.ts';
import type { StreamingServer } from './port.ts';
import { serveSpdyPortForward } from './spdy-port-forward.ts';
import { serveSpdyRemoteCommand } from './spdy-remote-command.ts';
import { serveWebSocketPortForward, serveWebSocketRemoteCommand } from './websocket.ts';

export interface StreamingDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export function createStreamingServer(deps: StreamingDeps): StreamingServer {
  const log = deps.log.named('streaming');
  const sessions = new Map<{ destroy(): void }, Promise<void>>();

  /** Registers a session for `stop` while it runs. */
  async function track(serve: (onSession: (session: { destroy(): void }) => void) => Promise<void>): Promise<void> {
    let key: { destroy(): void } | undefined;
    let finished: () => void = () => {};
    const over = new Promise<void>((resolve) => {
      finished = resolve;
    });
    try {
      await serve((session) => {
        key = session;
        sessions.set(session, over);
      });
    } catch (error) {
      log.warn('session ended by an error', { error: messageOf(error) });
      key?.destroy();
    } finally {
      if (key !== undefined) sessions.delete(key);
      finished();
    }
  }

  return {
    async handleRemoteCommand(request, socket, head, requested, open) {
      const kind = upgradeKind(request);
      if (kind === undefined) return refuseUpgrade(socket, 400, 'upgrade to SPDY/3.1 or websocket is required');
      const wanted = requestedStreams(requested);
      if (wanted === undefined)
        return refuseUpgrade(socket, 400, 'you must ask for at least one of stdin, stdout, stderr');
      socket.on('error', () => socket.destroy());
      if (kind === 'websocket') {
        return track((onSession) => serveWebSocketRemoteCommand({ request, socket, head }, wanted, onSession, open));
      }
      const protocol = negotiateSpdyRemoteCommand(request);
      if (protocol === undefined)
        return refuseUpgrade(socket, 403, 'unable to upgrade: no common protocol', accepted('remotecommand'));
      writeSwitchingProtocols(socket, protocol.name);
      return track((onSession) =>
        serveSpdyRemoteCommand(socket, head, { version: protocol.version, wanted, clock: deps.clock, onSession, open }),
      );
    },

    async handlePortForward(request, socket, head, connect) {
      const kind = upgradeKind(request);
      if (kind === undefined) return refuseUpgrade(socket, 400, 'upgrade to SPDY/3.1 or websocket is required');
      socket.on('error', () => socket.destroy());
      if (kind === 'websocket') {
        return track((onSession) =>
          serveWebSocketPortForward({ request, socket, head }, deps.clock, onSession, connect),
        );
      }
      const protocol = negotiateSpdyPortForward(request);
      if (protocol === undefined)
        return refuseUpgrade(socket, 403, 'unable to upgrade: no common protocol', accepted('portforward'));
      writeSwitchingProtocols(socket, protocol);
      return track((onSession) => serveSpdyPortForward(socket, head, deps.clock, onSession, connect));
    },

    async stop() {
      const ending = [...sessions.values()];
      for (const session of sessions.keys()) session.destroy();
      await Promise.all(ending);
    },
  };
}

const accepted = (kind: 'remotecommand' | 'portforward'): Record<string, string> => ({
  'X-Accepted-Stream-Protocol-Versions': acceptedStreamProtocols(kind),
});
