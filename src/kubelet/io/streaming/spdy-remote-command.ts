/** Exec and attach over SPDY: the client opens one stream for each `streamtype`. */
import type { Duplex } from 'node:stream';
import type { Clock } from '../../../base/time/clock.ts';
import type { AttachOptions, ProcessStreams } from '../../../runtime/port.ts';
import { createSpdySession, type SpdySession, type SpdyStream } from '../../../wire/spdy/spdy-session.ts';
import { serveRemoteCommand } from './remote-command.ts';

/** Time limit for a client to open its streams, as in upstream. */
const STREAM_CREATION_TIMEOUT_MS = 30_000;

export interface SpdyRemoteCommand {
  /** Version of the protocol that the client and the server have agreed on. */
  readonly version: number;
  readonly wanted: AttachOptions;
  readonly clock: Clock;
  onSession(session: SpdySession): void;
  open(streams: AttachOptions): Promise<ProcessStreams>;
}

export async function serveSpdyRemoteCommand(
  socket: Duplex,
  head: Uint8Array,
  { version, wanted, clock, onSession, open }: SpdyRemoteCommand,
): Promise<void> {
  const expected = new Set<string>(['error']);
  if (wanted.stdin) expected.add('stdin');
  if (wanted.stdout) expected.add('stdout');
  if (wanted.stderr) expected.add('stderr');
  if (wanted.tty && version >= 3) expected.add('resize');

  const opened = new Map<string, SpdyStream>();
  let complete: (ok: boolean) => void = () => {};
  const ready = new Promise<boolean>((resolve) => {
    complete = resolve;
  });
  const session = createSpdySession(socket, head, (stream) => {
    const type = stream.headers.get('streamtype') ?? '';
    if (!expected.has(type) || opened.has(type)) {
      stream.reset();
      return;
    }
    opened.set(type, stream);
    if (opened.size === expected.size) complete(true);
  });
  onSession(session);
  const gone = session.run();
  const timer = clock.setTimer(STREAM_CREATION_TIMEOUT_MS, () => complete(false));
  const allThere = await Promise.race([ready, gone.then(() => false)]);
  timer.cancel();
  const error = opened.get('error');
  if (allThere && error !== undefined) {
    await serveRemoteCommand(
      {
        version,
        stdin: opened.get('stdin')?.readable,
        stdout: opened.get('stdout'),
        stderr: opened.get('stderr'),
        error,
        resize: opened.get('resize')?.readable,
        gone,
      },
      wanted,
      open,
    );
  }
  session.close();
  await gone;
}
