/**
 * Port forwarding over SPDY: for each connection the client opens an error stream and a data stream with the same
 * `requestid`.
 */
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { ByteStream } from '../../../runtime/port.ts';
import { createSpdySession, type SpdySession, type SpdyStream } from '../../../wire/spdy/spdy-session.ts';
import { forwardConnection, parsePort } from './port-forward.ts';

/** Time limit for the second stream of a pair, as in upstream. */
const PAIR_TIMEOUT_MS = 30_000;

interface Pair {
  data?: SpdyStream;
  error?: SpdyStream;
  readonly timer: Timer;
}

export async function serveSpdyPortForward(
  socket: Duplex,
  head: Uint8Array,
  clock: Clock,
  onSession: (session: SpdySession) => void,
  connect: (port: number) => Promise<ByteStream>,
): Promise<void> {
  const pairs = new Map<string, Pair>();
  const running = new Set<Promise<void>>();

  const onStream = (stream: SpdyStream): void => {
    const type = stream.headers.get('streamtype');
    const port = parsePort(stream.headers.get('port'));
    if (port === undefined || (type !== 'data' && type !== 'error')) {
      stream.reset();
      return;
    }
    // Old clients send no request id. They open the error stream first and the data stream immediately after it.
    const requestId = stream.headers.get('requestid') ?? String(type === 'error' ? stream.id : stream.id - 2);
    let pair = pairs.get(requestId);
    if (pair === undefined) {
      pair = {
        timer: clock.setTimer(PAIR_TIMEOUT_MS, () => {
          pairs.delete(requestId);
          stream.reset();
        }),
      };
      pairs.set(requestId, pair);
    }
    if (pair[type] !== undefined) {
      stream.reset();
      return;
    }
    pair[type] = stream;
    const { data, error } = pair;
    if (data === undefined || error === undefined) return;
    pair.timer.cancel();
    pairs.delete(requestId);
    const forwarding = forwardConnection(port, data, error, connect).finally(() => running.delete(forwarding));
    running.add(forwarding);
  };

  const session = createSpdySession(socket, head, onStream);
  onSession(session);
  await session.run();
  for (const pair of pairs.values()) pair.timer.cancel();
  await Promise.all(running);
}
