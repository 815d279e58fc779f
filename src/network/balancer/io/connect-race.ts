import { type Socket, connect as tcpConnect } from 'node:net';
import type { Routing } from '../port.ts';
import { parseAuthority } from './authority.ts';

/** Delay before a parallel attempt to another server starts. Source: RFC 8305 §5, connection attempt delay. */
const RIVAL_MS = 250;
/** Time limit of one attempt. */
const CONNECT_TIMEOUT_MS = 5_000;

export interface Race {
  /** The connected and paused socket; undefined if no server accepted. */
  readonly winner: Promise<{ readonly target: string; readonly socket: Socket } | undefined>;
  cancel(): void;
}

/** Connects to the servers in the order of `choose` until one accepts. Sends no data. */
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
    // The connection is counted from the start of the attempt, so that simultaneous clients do not all choose the same
    // server.
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
      // The winning connection is counted as closed later, when it ends.
      if (!won) routing.closed(target);
      if (!over) attempt();
    });
  };
  attempt();
  return { winner, cancel: () => settle(undefined) };
}
