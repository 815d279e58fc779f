/** Console and power of this node's rigs. The API server has authorized the request and resolved the rig. */
import type { Duplex } from 'node:stream';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { Recording, RigHost } from '../../rigs/rig-host-port.ts';
import type { ByteStream, ProcessStreams } from '../../runtime/port.ts';
import type { NodeDevices } from '../devices/node-devices.ts';
import type { StreamingServer } from '../io/streaming/port.ts';
import { HttpError } from './http-error.ts';
import type { KubeletRequest } from './port.ts';
import { flag, type Route } from './routes.ts';

const MAX_REST_MS = 10_000;
/** Power requests of a rig that run or wait. */
const MAX_POWER_REQUESTS = 4;

export interface RigRequestsOptions {
  readonly devices: Pick<NodeDevices, 'rigHost' | 'fixture'> | undefined;
  readonly streaming: Pick<StreamingServer, 'handleRemoteCommand'>;
  readonly clock: Clock;
  readonly log: Log;
}

export class RigRequests {
  readonly #options: RigRequestsOptions;
  /** Consoles that are open or being opened, by device. */
  readonly #consoles = new Map<string, { end: () => void }>();
  /** Last power request of each rig, and the number of requests that have not ended. */
  readonly #switching = new Map<string, { readonly ended: Promise<unknown>; readonly requests: number }>();

  constructor(options: RigRequestsOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the output of the command. Requests for a rig are executed one after the other. A request whose
   * client has disconnected before its turn is not executed. Throws HttpErrors.
   */
  power(route: Route, signal: AbortSignal): Promise<string> {
    const { rig = '' } = route;
    const { ended = Promise.resolve(), requests = 0 } = this.#switching.get(rig) ?? {};
    if (requests >= MAX_POWER_REQUESTS)
      throw new HttpError(429, `rig ${rig}: ${requests} power requests have not ended; wait for them`);
    const turn = ended.then(() => {
      signal.throwIfAborted();
      return this.#switch(route);
    });
    const done = turn.catch(ignore('the error is returned for its own request')).then(() => {
      const last = this.#switching.get(rig);
      if (last === undefined || last.requests <= 1) this.#switching.delete(rig);
      else this.#switching.set(rig, { ...last, requests: last.requests - 1 });
    });
    this.#switching.set(rig, { ended: done, requests: requests + 1 });
    return turn;
  }

  async #switch({ rig = '', query }: Route): Promise<string> {
    const host = this.#host();
    const { log, clock } = this.#options;
    const rest = Number(query.get('rest') ?? '0');
    if (rest > 0) {
      await new Promise<void>((resolve) => clock.setTimer(Math.min(rest, MAX_REST_MS), resolve));
      return '';
    }
    const command = query.get('command');
    const relay = query.get('relay');
    log.info('rig power switched', { rig, command: command ?? `relay ${relay ?? ''} ${query.get('to') ?? ''}` });
    try {
      if (command !== null) return await host.runPower(command);
      const channel = Number(query.get('channel') ?? '1');
      if (relay === null || !Number.isInteger(channel) || channel < 1 || channel > 16)
        throw new HttpError(400, 'power needs a command, or a relay and a channel from 1 to 16');
      await host.switchRelay(this.#device(relay), channel, query.get('to') === 'on');
      return '';
    } catch (error) {
      if (error instanceof CodedError && error.code === 'not-found') throw new HttpError(404, error.message);
      throw error;
    }
  }

  /** Resolves at the end of the session. Throws HttpErrors before a response was sent. */
  async console(route: Route, request: KubeletRequest, socket: Duplex, head: Uint8Array): Promise<void> {
    const { rig = '', query } = route;
    const host = this.#host();
    const path = this.#device(query.get('fixture') ?? '');
    const baudRate = Number(query.get('baud') ?? '115200');
    const requested = { stdin: flag(query, 'input'), stdout: flag(query, 'output'), stderr: false, tty: true };
    await this.#options.streaming.handleRemoteCommand(request, socket, head, requested, async () => {
      // A serial line has one reader. End the session of the earlier request, because the later one now holds the rig's
      // claim. The earlier request may still be opening the line.
      this.#consoles.get(path)?.end();
      const console = { end: () => {} };
      this.#consoles.set(path, console);
      try {
        const line = await host.openSerial(path, baudRate);
        try {
          if (this.#consoles.get(path) !== console) throw new Error(`rig ${rig}: a later request opened the console`);
          return this.#session(rig, path, console, line, await recordingOf(host, rig));
        } catch (error) {
          line.destroy();
          throw error;
        }
      } catch (error) {
        if (this.#consoles.get(path) === console) this.#consoles.delete(path);
        throw error;
      }
    });
  }

  #session(
    rig: string,
    path: string,
    console: { end: () => void },
    line: ByteStream,
    recording: Recording,
  ): ProcessStreams {
    const { log } = this.#options;
    const ended = Promise.withResolvers<number>();
    let open = true;
    const close = (): void => {
      if (!open) return;
      open = false;
      if (this.#consoles.get(path) === console) this.#consoles.delete(path);
      line.destroy();
      ended.resolve(0);
      void recording
        .close()
        .catch(ignore('the console has ended, and the recording is on disk as far as it was written'));
    };
    console.end = close;
    if (this.#consoles.get(path) !== console) close();
    let isRecorded = true;
    const recorded = async function* (): AsyncGenerator<Uint8Array> {
      try {
        for await (const chunk of line.readable) {
          if (isRecorded) {
            await recording.write(chunk).catch((error: unknown) => {
              isRecorded = false;
              log.warn('console output not recorded', { rig, error: messageOf(error) });
            });
          }
          yield chunk;
        }
      } finally {
        close();
      }
    };
    return {
      stdin: { write: (chunk) => line.write(chunk), end: () => {} },
      stdout: recorded(),
      stderr: undefined,
      resize: async () => {},
      exited: ended.promise,
      close,
    };
  }

  #host(): RigHost {
    const host = this.#options.devices?.rigHost;
    if (host === undefined) throw new HttpError(404, 'this node has no rigs');
    return host;
  }

  #device(fixture: string): string {
    const found = this.#options.devices?.fixture(fixture);
    if (found === undefined) throw new HttpError(404, `fixture ${fixture} is unplugged; plug it in`);
    if (found.node === undefined) throw new HttpError(400, `fixture ${fixture} has no device node`);
    return found.node.hostPath;
  }
}

async function recordingOf(host: RigHost, rig: string): Promise<Recording> {
  try {
    return await host.record(rig);
  } catch (error) {
    throw new Error(`the console cannot be recorded: ${messageOf(error)}`, { cause: error });
  }
}
