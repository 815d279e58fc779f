import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { RigHost } from '../rig-host-port.ts';
import { startRecording } from './recording.ts';
import { listRecordings, openRecording } from './recordings.ts';
import { openSerial } from './serial.ts';

const POWER_MS = 30_000;
const MAX_OUTPUT = 64 * 1024;
const RELAY_BAUD = 9_600;
/** The board's controller needs a pause between two commands. */
const RELAY_REST_MS = 50;

export interface RigHostOptions {
  /** Parent directory of the recordings. It contains one directory per rig. */
  readonly directory: string;
  /** Commands by name, with their arguments. The program is an absolute path. */
  readonly commands: ReadonlyMap<string, readonly string[]>;
  readonly nowMs: () => number;
}

export function createRigHost({ directory, commands, nowMs }: RigHostOptions): RigHost {
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
      return run(name, program, args);
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

function run(name: string, program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
    const options = { env, timeout: POWER_MS, maxBuffer: MAX_OUTPUT, cwd: '/' };
    execFile(program, [...args], options, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`.trim();
      if (error === null) resolve(output);
      else if (error.killed === true)
        reject(new CodedError('failed', `command ${name} has not ended within ${POWER_MS / 1000} s: ${output}`));
      else {
        const outcome = typeof error.code === 'number' ? `exit code ${error.code}` : messageOf(error);
        reject(new CodedError('failed', `command ${name}: ${outcome}${output === '' ? '' : `: ${output}`}`));
      }
    });
  });
}
