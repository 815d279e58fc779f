import { type Socket, connect as tcpConnect } from 'node:net';
import type { Routing } from '../../components/nodelb/port.ts';
import { parseAuthority } from './authority.ts';

/** A server without a handshake after this long gets a rival. Source: RFC 8305 §5, connection attempt delay. */
const RIVAL_MS = 250;
/** Of one attempt. */
const CONNECT_TIMEOUT_MS = 5_000;

export interface Race {
  /** Undefined: no server accepted. The socket is connected and paused. */
  readonly winner: Promise<{ readonly target: string; readonly socket: Socket } | undefined>;
  cancel(): void;
}

/** Connects to the first of the servers, in the order of `choose`, that accepts. Sends nothing. */
export function raceToConnect(routing: Routing): Race {
  const tried = new Set<string>();
  const attempts = new Set<Socket>();
  const { promise: winner, resolve } = Promise.withResolvers<Awaited<Race['winner']>>();
  let rival: NodeJS.Timeout | undefined;
  let over = false;
  const settle = (found: Awaited<Race['winner']>): void => {
    if (over) return;
    over = true;
    clearTimeout(rival);
    for (const attempt of attempts) if (attempt !== found?.socket) attempt.destroy();
    resolve(found);
  };
  const attempt = (): void => {
    clearTimeout(rival);
    const target = routing.choose(tried);
    if (target === undefined) {
      if (attempts.size === 0) settle(undefined);
      return;
    }
    tried.add(target);
    // Counted from the attempt on: connections of one moment must not all choose the same server.
    routing.opened(target);
    const socket = tcpConnect({ ...parseAuthority(target), allowHalfOpen: true });
    attempts.add(socket);
    let won = false;
    const timeout = setTimeout(() => socket.destroy(new Error('connect timeout')), CONNECT_TIMEOUT_MS);
    rival = setTimeout(() => {
      routing.doubt(target);
      attempt();
    }, RIVAL_MS);
    socket.once('connect', () => {
      clearTimeout(timeout);
      socket.off('error', onError);
      won = !over;
      settle({ target, socket });
    });
    const onError = (): void => routing.doubt(target);
    socket.on('error', onError);
    socket.once('close', () => {
      clearTimeout(timeout);
      attempts.delete(socket);
      // Of the winner, the connection's end is counted.
      if (!won) routing.closed(target);
      if (!over) attempt();
    });
  };
  attempt();
  return { winner, cancel: () => settle(undefined) };
}
