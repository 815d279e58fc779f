/** Port forwarding: joins data channels with connections into the pod, for both protocols. */
import { messageOf } from '../../../base/errors.ts';
import type { ByteStream } from '../../../runtime/port.ts';
import type { Channel, WritableChannel } from '../../../wire/spdy/channel.ts';

/**
 * Serves one forwarded connection to its end; never rejects. If the connection could not be made or broke, the reason
 * is written to the `error` channel.
 */
export async function forwardConnection(
  port: number,
  data: Channel,
  error: WritableChannel,
  connect: (port: number) => Promise<ByteStream>,
): Promise<void> {
  let backend: ByteStream;
  try {
    backend = await connect(port);
  } catch (failure) {
    await writeError(error, `error forwarding port ${port}: ${messageOf(failure)}`);
    data.end();
    error.end();
    return;
  }
  const upload = (async () => {
    for await (const chunk of data.readable) await backend.write(chunk);
    backend.end();
  })();
  const download = (async () => {
    for await (const chunk of backend.readable) await data.write(chunk);
    data.end();
  })();
  // A broken upload (the client reset its stream, or the pod closed its side) must end the download as well.
  upload.catch(() => backend.destroy());
  try {
    await download;
  } catch (failure) {
    await writeError(error, `error forwarding port ${port}: ${messageOf(failure)}`);
  } finally {
    data.end();
    error.end();
    backend.destroy();
  }
}

async function writeError(error: WritableChannel, text: string): Promise<void> {
  try {
    await error.write(Buffer.from(text, 'utf8'));
  } catch {
    // The client has disconnected.
  }
}

/** Parses a port number; undefined if it is invalid. */
export function parsePort(text: string | undefined): number | undefined {
  if (text === undefined || !/^[0-9]{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port >= 1 && port <= 65535 ? port : undefined;
}
