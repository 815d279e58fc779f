/** Ports of rigs to their host: serial consoles with recordings, and power control. Implemented by `src/rigs/io`. */
import type { Readable } from 'node:stream';
import type { ByteStream } from '../runtime/port.ts';

/** Recording of a console session, in size-limited files on the host. */
export interface Recording {
  /** Resolves when the chunk is written. Rejects if a write fails. */
  write(chunk: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export interface RecordingFile {
  readonly name: string;
  /** Start of the recording, as an RFC 3339 time. */
  readonly start: string;
  readonly bytes: number;
  /** Whether the file is still being written. */
  readonly isOpen: boolean;
}

/** Content of a recording up to its size at the time of opening. */
export interface OpenRecording {
  readonly name: string;
  readonly bytes: number;
  readonly content: Readable;
  close(): void;
}

export interface RigHost {
  /**
   * Opens a serial device at this speed, without echo and line editing. Rejects with the error of the operating system.
   */
  openSerial(path: string, baudRate: number): Promise<ByteStream>;
  /** Starts a recording below the rig's directory. */
  record(rig: string): Promise<Recording>;
  /** Recordings of a rig, newest first. Throws CodedError 'failed' if other users of the host can change them. */
  recordings(rig: string): Promise<readonly RecordingFile[]>;
  /** Opens a recording of a rig. Throws CodedError 'not-found' if it does not exist, and the errors of `recordings`. */
  openRecording(rig: string, name: string): Promise<OpenRecording>;
  /**
   * Runs a command of the bootstrap file's `rigPower` and resolves with its output. Throws CodedError 'not-found' for
   * an unknown name, and 'failed' with the output if the command fails.
   */
  runPower(command: string): Promise<string>;
  /** Switches a channel of a serial relay board with the LCUS protocol. */
  switchRelay(path: string, channel: number, on: boolean): Promise<void>;
}
