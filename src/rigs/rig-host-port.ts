/** Ports of rigs to their host: serial consoles with recordings, and power control. Implemented by `src/rigs/io`. */
import type { Readable } from 'node:stream';
import type { ByteStream } from '../runtime/port.ts';

/** Recording of a console session, in size-limited files on the host. */
export interface Recording {
  /** Resolves when the chunk is written. Rejects with the first failure. */
  write(chunk: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export interface RecordingFile {
  readonly name: string;
  /** RFC 3339. */
  readonly start: string;
  readonly bytes: number;
  /** Whether it is being written. */
  readonly isOpen: boolean;
}

/** The part of a recording that was written when it was opened. */
export interface OpenRecording {
  readonly name: string;
  readonly bytes: number;
  readonly content: Readable;
  close(): void;
}

export interface RigHost {
  /** Opens a serial device at this speed, without echo and line editing. Rejects with the error of the host. */
  openSerial(path: string, baudRate: number): Promise<ByteStream>;
  /** Starts a recording below the rig's directory. */
  record(rig: string): Promise<Recording>;
  /** Recordings of a rig, newest first. Throws CodedError 'failed' if other users of the host can change them. */
  recordings(rig: string): Promise<readonly RecordingFile[]>;
  /** Throws CodedError 'not-found' too. */
  openRecording(rig: string, name: string): Promise<OpenRecording>;
  /**
   * Runs an entry of the bootstrap file's `rigPower` and resolves with its output. Throws CodedError 'not-found' for an
   * unknown entry and 'failed' with the output of a failed command.
   */
  runPower(command: string): Promise<string>;
  /** Switches a channel of a serial relay board with the LCUS protocol. */
  switchRelay(path: string, channel: number, on: boolean): Promise<void>;
}
