/** Ports of rigs to their host: serial consoles with recordings, and power control. Implemented by `src/rigs/io`. */
import type { ByteStream } from '../runtime/port.ts';

/** Recording of a console session, in size-limited files on the host. */
export interface Recording {
  /** Resolves when the chunk is written. Rejects with the first failure. */
  write(chunk: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export interface RigHost {
  /** Opens a serial device at this speed, without echo and line editing. Rejects with the error of the host. */
  openSerial(path: string, baudRate: number): Promise<ByteStream>;
  /** Starts a recording below the rig's directory. */
  record(rig: string): Promise<Recording>;
  /**
   * Runs an entry of the bootstrap file's `rigPower` and resolves with its output. Throws CodedError 'not-found' for an
   * unknown entry and 'failed' with the output of a failed command.
   */
  runPower(command: string): Promise<string>;
  /** Switches a channel of a serial relay board with the LCUS protocol. */
  switchRelay(path: string, channel: number, on: boolean): Promise<void>;
}
