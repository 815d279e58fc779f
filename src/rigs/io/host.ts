import { setTimeout as delay } from 'node:timers/promises';
import { CodedError } from '../../base/errors.ts';
import type { RigHost } from '../rig-host-port.ts';
import { runPowerCommand } from './power-command.ts';
import { startRecording } from './recording.ts';
import { listRecordings, openRecording } from './recordings.ts';
import { openSerial } from './serial.ts';

const POWER_MS = 30_000;
const RELAY_BAUD = 9_600;
/** The board's controller needs a pause between two commands. */
const RELAY_REST_MS = 50;

export interface RigHostOptions {
  /** Parent directory of the recordings. It contains one directory per rig. */
  readonly directory: string;
  /** Commands by name, with their arguments. The program is an absolute path. */
  readonly commands: ReadonlyMap<string, readonly string[]>;
  readonly nowMs: () => number;
  /** Time limit of a command. Default 30 s. */
  readonly powerMs?: number;
}

export function createRigHost({ directory, commands, nowMs, powerMs = POWER_MS }: RigHostOptions): RigHost {
  const writing = new Set<string>();
  return {
    openSerial,
    record: (rig) => startRecording({ directory: `${directory}/${rig}`, nowMs, writing }),
    recordings: (rig) => listRecordings(directory, rig, writing),
    openRecording: (rig, name) => openRecording(directory, rig, name),
    runPower(name) {
      const [program, ...args] = commands.get(name) ?? [];
      if (program === undefined)
        throw new CodedError(
          'not-found',
          `rigPower has no command "${name}"; add it to the bootstrap file of the node`,
        );
      return runPowerCommand({ name, program, args, limitMs: powerMs });
    },
    async switchRelay(path, channel, on) {
      const board = await openSerial(path, RELAY_BAUD);
      try {
        // LCUS protocol: start byte, channel, state, and the sum of the three.
        const [start, state] = [0xa0, on ? 1 : 0];
        await board.write(Uint8Array.of(start, channel, state, (start + channel + state) & 0xff));
        await delay(RELAY_REST_MS);
      } finally {
        board.destroy();
      }
    },
  };
}
