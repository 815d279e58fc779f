/** What rigs need of their host: serial consoles with recordings, and power. Implemented by `src/io/rigs`. */
import type { ByteStream } from '../../../core/podplan/port.ts';

/** The recording of a console session: a file of bounded size on the host, and older ones beside it. */
export interface Recording {
  /** Resolves when it is written; the first failure rejects. */
  write(chunk: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export interface RigHost {
  /** A serial device at this speed, without echo and line editing. Rejects with the reason of the host. */
  openSerial(path: string, baudRate: number): Promise<ByteStream>;
  /** Begins a recording below the rig's directory. */
  record(rig: string): Promise<Recording>;
  /**
   * Runs an entry of the bootstrap file's `rigPower` and resolves with its output. Throws CodedError 'not-found' for an
   * unknown entry and 'failed' with the output of a command that fails.
   */
  runPower(command: string): Promise<string>;
  /** Switches a channel of a serial relay board of the LCUS protocol. */
  switchRelay(path: string, channel: number, on: boolean): Promise<void>;
}
