/**
 * Joins a process's streams with a client's channels, for both protocols, and reports the exit status on the error
 * channel in the format of the negotiated version (k8s.io/apimachinery remotecommand constants; v4 added the Status
 * with the exit code).
 */
import { ignore, messageOf } from '../../../base/errors.ts';
import type { AttachOptions, ProcessStreams } from '../../../runtime/port.ts';
import type { WritableChannel } from '../../../wire/spdy/channel.ts';

export interface RemoteCommandChannels {
  /** Protocol version, 1 to 5. */
  readonly version: number;
  readonly stdin: AsyncIterable<Uint8Array> | undefined;
  readonly stdout: WritableChannel | undefined;
  readonly stderr: WritableChannel | undefined;
  readonly error: WritableChannel;
  readonly resize: AsyncIterable<Uint8Array> | undefined;
  /** Resolves when the client has disconnected. */
  readonly gone: Promise<void>;
}

export async function serveRemoteCommand(
  channels: RemoteCommandChannels,
  streams: AttachOptions,
  open: (streams: AttachOptions) => Promise<ProcessStreams>,
): Promise<void> {
  let process: ProcessStreams;
  try {
    process = await open(streams);
  } catch (error) {
    await reportFailure(channels, messageOf(error));
    return;
  }
  const left = channels.gone.then(() => 'gone' as const);
  try {
    const { stdin } = process;
    if (channels.stdin !== undefined && stdin !== undefined) void pumpInput(channels.stdin, stdin);
    if (channels.resize !== undefined) void pumpResize(channels.resize, process);
    const done = Promise.all([
      process.exited,
      pumpOutput(process.stdout, channels.stdout),
      pumpOutput(process.stderr, channels.stderr),
    ]);
    const outcome = await Promise.race([done, left]);
    if (outcome !== 'gone') await reportExit(channels, outcome[0]);
  } catch (error) {
    await reportFailure(channels, messageOf(error));
  } finally {
    process.close();
  }
}

async function pumpInput(
  from: AsyncIterable<Uint8Array>,
  to: { write(chunk: Uint8Array): Promise<void>; end(): void },
) {
  try {
    for await (const chunk of from) await to.write(chunk);
    to.end();
  } catch {
    // One side has closed: a lost client is handled by `gone`, and a process that closed its input needs no more data.
    to.end();
  }
}

async function pumpOutput(from: AsyncIterable<Uint8Array> | undefined, to: WritableChannel | undefined): Promise<void> {
  if (from === undefined) return;
  for await (const chunk of from) await to?.write(chunk);
  to?.end();
}

interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/**
 * Sets terminal sizes one after the other. Of the sizes that arrive during a change, only the newest is set, because
 * each change opens a file, and a client can send sizes faster than files are opened.
 */
function sizeSetter(process: Pick<ProcessStreams, 'resize'>): (size: TerminalSize) => void {
  let next: TerminalSize | undefined;
  let isBusy = false;
  const apply = async (): Promise<void> => {
    isBusy = true;
    for (let size = next; size !== undefined; size = next) {
      next = undefined;
      await process.resize(size.columns, size.rows).catch(ignore('the terminal may have closed'));
    }
    isBusy = false;
  };
  return (size) => {
    next = size;
    if (!isBusy) void apply();
  };
}

/** Reads terminal sizes from a stream of JSON objects `{"Width":80,"Height":24}`. */
async function pumpResize(from: AsyncIterable<Uint8Array>, process: ProcessStreams): Promise<void> {
  const setSize = sizeSetter(process);
  let text = '';
  try {
    for await (const chunk of from) {
      text += Buffer.from(chunk).toString('utf8');
      const end = text.lastIndexOf('}');
      // If several sizes arrive together, only the last one is used.
      const size = end < 0 ? undefined : parseSize(text.slice(Math.max(0, text.lastIndexOf('{', end)), end + 1));
      text = text.slice(end + 1);
      if (size !== undefined) setSize(size);
      if (text.length > 1024) text = '';
    }
  } catch {
    // The connection is lost, so no further sizes arrive.
  }
}

function parseSize(json: string): TerminalSize | undefined {
  let size: unknown;
  try {
    size = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof size !== 'object' || size === null) return undefined;
  const columns = 'Width' in size ? size.Width : undefined;
  const rows = 'Height' in size ? size.Height : undefined;
  const valid = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) > 0 && Number(value) <= 0xffff;
  return valid(columns) && valid(rows) ? { columns, rows } : undefined;
}

async function reportExit(channels: RemoteCommandChannels, exitCode: number): Promise<void> {
  if (exitCode === 0) {
    if (channels.version >= 4) await writeStatus(channels, { metadata: {}, status: 'Success' });
  } else if (channels.version >= 4) {
    await writeStatus(channels, {
      metadata: {},
      status: 'Failure',
      message: `command terminated with non-zero exit code: exit status ${exitCode}`,
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
    });
  } else {
    await writeText(channels, `command terminated with exit code ${exitCode}`);
  }
  channels.error.end();
}

async function reportFailure(channels: RemoteCommandChannels, message: string): Promise<void> {
  if (channels.version >= 4) {
    await writeStatus(channels, { metadata: {}, status: 'Failure', message, reason: 'InternalError', code: 500 });
  } else {
    await writeText(channels, message);
  }
  channels.error.end();
}

const writeStatus = (channels: RemoteCommandChannels, status: object): Promise<void> =>
  writeText(channels, JSON.stringify(status));

async function writeText(channels: RemoteCommandChannels, text: string): Promise<void> {
  try {
    await channels.error.write(Buffer.from(text, 'utf8'));
  } catch {
    // The client has disconnected.
  }
}
